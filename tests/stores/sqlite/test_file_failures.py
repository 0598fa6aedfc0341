"""A full disk, a lock, a read-only disk, a file that is gone: said clearly, and then over."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from stores.samples import appended, notes, plain, turn
from support.sqlite_files import NAME, check, held
from support.waiting import patiently
from thoughtline.errors import Unavailable
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import SqliteStore

NOBODY = 65534


def big(session="s", size=20_000):
    return Batch(session=session, tenant="T", drafts=(plain(data=f'"{"x" * size}"'),))


async def until_unavailable(store, message):
    """Append until it fails, with this message; what was acknowledged."""
    written = []

    async def fill():
        for _ in range(1000):
            written.extend(await appended(store, big()))

    with pytest.raises(Unavailable, match=message):
        await fill()
    return written


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own: mount options are remounted by `remount`."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk; root may")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def remount(disk, mode):
    subprocess.run(["mount", "-o", f"remount,{mode}", disk], check=True)


# -- full ------------------------------------------------------------------------------------


async def test_a_full_disk(disk):
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(800_000))
    store = SqliteStore(disk / "store.db")
    written = await until_unavailable(store, "full; free some space")
    assert written
    assert await store.read("s") == written  # reading goes on
    with pytest.raises(Unavailable, match="full"):
        await store.append(big())
    ballast.unlink()
    await check(store, written)
    await store.close()


async def test_a_disk_that_is_full_from_the_start(disk):
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    store = SqliteStore(disk / "store.db")
    with pytest.raises(Unavailable, match="space"):
        await store.append(notes("s"))
    ballast.unlink()
    await check(store, [])
    await store.close()


async def test_no_more_pages(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    await store.append(notes("early"))
    await store._writer.run(lambda db: db.execute("PRAGMA max_page_count = 60").fetchone())
    written = await until_unavailable(store, "full")
    assert written
    await check(store, written)  # the next connection has no such limit
    await store.close()


LIMITED = """
import asyncio, json, resource, sys
sys.path.insert(0, sys.argv[1])
from stores.sqlite.test_file_failures import big
from thoughtline.errors import Unavailable
from thoughtline.stores.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[2])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    acknowledged, said = 0, ""
    try:
        while acknowledged < 1000:
            await store.append(big())
            acknowledged += 1
    except Unavailable as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    more = await store.append(big())
    await store.close()
    sys.stdout.write(json.dumps([acknowledged, said, more]))

asyncio.run(main())
"""


async def test_a_file_that_may_not_grow(tmp_path):
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", LIMITED, Path(__file__).parents[2], path]
    done = await asyncio.to_thread(subprocess.check_output, command)
    acknowledged, said, more = json.loads(done)
    assert 0 < acknowledged < 1000
    assert str(path) in said
    assert "try again" in said
    assert more == acknowledged
    store = SqliteStore(path)
    assert [e.seq for e in await store.read("s")] == list(range(acknowledged + 1))
    await store.close()


# -- locked ----------------------------------------------------------------------------------


async def test_locked_by_another_process(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path, timeout=0.05)
    written = await appended(store, turn("s", "t1", '"x"', keys=[NAME]))
    with held(path):
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"locked by another process.*try again"):
                await store.append(notes("s"))
        with pytest.raises(Unavailable, match="locked"):
            await store.purge(session="s")
        assert await store.read("s") == written
        assert set(await store.find("T", [NAME])) == {NAME}
        assert len(await store.sessions()) == 1
    await check(store, written)
    await store.close()


async def test_locked_for_everybody(tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as db:  # not in write-ahead mode yet: a lock keeps readers out too
        db.execute("PRAGMA application_id = 0x54484c31")
    db.close()
    store = SqliteStore(path, timeout=0.05)
    with held(path, "BEGIN EXCLUSIVE"):
        for call in (store.append(notes("s")), store.read("s")):
            with pytest.raises(Unavailable, match="locked"):
                await call
    await check(store, [])
    await store.close()


# -- read-only -------------------------------------------------------------------------------


async def test_a_read_only_disk(disk):
    path = disk / "store.db"
    store = SqliteStore(path)
    written = await appended(store, turn("s", "t1", '"x"', keys=[NAME]))
    await store.close()
    remount(disk, "ro")
    store = SqliteStore(path)
    with pytest.raises(Unavailable, match=r"read-only.*make it writable"):
        await store.append(notes("s"))
    assert await store.read("s") == written
    assert set(await store.find("T", [NAME])) == {NAME}
    assert len(await store.sessions()) == 1  # although the hit cannot be written
    remount(disk, "rw")
    await check(store, written)
    await store.close()


@contextmanager
def unprivileged():
    """Somebody whom permissions bind; root becomes another user for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def place():
    """A folder that another user finds as well: only root may look into that of the tests."""
    with tempfile.TemporaryDirectory(prefix="thoughtline-") as folder:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, -1)
        yield Path(folder)


async def test_a_read_only_directory(place):
    place.chmod(0o555)
    with unprivileged():
        store = SqliteStore(place / "store.db")
        with pytest.raises(Unavailable, match="may write to"):
            await store.append(notes("s"))
        place.chmod(0o755)
        await check(store, [])
        await store.close()


# -- gone ------------------------------------------------------------------------------------


async def test_a_directory_that_is_not_there(tmp_path):
    store = SqliteStore(tmp_path / "later" / "store.db")
    for call in (store.append(notes("s")), store.read("s"), store.stats(), store.find("T", [NAME])):
        with pytest.raises(Unavailable, match=r"create the directory .*later"):
            await call
    (tmp_path / "later").mkdir()
    await check(store, [])
    await store.close()


async def test_a_path_that_is_a_directory(tmp_path):
    store = SqliteStore(tmp_path)
    with pytest.raises(Unavailable, match="it is a directory"):
        await store.append(notes("s"))
    await store.close()


async def test_a_file_that_was_removed(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.append(notes("s", 3))
    await store.read("s")
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(Unavailable, match="removed or replaced"):
        await store.append(notes("s", expect=2))
    (event,) = await patiently(lambda: appended(store, notes("s")))
    assert event.seq == 0
    assert await patiently(lambda: store.read("s")) == [event]
    await store.close()


async def test_a_file_that_was_moved_away_from_its_log(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    written = await appended(store, notes("s", 3))
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="removed or replaced"):
        await store.append(notes("s"))
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"store.db-wal is there.*put the file back"):
            await store.append(notes("s"))
    (tmp_path / "elsewhere").rename(path)
    await check(store, written)
    await store.close()


async def test_a_file_that_is_removed_during_a_commit(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.append(notes("s"))
    write = store._writer._write

    def write_and_remove(*arguments):
        path.unlink()
        return write(*arguments)

    monkeypatch.setattr(store._writer, "_write", write_and_remove)
    with pytest.raises(Unavailable, match="not kept"):  # SQLite itself would not have noticed
        await store.append(notes("s"))
    await store.close()


async def test_a_directory_that_was_removed(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    store = SqliteStore(place / "store.db")
    await store.append(notes("s"))
    shutil.rmtree(place)
    for message in ("removed", "create the directory"):
        with pytest.raises(Unavailable, match=message):
            await store.append(notes("s"))
    place.mkdir()
    await check(store, [])
    await store.close()


async def test_a_file_that_was_replaced_by_a_backup(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.append(notes("s", 2))
    await store.close()
    shutil.copy(path, tmp_path / "backup.db")
    store = SqliteStore(path)
    await store.append(notes("s", 5))
    await store.read("s")
    for left in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    (tmp_path / "backup.db").rename(path)
    assert len(await patiently(lambda: store.read("s"))) == 2
    assert await patiently(lambda: store.append(notes("s"))) == 2
    await store.close()
