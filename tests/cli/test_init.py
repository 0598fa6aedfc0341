"""`thoughtline init`: the file it writes, and that it harms none."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from thoughtline.cli.init import init
from thoughtline.cli.init_template import template
from thoughtline.gateway.settings import load
from thoughtline.stores.sealing.sources import read_ring


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, env=None):
    return CliRunner().invoke(init, list(arguments), env=env)


def test_it_writes_a_file_that_seals_and_changes_nothing_else(folder):
    result = run()
    assert result.exit_code == 0
    assert "Wrote thoughtline.toml" in result.output
    assert "thoughtline doctor  " in result.output
    assert "Keep a copy of that file" in result.output
    env = {"HOME": str(folder)}
    sealed, plain = load({}, env, folder), load({}, env, folder / "elsewhere")
    keys = folder / "thoughtline.keys"
    assert sealed.store.keys == f"file:{keys}"
    assert replace(sealed, store=replace(sealed.store, keys="")) == plain
    assert keys.stat().st_mode & 0o777 == 0o600
    [id] = read_ring(sealed.store.keys, {}).ids
    assert id not in result.output
    assert {n for n, v in tomllib.loads(template()).items() if v} == set()


def test_a_store_that_is_there_is_left_as_it_is(folder):
    store = folder / "home" / ".local" / "share" / "thoughtline" / "thoughtline.db"
    store.parent.mkdir(parents=True)
    store.touch()
    assert run().exit_code == 0
    assert Path("thoughtline.toml").read_text("utf-8") == template()
    assert not Path("thoughtline.keys").exists()


def test_keys_that_are_there_stay(folder):
    assert run().exit_code == 0
    before = Path("thoughtline.keys").read_bytes()
    assert run("--force").exit_code == 0
    assert Path("thoughtline.keys").read_bytes() == before


def test_nothing_is_overwritten_unasked(folder):
    Path("thoughtline.toml").write_text("# mine")
    result = run()
    assert result.exit_code == 1
    assert "nothing was written" in result.output
    assert Path("thoughtline.toml").read_text() == "# mine"
    assert not Path("thoughtline.keys").exists()
    assert run("--force").exit_code == 0
    assert Path("thoughtline.toml").read_text("utf-8") == template(
        store_keys="file:thoughtline.keys"
    )


def test_another_place(folder):
    result = run("--path", "other.toml")
    assert result.exit_code == 0
    assert "thoughtline doctor --config other.toml" in result.output
    assert Path("other.toml").exists() and Path("other.keys").exists()


def test_a_place_that_cannot_be(folder):
    result = run("--path", "no/such/folder.toml")
    assert result.exit_code == 1
    assert "cannot write no/such/folder.toml: No such file" in result.output


def test_it_says_which_keys_it_found(folder):
    env = {"DEEPSEEK_API_KEY": "sk-hush", "OPENAI_API_KEY": None}
    result = run(env=env)
    assert "deepseek ($DEEPSEEK_API_KEY)" in result.output
    assert "hush" not in result.output
