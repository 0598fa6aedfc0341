"""`thoughtline keys`: from a plain store to a sealed one, and from one key to the next."""

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from stores.samples import notes
from thoughtline.cli import main
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.sources import read_ring
from thoughtline.stores.spill import SpillFile

CANARY = "canary-5d1e"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    configure("")
    return tmp_path


def configure(more):
    Path("thoughtline.toml").write_text(f'[store]\nurl = "sqlite:///talk.db"\n{more}')


def run(*arguments, says=""):
    return CliRunner().invoke(main, list(arguments), input=says)


def ran(*arguments, says=""):
    result = run(*arguments, says=says)
    assert result.exit_code == 0, result.output
    return result.output


def talk():
    ran("chat", "--provider", "sim:deepseek", says=f"Say {CANARY}\n")


def on_disk():
    return b"".join(file.read_bytes() for file in Path().glob("talk.db*"))


def test_a_key_is_printed_or_added_to_a_file(folder):
    line = ran("keys", "generate").strip()
    assert line.count(":") == 1
    told = ran("keys", "generate", "--file", "ring.keys")
    assert 'keys = "file:ring.keys"' in told and "Keep a copy elsewhere" in told
    again = json.loads(ran("keys", "generate", "--file", "ring.keys", "--json"))
    text = Path("ring.keys").read_text()
    assert again["id"] in text and text.count(":") == 2 + text.partition("\n2")[0].count(":")
    assert line not in text


def test_a_plain_store_is_sealed_while_it_is_there(folder):
    talk()
    assert CANARY.encode() in on_disk()
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    assert CANARY in ran("show", "last")  # what is plain is read as it is
    assert "2 rows are plain" in ran("keys", "list")
    assert ran("keys", "re-encrypt") == "2 rows sealed\n"
    assert CANARY.encode() not in on_disk()
    assert CANARY in ran("show", "last")
    talk()
    assert CANARY.encode() not in on_disk()
    report = json.loads(ran("keys", "list", "--json"))
    assert report["plain"] == 0 and [key["rows"] for key in report["keys"]] == [4]
    assert "everything that was tried opens" in ran("keys", "check")
    assert len(ran("export", "last").splitlines()) > 1 and CANARY in ran("export", "last")
    configure('keys = "file:ring.keys"\nrequire_sealed = true\n')
    assert CANARY in ran("show", "last")


def test_without_its_keys_nothing_is_shown_and_the_key_is_named(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    id = json.loads(ran("keys", "list", "--json"))["keys"][0]["id"]
    configure("")
    refused = run("show", "last")
    assert refused.exit_code == 1 and f"is sealed with the key {id}" in refused.output
    assert "store.keys" in refused.output
    refused = run("keys", "list")
    assert refused.exit_code == 1 and "`store.keys` is not set" in refused.output
    ran("keys", "generate", "--file", "other.keys")
    configure('keys = "file:other.keys"\n')
    refused = run("show", "last")
    assert refused.exit_code == 1 and f"the key {id} is not in the ring" in refused.output
    checked = run("keys", "check")
    assert checked.exit_code == 1 and f"the key {id} is not in the ring" in checked.output
    assert "lost: not in the ring" in ran("keys", "list")


def test_a_key_is_rotated_and_the_old_one_retired(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    old = json.loads(ran("keys", "list", "--json"))["keys"][0]["id"]
    new = json.loads(ran("keys", "generate", "--file", "ring.keys", "--json"))["id"]
    refused = run("keys", "retire", old, "--yes")
    assert refused.exit_code == 1 and "wraps what is new" in refused.output
    assert json.loads(ran("keys", "rotate", "--json"))["primary"] == new
    assert ran("keys", "rotate").endswith("0 keys of tenants were wrapped again\n")
    assert json.loads(ran("keys", "re-encrypt", "--json")) == {"sealed": 2}
    assert "Nobody can be asked here" in run("keys", "retire", old).output
    assert f"{old} is removed from" in ran("keys", "retire", old, "--yes")
    assert old not in Path("ring.keys").read_text()
    assert CANARY in ran("show", "last")
    assert run("keys", "rotate", "--to", old).exit_code == 1
    assert run("keys", "retire", "nobody", "--yes").exit_code == 1


def test_the_way_back_to_plain(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    assert run("keys", "re-encrypt", "--plain").exit_code == 2
    assert ran("keys", "re-encrypt", "--plain", "--yes") == "2 rows opened\n"
    configure("")
    assert CANARY in ran("show", "last")


@pytest.fixture
def plain_store(folder):
    """A store that is plain, and a ring that the settings may name."""
    talk()
    ran("keys", "generate", "--file", "ring.keys")


def test_no_command_seals_while_that_is_switched_off(plain_store):
    configure('keys = "file:ring.keys"\nseal = false\n')
    talk()
    ran("index", "--rebuild")
    ran("store", "copy", "sqlite:///talk.db", "sqlite:///copy.db")
    ran("doctor")
    assert json.loads(ran("keys", "list", "--json"))["plain"] == 4
    configure("")  # nor is a process without keys refused
    for name in ("talk", "copy"):
        assert CANARY in ran("show", "last", "--store", f"sqlite:///{name}.db")


def test_what_is_plain_is_refused_by_commands_where_the_settings_say_so(plain_store):
    configure('keys = "file:ring.keys"\nrequire_sealed = true\n')
    for command in (["show", "last"], ["export", "last"], ["store", "check"]):
        refused = run(*command)
        assert refused.exit_code == 1 and "`store.require_sealed` is set" in refused.output
    ran("store", "copy", "sqlite:///talk.db", "sqlite:///copy.db")  # into what is sealed
    ran("store", "check", "--store", "sqlite:///copy.db")


def test_before_there_is_a_store(folder):
    configure('keys = "env:RING"\n')
    assert "there is no store yet" in run("keys", "list").output
    configure('url = "memory://"\n'.replace("url", "#url"))
    assert "there is no store yet" in run("keys", "check").output


def test_a_key_that_waiting_turns_need_is_not_retired(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    old = read_ring("file:ring.keys", {})
    waiting = SpillFile.create(folder / "talk.db", Keychain(old))
    waiting.append(notes("s"))
    waiting.close()
    ran("keys", "generate", "--file", "ring.keys")
    ran("keys", "rotate")
    refused = run("keys", "retire", old.newest.id, "--yes")
    assert refused.exit_code == 1 and "turns that wait in talk.db-spill-" in refused.output


def test_look_up_keys_get_a_new_key_with_names(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()

    def names():
        with sqlite3.connect("talk.db") as db:
            return {name for (name,) in db.execute("SELECT name FROM lookup_keys")}

    before = names()
    assert ran("keys", "re-encrypt") == "2 rows sealed\n" and names() == before
    assert ran("keys", "re-encrypt", "--names") == "2 rows sealed\n"
    assert len(names()) == len(before) and not names() & before
    assert "everything that was tried opens" in ran("keys", "check")
    assert run("keys", "re-encrypt", "--names", "--plain").exit_code == 2


@pytest.mark.parametrize("command", [("rotate", "--to", "typo"), ("retire", "typo", "--yes")])
def test_a_key_that_is_not_there_is_named(folder, command):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    told = run("keys", *command)
    assert told.exit_code == 1 and "there is no key typo in the ring; it has 20" in told.output


def test_a_key_that_is_used_again_while_somebody_is_asked_stays(folder, monkeypatch):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    old = json.loads(ran("keys", "list", "--json"))["keys"][0]["id"]
    ran("keys", "generate", "--file", "ring.keys")
    ran("keys", "rotate")

    def rotate_back(question, *, yes):
        ran("keys", "rotate", "--to", old)

    monkeypatch.setattr("thoughtline.cli.keys.confirm", rotate_back)
    told = run("keys", "retire", old)
    assert told.exit_code == 1 and "wraps what is new" in told.output
    assert old in Path("ring.keys").read_text()


def test_rows_that_nobody_can_read_any_more_are_counted(folder):
    ran("keys", "generate", "--file", "ring.keys")
    configure('keys = "file:ring.keys"\n')
    talk()
    assert "nobody can read" not in ran("keys", "list")
    with sqlite3.connect("talk.db") as db:
        db.execute("DELETE FROM tenant_keys")
    assert "2 rows are sealed with keys of tenants that were deleted" in ran("keys", "list")
