"""The header of the WAL index: it changes with every commit, and reading it costs no lock."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from thoughtline.stores.sqlite import wal_index
from thoughtline.stores.sqlite.wal_index import WalIndex, unmap_deleted

ADD = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute({!r}); db.commit()"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
def db(path):
    made = sqlite3.connect(path, isolation_level=None)
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("CREATE TABLE numbers (number INTEGER)")
    yield made
    made.close()
    unmap_deleted()


def elsewhere(path, statement):
    """Run a statement in another process, with Python's own sqlite3."""
    subprocess.run([sys.executable, "-c", ADD.format(statement), str(path)], check=True)


def write_at_once(path):
    """Begin to write in another process, without waiting for a lock; returns what it says."""
    begin = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    )
    command = [sys.executable, "-c", begin, str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return told.stderr


def test_it_stays_the_same_while_nothing_is_committed(path, db):
    index = WalIndex(path)
    before = index.header()
    assert before is not None
    db.execute("SELECT * FROM numbers").fetchall()
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO numbers VALUES (1)")
    assert index.header() == before
    db.execute("ROLLBACK")
    assert index.header() == before
    assert index.reads(before)


def test_every_commit_changes_it_whoever_makes_it(path, db):
    index = WalIndex(path)
    seen = {index.header()}
    for number in range(3):
        db.execute("INSERT INTO numbers VALUES (?)", (number,))
        seen.add(index.header())
        elsewhere(path, f"INSERT INTO numbers VALUES ({number})")
        seen.add(index.header())
    assert None not in seen
    assert len(seen) == 7


def test_a_log_that_begins_again_does_not_look_like_one_of_before(path, db):
    index = WalIndex(path)
    seen = []
    for number in range(4):
        db.execute("INSERT INTO numbers VALUES (?)", (number,))
        seen.append(index.header())
        db.execute("PRAGMA wal_checkpoint(RESTART)")
    assert len(set(seen)) == 4


def test_half_a_change_and_an_unknown_version_are_not_read(path, db):
    index = WalIndex(path)
    assert index.header() is not None
    shared = Path(f"{path}-shm")
    with shared.open("r+b") as file:  # nobody else has it open in this test but `db`
        whole = file.read(96)
        for changed in (whole[:60] + b"\xff" + whole[61:], (b"\x01" * 4 + whole[4:48]) * 2):
            file.seek(0)
            file.write(changed)
            file.flush()
            assert index.header() is None
            assert not index.reads(whole)
        file.seek(0)
        file.write(whole)


def test_without_an_index_there_is_no_header(tmp_path):
    assert WalIndex(tmp_path / "nothing.db").header() is None
    sqlite3.connect(tmp_path / "plain.db").execute("CREATE TABLE t (x)").close()
    assert WalIndex(tmp_path / "plain.db").header() is None
    assert not WalIndex(tmp_path / "plain.db").reads(None)


def test_mapping_an_index_does_not_lose_the_locks_of_sqlite(path, db):
    db.execute("BEGIN IMMEDIATE")
    first, second = WalIndex(path), WalIndex(path)
    assert len(open_indexes(path)) == 3  # SQLite's own, and the two of the one mapping
    del first, second
    unmap_deleted()
    assert len(open_indexes(path)) == 3
    assert "locked" in write_at_once(path)
    db.execute("ROLLBACK")
    assert write_at_once(path) == ""


def test_a_deleted_index_is_let_go(path, db):
    WalIndex(path)
    db.close()  # the last connection: SQLite deletes the index
    assert not Path(f"{path}-shm").exists()
    unmap_deleted()
    assert open_indexes(path) == []


def test_what_took_the_place_of_a_closed_descriptor_stays_open(path, db, tmp_path):
    WalIndex(path)
    [ours] = [one for one in wal_index._mapped.values() if names_index(one.descriptor, path)]
    with tempfile.TemporaryFile(dir=tmp_path) as other:  # has no name, as a deleted index
        before = os.dup(ours.descriptor)
        os.dup2(other.fileno(), ours.descriptor)
        unmap_deleted()
        assert os.fstat(ours.descriptor).st_ino == os.fstat(other.fileno()).st_ino
        os.dup2(before, ours.descriptor)
    os.close(before)


def names_index(descriptor, path):
    return os.path.samestat(os.fstat(descriptor), Path(f"{path}-shm").stat())


def open_indexes(path):
    """Descriptors of this process that stand for the index of a file, deleted or not."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing is gone
            if str(descriptor.readlink()).removesuffix(" (deleted)") == f"{path}-shm":
                found.append(descriptor.name)
    return found
