"""`thoughtline init`: the file it writes, and that it harms none."""

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from thoughtline.cli.init import init
from thoughtline.settings import load
from thoughtline.settings.schema import ANY, KEYS
from thoughtline.settings.templates import template


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, env=None):
    return CliRunner().invoke(init, list(arguments), env=env)


def switched_on(text):
    """The file with every setting in it in effect."""
    return re.sub(r"^#(?=\[|\w+ = )", "", text, flags=re.MULTILINE)


def test_it_writes_a_file_that_changes_nothing(folder):
    result = run()
    assert result.exit_code == 0
    assert "Wrote thoughtline.toml" in result.output
    assert "thoughtline doctor  " in result.output
    env = {"HOME": str(folder)}
    assert load({}, env, folder) == load({}, env, folder / "elsewhere")
    assert {n for n, v in tomllib.loads(template()).items() if v} == set()


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


def test_nothing_is_overwritten_unasked(folder):
    Path("thoughtline.toml").write_text("# mine")
    result = run()
    assert result.exit_code == 1
    assert "nothing was written" in result.output
    assert Path("thoughtline.toml").read_text() == "# mine"
    assert run("--force").exit_code == 0
    assert Path("thoughtline.toml").read_text("utf-8") == template()


def test_another_place(folder):
    result = run("--path", "other.toml")
    assert result.exit_code == 0
    assert "thoughtline doctor --config other.toml" in result.output
    assert Path("other.toml").exists()


def test_a_place_that_cannot_be(folder):
    result = run("--path", "no/such/folder.toml")
    assert result.exit_code == 1
    assert "cannot write no/such/folder.toml: No such file" in result.output


def test_it_says_which_keys_it_found(folder):
    env = {"DEEPSEEK_API_KEY": "sk-hush", "OPENAI_API_KEY": None}
    result = run(env=env)
    assert "deepseek ($DEEPSEEK_API_KEY)" in result.output
    assert "hush" not in result.output
