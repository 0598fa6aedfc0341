"""The commented settings file: every key, with its default."""

import re
from pathlib import Path

import pytest

from thoughtline.cli.init_template import template
from thoughtline.gateway.settings import load
from thoughtline.gateway.settings.keys import ANY, KEYS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def switched_on(text):
    """The file with every setting in it in effect."""
    return re.sub(r"^#(?=\[|\w+ = )", "", text, flags=re.MULTILINE)


def test_every_value_shown_is_the_default(folder):
    Path("thoughtline.toml").write_text(switched_on(template()), "utf-8")
    env = {"HOME": str(folder), "ALICE_KEY": "a", "DEEPSEEK_API_KEY": "d"}
    ours = load({}, env, folder)
    defaults = load({}, env, folder / "elsewhere")
    for section in ("server", "store", "replay", "log", "telemetry"):
        assert getattr(ours, section) == getattr(defaults, section)
    assert ours.access.admin_token == defaults.access.admin_token
    assert ours.access.clients["alice"].key.reveal() == "a"
    mine, theirs = ours.upstreams["deepseek"], defaults.upstreams["deepseek"]
    for name in ("base_url", "env_key", "policy", "models", "endpoints", "key", "idle_timeout"):
        assert getattr(mine, name) == getattr(theirs, name)


def test_every_key_is_in_it_with_a_line_about_it():
    lines = template().splitlines()
    for key in KEYS:
        name = key.path[-1] if key.path[-1] != ANY else key.path[-2]
        spots = [n for n, line in enumerate(lines) if line.startswith(f"#{name} = ")]
        assert any(lines[n - 1] == f"# {key.about}" for n in spots), key.path
    assert all(key.about.endswith(".") for key in KEYS)
    assert max(map(len, lines)) <= 100
