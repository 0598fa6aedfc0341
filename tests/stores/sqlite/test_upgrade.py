"""A file of an earlier version is brought up to date, or stays as it was."""

import gzip
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import written_before
from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.sqlite import SqliteStore, migrations, one_row_per_turn
from thoughtline.stores.sqlite.upgrade import missing_steps, upgrade

OLD = Path(written_before.__path__[0]) / "layout_3.db.gz"
KILLED = """
import os, signal, sys
from pathlib import Path
from thoughtline.stores.sqlite import one_row_per_turn
from thoughtline.stores.sqlite.upgrade import upgrade

def progress(done, total):
    if done > total / 2:
        os.kill(os.getpid(), signal.SIGKILL)

one_row_per_turn.WINDOW = 10
upgrade(Path(sys.argv[1]), progress)
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def events(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT * FROM events ORDER BY position").fetchall()


def rows(path):
    """All that a file holds, to the byte."""
    with closing(sqlite3.connect(path)) as db:
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def test_what_is_missing_is_told_and_then_done(path, tmp_path, monkeypatch):
    monkeypatch.setattr(one_row_per_turn, "WINDOW", 10)
    assert missing_steps(path) == [name for n, name in migrations.steps().items() if n > 3]
    steps = []
    upgrade(path, lambda *step: steps.append(step))
    assert len(steps) > 3 and steps[-1][0] == steps[-1][1] and steps == sorted(steps)
    assert missing_steps(path) == missing_steps(tmp_path / "none.db") == []
    (tmp_path / "text").write_text("no database")
    assert missing_steps(tmp_path / "text") == []


def killed(path):
    return subprocess.run([sys.executable, "-c", KILLED, path], timeout=60, check=False).returncode


@pytest.mark.parametrize("how", ["interrupted", "killed"])
async def test_a_file_that_was_not_finished_is_as_it_was(path, how, tmp_path, monkeypatch):
    before = events(path)
    if how == "killed":
        assert killed(path) == -signal.SIGKILL
    else:
        monkeypatch.setattr(one_row_per_turn, "WINDOW", 10)

        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            upgrade(path, stop)
    assert before and events(path) == before
    undisturbed = tmp_path / "undisturbed.db"
    undisturbed.write_bytes(gzip.decompress(OLD.read_bytes()))
    upgrade(path)
    upgrade(undisturbed)
    assert rows(path) == rows(undisturbed)
    store = SqliteStore(path)
    assert (await store.stats()).events == len(before)
    await store.close()


def test_a_file_in_use_is_not_touched(path, monkeypatch):
    monkeypatch.setattr("thoughtline.stores.sqlite.upgrade.TIMEOUT", 0.05)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM events").fetchone()
        with pytest.raises(Unavailable, match="locked by another process"):
            upgrade(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="newer Thoughtline"):
        upgrade(path)
