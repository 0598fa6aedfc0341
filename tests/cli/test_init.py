"""`thoughtline init`: the file it writes, and that it harms none."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from thoughtline.cli.init import init
from thoughtline.cli.init_template import template
from thoughtline.gateway.settings import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, env=None):
    return CliRunner().invoke(init, list(arguments), env=env)


def test_it_writes_a_file_that_changes_nothing(folder):
    result = run()
    assert result.exit_code == 0
    assert "Wrote thoughtline.toml" in result.output
    assert "thoughtline doctor  " in result.output
    env = {"HOME": str(folder)}
    assert load({}, env, folder) == load({}, env, folder / "elsewhere")
    assert {n for n, v in tomllib.loads(template()).items() if v} == set()


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
