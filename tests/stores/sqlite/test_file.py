"""The file: how it is opened, and for whom."""

import sqlite3

import pytest

from stores.samples import notes
from support.sqlite_files import edit
from thoughtline.errors import StoreError
from thoughtline.stores.sqlite import (
    SqliteStore,
    migrations,
)
from thoughtline.stores.sqlite.file import DatabaseFile


def test_a_reader_beside_the_one_who_creates_the_file(tmp_path):
    """Between any two looks at a new file, its creator may commit."""
    path = tmp_path / "store.db"
    edit(path, "PRAGMA journal_mode = WAL")

    class Interrupted(sqlite3.Connection):
        looks = 0

        def execute(self, statement, *rest):
            found = super().execute(statement, *rest)
            if "application_id" in statement and not Interrupted.looks:
                Interrupted.looks += 1
                found = [found.fetchone()]
                DatabaseFile(path, timeout=1, synchronous="full").for_writing().close()
                return type("Found", (), {"fetchone": lambda _: found[0]})()
            return found

    db = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
    with pytest.raises(migrations.NotMigrated):
        migrations.check(db, path, complete=True)
    assert migrations.check(db, path, complete=True) == max(migrations.steps())
    db.close()


async def test_the_file_is_its_users_alone(store, tmp_path):
    await store.append(notes("s"))
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


def test_a_wrong_setting_is_refused(tmp_path):
    with pytest.raises(StoreError, match="normal or full"):
        SqliteStore(tmp_path / "store.db", synchronous="off")
