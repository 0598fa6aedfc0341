"""Looks into a SQLite file, past the store."""

import sqlite3
import subprocess
import sys
from contextlib import contextmanager

from stores.samples import appended, notes


def edit(path, *statements):
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def look(path, statement):
    db = sqlite3.connect(path)
    found = db.execute(statement).fetchall()
    db.close()
    return found


NAME = b"n" * 16


async def check(store, written):
    """Everything acknowledged is there, and the store works."""
    written = written + await appended(store, notes("s", 2))
    assert await store.read("s") == written
    assert [e.seq for e in written] == list(range(len(written)))


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(sys.argv[2])
sys.stdout.write("held\\n"); sys.stdout.flush()
sys.stdin.readline()
"""


@contextmanager
def held(path, how="BEGIN IMMEDIATE"):
    """Another process that holds the file."""
    command = [sys.executable, "-c", HOLD, path, how]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("go\n")


def damage(path):
    """Overwrite the beginning of every page but the schema's, as a bad disk does."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    schema = {
        page for (page,) in db.execute("SELECT pageno FROM dbstat WHERE name='sqlite_schema'")
    }
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.close()
    with path.open("r+b") as file:
        for page in set(range(1, pages + 1)) - schema:
            file.seek(4096 * (page - 1))
            file.write(b"\xa5" * 300)
