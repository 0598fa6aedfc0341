"""Processes that die, processes that meet: nothing acknowledged is missing, no seq is skipped."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from stores.samples import appended, notes, watching
from thoughtline.stores.sqlite import SqliteStore

APPENDER = Path(__file__).with_name("appender.py")


@contextmanager
def appending(path, session, name, *, batches, at_once=8):
    command = [sys.executable, APPENDER, path, session, name, str(batches), str(at_once)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def acknowledged(lines):
    """What the process said it had written: seq → name."""
    return {int(seq): name for seq, name in (line.split() for line in lines if "\n" in line)}


async def check(path, session, said):
    """Every acknowledged batch is there and whole, and there is no gap."""
    store = SqliteStore(path)
    events = await store.read(session)
    await store.close()
    assert [e.seq for e in events] == list(range(len(events)))
    assert len(events) % 3 == 0, "a batch was torn"
    for seq, name in said.items():
        assert [e.id for e in events[seq : seq + 3]] == [name] * 3
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


MANY = 100_000
"""Batches that a process cannot have written before it is killed: what it says fills the pipe first."""


async def test_killed_in_the_middle_of_many_appends(tmp_path):
    path = tmp_path / "store.db"
    said = {}
    chance = random.Random()
    for life in range(4):
        with appending(path, "s", f"life{life}", batches=MANY) as process:
            stop = chance.randrange(1, 400)
            lines = [process.stdout.readline() for _ in range(stop)]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()  # said before it died
            assert process.wait() == -signal.SIGKILL
        said |= acknowledged(lines)
        await check(path, "s", said)
    assert len(said) >= 4


async def test_two_processes_write_to_one_session(tmp_path):
    path = tmp_path / "store.db"
    with (
        appending(path, "s", "one", batches=150) as one,
        appending(path, "s", "two", batches=150) as two,
    ):
        said = [
            acknowledged(process.communicate(timeout=60)[0].splitlines(keepends=True))
            for process in (one, two)
        ]
        assert (one.returncode, two.returncode) == (0, 0)
    both = said[0] | said[1]
    assert len(both) == 300
    assert sorted(both) == list(range(0, 900, 3))
    await check(path, "s", both)


async def test_a_watcher_sees_what_another_process_writes(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path, poll=0.02)
    await store.append(notes("s"))
    async with watching(store.watch("s", after=0)) as one, watching(store.watch()) as everything:
        await one.has(0)
        await store.append(notes("s"))
        await everything.has(1)
        with appending(path, "s", "other", batches=40) as process:
            assert [e.seq for e in await one.has(121)] == list(range(1, 122))
            assert [e.seq for e in await everything.has(121)] == list(range(1, 122))
            await asyncio.to_thread(process.communicate, timeout=60)
    await store.close()


async def test_processes_that_create_the_file_at_the_same_time(tmp_path):
    path = tmp_path / "store.db"
    with (
        appending(path, "a", "a", batches=5) as a,
        appending(path, "b", "b", batches=5) as b,
        appending(path, "a", "c", batches=5) as c,
    ):
        for process in (a, b, c):
            process.communicate(timeout=60)
            assert process.returncode == 0
    store = SqliteStore(path)
    assert len(await store.read("a")) == 30
    assert len(await store.read("b")) == 15
    await store.close()


@pytest.mark.parametrize("synchronous", ["normal", "full"])
async def test_what_is_not_closed_is_kept_too(tmp_path, synchronous):
    path = tmp_path / "store.db"
    store = SqliteStore(path, synchronous=synchronous)
    written = await appended(store, notes("s", 3))
    other = SqliteStore(path)  # the first one is still open, its log not yet in the file
    assert await other.read("s") == written
    await other.close()
    await store.close()
