"""`thoughtline store`: migrate, copy, backup, check."""

import asyncio
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from stores.samples import turn
from support.killed_commands import killed
from thoughtline.cli import main
from thoughtline.stores import open_store
from thoughtline.stores.spill import SpillFile


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    async def fill():
        store = open_store("sqlite:///t.db")
        for n in range(3):
            await store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[b"k" * 16]))
        await store.close()

    asyncio.run(fill())
    return "sqlite:///t.db"


def thoughtline(*args, code=0):
    ran = CliRunner().invoke(main, ["store", *args])
    assert ran.exit_code == code, ran.output
    return ran.output


def test_copy_check_and_back_up(url, tmp_path):
    copied = json.loads(thoughtline("copy", url, "sqlite:///copy/other.db", "--json"))
    assert (copied["sessions"], copied["events"], copied["entries"]) == (3, 9, 3)
    assert "0 had something new" in thoughtline("copy", url, "sqlite:///copy/other.db")
    checked = json.loads(thoughtline("check", "--store", "sqlite:///copy/other.db", "--json"))
    assert (checked["sessions"], checked["events"], checked["gaps"]) == (3, 9, [])
    thoughtline("backup", "backup.db", "--store", url)
    assert "3 session(s) with 9 event(s): sound" in thoughtline(
        "check", "--store", "sqlite:///backup.db"
    )
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    assert "is there already" in thoughtline("backup", "backup.db", "--store", url, code=1)
    assert "cannot be written (No such file" in thoughtline(
        "backup", "no/backup.db", "--store", url, code=1
    )


def test_turns_that_wait_beside_a_store_are_not_passed_over_in_silence(url, tmp_path):
    waiting = SpillFile.create(tmp_path / "t.db")
    waiting.append(turn("s3", "t3", '"x"'))
    waiting.close()
    for command in (("copy", url, "sqlite:///o.db"), ("backup", "b.db", "--store", url)):
        said = thoughtline(*command)
        assert "1 turn(s) wait in " in said and "t.db-spill-… and are not in the copy" in said
        assert "start a gateway" in said


def test_migrate_does_nothing_the_second_time(url):
    assert "up to date" in thoughtline("migrate", "--store", url)
    assert json.loads(thoughtline("migrate", "--store", url, "--json")) == {"migrations": []}


def test_what_is_not_there_is_not_made(url, tmp_path):
    assert "there is no store" in thoughtline("copy", "sqlite:///no.db", url, code=1)
    assert "there is no store" in thoughtline("check", "--store", "sqlite:///no.db", code=1)
    assert not (tmp_path / "no.db").exists()


def test_what_makes_no_sense_is_said(url, tmp_path):
    assert "are the same store" in thoughtline("copy", url, url, code=1)
    for command in (("copy", url, "memory://"), ("backup", "b.db", "--store", "memory://")):
        assert "belongs to its process" in thoughtline(*command, code=1)
    (tmp_path / "junk.db").write_text("no database at all")
    for command in (("check",), ("backup", "b.db")):
        assert "is damaged" in thoughtline(*command, "--store", "sqlite:///junk.db", code=1)
    assert not list(tmp_path.glob("*b.db*"))


def test_a_lost_key_is_named_once(url, tmp_path):
    for name in ("one", "two"):
        CliRunner().invoke(main, ["keys", "generate", "--file", f"{name}.keys"])
        (tmp_path / f"{name}.toml").write_text(f'[store]\nkeys = "file:{name}.keys"\n')
    thoughtline("copy", url, "sqlite:///sealed.db", "--config", "one.toml")
    told = thoughtline("check", "--store", "sqlite:///sealed.db", "--config", "two.toml", code=1)
    assert told.count("is not in the ring") == 1 and "s1" not in told
    # Sealed to plain, plain to sealed, and from one key to another.
    copies = [
        ("sealed.db", "plain.db", "--from-keys", "file:one.keys"),
        ("plain.db", "again.db", "--config", "two.toml"),
        ("sealed.db", "other.db", "--config", "two.toml", "--from-keys", "file:one.keys"),
    ]
    for source, target, *options in copies:
        done = thoughtline("copy", f"sqlite:///{source}", f"sqlite:///{target}", *options, "--json")
        assert (json.loads(done)["events"], json.loads(done)["entries"]) == (9, 3)
    thoughtline("check", "--store", "sqlite:///plain.db")
    for name in ("again", "other"):
        thoughtline("check", "--store", f"sqlite:///{name}.db", "--config", "two.toml")


FULL = """
import resource, sys
from thoughtline.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (61440, 61440))
main(sys.argv[1:])
"""


def test_a_disk_that_is_full_is_said_and_the_copy_goes_on_later(url, tmp_path):
    def limited(*arguments):
        command = [sys.executable, "-c", FULL, "store", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        return done.stderr

    assert "has space and allows files of this size" in limited("copy", url, "sqlite:///full.db")
    assert "has space and allows files of this size" in limited("backup", "b.db", "--store", url)
    assert not list(tmp_path.glob("*b.db*"))
    assert json.loads(thoughtline("copy", url, "sqlite:///full.db", "--json"))["events"] == 9


def test_a_copy_that_was_killed_goes_on(url, tmp_path):
    killed("copy", url, "sqlite:///copy.db")
    rest = json.loads(thoughtline("copy", url, "sqlite:///copy.db", "--json"))
    assert 0 < rest["copied"] < 3 and rest["conflicts"] == []
    assert "9 event(s): sound" in thoughtline("check", "--store", "sqlite:///copy.db")


def test_a_backup_that_was_killed_leaves_no_half(url, tmp_path):
    killed("backup", "b.db", "--store", url)
    assert not (tmp_path / "b.db").exists()
    [part] = tmp_path.glob(".b.db.part*")
    assert part.stat().st_mode & 0o777 == 0o600
    thoughtline("backup", "b.db", "--store", url)
    assert "9 event(s): sound" in thoughtline("check", "--store", "sqlite:///b.db")
    assert not list(tmp_path.glob(".b.db*"))
