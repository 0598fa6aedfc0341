"""`thoughtline init`: the file it writes, and that it harms none."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from thoughtline.cli import main
from thoughtline.cli.init import init
from thoughtline.cli.init_template import template
from thoughtline.gateway.settings import load
from thoughtline.stores.sealing.sources import read_ring


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def keys(folder):
    return folder / "home" / ".config" / "thoughtline" / "thoughtline.keys"


def run(*arguments, env=None):
    return CliRunner().invoke(init, list(arguments), env=env)


def test_it_writes_a_file_that_seals_and_changes_nothing_else(folder, keys):
    result = run()
    assert result.exit_code == 0
    assert "Wrote thoughtline.toml" in result.output
    assert "thoughtline doctor  " in result.output
    assert "Keep a copy of that file" in result.output
    env = {"HOME": str(folder / "home")}
    sealed, elsewhere = load({}, env, folder), load({}, env, folder / "elsewhere")
    assert sealed == elsewhere  # the keys belong to the user's store
    assert sealed.store.keys == f"file:{keys}"
    other = load({"store_url": "sqlite:///other.db"}, env, folder / "elsewhere")
    assert other.store.keys == ""
    keys.rename(folder / "away.keys")
    plain = load({}, env, folder / "elsewhere")
    assert replace(sealed, store=replace(sealed.store, keys="")) == plain
    (folder / "away.keys").rename(keys)
    assert keys.stat().st_mode & 0o777 == 0o600
    assert keys.parent.stat().st_mode & 0o777 == 0o700
    [id] = read_ring(sealed.store.keys, {}).ids
    assert id not in result.output
    assert {n for n, v in tomllib.loads(template()).items() if v} == set()


def test_a_store_that_is_there_is_left_as_it_is(folder, keys):
    store = folder / "home" / ".local" / "share" / "thoughtline" / "thoughtline.db"
    store.parent.mkdir(parents=True)
    store.touch()
    assert run().exit_code == 0
    assert Path("thoughtline.toml").read_text("utf-8") == template()
    assert not keys.exists()


def test_keys_that_are_there_stay(folder, keys):
    assert run().exit_code == 0
    before = keys.read_bytes()
    assert run("--force").exit_code == 0
    assert keys.read_bytes() == before


def test_commands_in_other_folders_find_the_keys(folder, keys, monkeypatch):
    """A second project, one without settings, and settings somewhere else: all have one store."""
    ran(main, "init")
    ran(main, "chat", "--provider", "sim:deepseek", says="Say canary-77\n")
    for name in ("second", "none"):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        if name == "second":
            ran(main, "init")
            assert "keys =" not in Path("thoughtline.toml").read_text().replace("#keys =", "")
        assert "canary-77" in ran(main, "show", "last")
        assert "1 tenants" in ran(main, "keys", "list")
        assert "sound" in ran(main, "store", "check")
        assert "wraps what is new" in ran(main, "keys", "rotate")
        assert "sealed" in ran(main, "doctor")
    keys.rename(folder / "away.keys")
    told = CliRunner().invoke(main, ["sessions"])
    assert told.exit_code == 1 and "give the settings that do with `--config`" in told.output


def test_with_a_path_the_keys_are_beside_the_settings(folder, keys, monkeypatch):
    (folder / "etc").mkdir()
    (folder / "else").mkdir()
    ran(main, "init", "--path", "etc/gateway.toml")
    assert (folder / "etc" / "gateway.keys").exists() and not keys.exists()
    ran(main, "chat", "--provider", "sim:deepseek", "--config", "etc/gateway.toml", says="Say hi\n")
    monkeypatch.chdir(folder / "else")
    assert "1 tenants" in ran(main, "keys", "list", "--config", "../etc/gateway.toml")


def ran(command, *arguments, says=""):
    result = CliRunner().invoke(command, list(arguments), input=says)
    assert result.exit_code == 0, result.output
    return result.output


def test_nothing_is_overwritten_unasked(folder, keys):
    Path("thoughtline.toml").write_text("# mine")
    result = run()
    assert result.exit_code == 1
    assert "nothing was written" in result.output
    assert Path("thoughtline.toml").read_text() == "# mine"
    assert not keys.exists()
    assert run("--force").exit_code == 0
    assert Path("thoughtline.toml").read_text("utf-8") == template(store_keys=f"file:{keys}")


def test_another_place(folder):
    result = run("--path", "other.toml")
    assert result.exit_code == 0
    assert "thoughtline doctor --config other.toml" in result.output
    assert Path("other.toml").exists() and Path("other.keys").exists()


def test_a_place_that_cannot_be(folder):
    result = run("--path", "no/such/folder.toml")
    assert result.exit_code == 1
    assert "cannot write no/such/folder.toml: there is no such folder" in result.output


def test_a_home_that_cannot_be_written_leaves_no_settings_behind(folder):
    (folder / "home").write_text("a file")
    result = run()
    assert result.exit_code == 1 and "thoughtline.keys" in str(result.exception or result.output)
    assert not (folder / "thoughtline.toml").exists()
    assert CliRunner().invoke(main, ["sessions"]).exit_code in (0, 1)


def test_it_says_which_keys_it_found(folder):
    env = {"DEEPSEEK_API_KEY": "sk-hush", "OPENAI_API_KEY": None}
    result = run(env=env)
    assert "deepseek ($DEEPSEEK_API_KEY)" in result.output
    assert "hush" not in result.output
