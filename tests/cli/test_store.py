"""`thoughtline store`: migrate, copy, backup, check."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from stores.samples import turn
from thoughtline.cli import main
from thoughtline.stores import open_store


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


def test_migrate_does_nothing_the_second_time(url):
    assert "up to date" in thoughtline("migrate", "--store", url)
    assert json.loads(thoughtline("migrate", "--store", url, "--json")) == {"migrations": []}


def test_what_is_not_there_is_not_made(url, tmp_path):
    assert "there is no store" in thoughtline("copy", "sqlite:///no.db", url, code=1)
    assert "there is no store" in thoughtline("check", "--store", "sqlite:///no.db", code=1)
    assert not (tmp_path / "no.db").exists()
