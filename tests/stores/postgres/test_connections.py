"""The connections of a process."""

import asyncio

import pytest

from stores.postgres.conftest import waiting
from stores.samples import notes, turn
from stores.sealed_samples import keychain
from thoughtline.errors import Unavailable
from thoughtline.stores.postgres import PostgresStore, connections
from thoughtline.stores.postgres.connections import LONGEST_PAUSE, READERS, TIMEOUT

_OURS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

_WRITER = (
    "SELECT pid FROM pg_locks WHERE relation = 'batches'::regclass AND mode = 'RowExclusiveLock'"
)


@pytest.fixture
async def hasty(database, clock):
    """A store that does not wait until a server is back."""
    store = PostgresStore(database, clock=clock, patience=0.0)
    yield store
    await store.close()


async def test_a_process_takes_four_connections_at_most(store, db):
    await asyncio.gather(
        *(store.read("s") for _ in range(40)), *map(store.append, [notes("s")] * 9)
    )
    assert await db.fetchval(_OURS) <= 4


async def test_a_connection_that_was_cut_is_replaced(store, db):
    await store.append(notes("s"))
    await asyncio.gather(*(store.read("s") for _ in range(4)))
    await db.fetch(_KILL)
    await store.append(notes("s"))
    for _ in range(8):
        try:
            assert len(await store.read("s")) == 2
            break
        except Unavailable:
            continue
    assert len(await store.read("s")) == 2


async def test_who_stops_waiting_blocks_nobody(store, db):
    await store.read("s")
    async with db.transaction():
        await db.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        reading = [asyncio.create_task(store.read("s")) for _ in range(6)]
        await waiting(db, READERS)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    assert await store.read("s") == []


async def test_nobody_listens_there(clock):
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/none", clock=clock, patience=0.0)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1/none"):
        await store.read("s")
    with pytest.raises(Unavailable):
        await store.append(notes("s"))
    await store.close()


async def test_a_server_that_restarts_is_waited_for(database, clock, db):
    store = PostgresStore(database, clock=clock, patience=60.0)
    await store.append(notes("s"))
    connect = store._connections._address.connect
    refused = []

    async def down():
        if len(refused) < 5:
            refused.append(1)
            raise ConnectionRefusedError(111, "refused")
        return await connect()

    store._connections._address.connect = down
    await db.fetch(_KILL)
    await store.append(notes("s"))
    assert await store.find("T", [b"k" * 16]) == {}
    assert len(refused) == 5 and len(await store.read("s")) == 2
    await store.close()


async def test_a_statement_has_a_time_limit(store, db):
    await store.read("s")
    store._connections._timeout = 0.1
    async with db.transaction():
        await db.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="in time"):
            await store.read("s")
    store._connections._timeout = 10.0
    assert await store.read("s") == []


async def test_what_looks_at_all_there_is_may_take_longer(nodes, db, loop_clock):
    store = nodes(keychain())
    await store.append(turn("s", "t1", '"x"'))
    await db.execute("SELECT pg_advisory_lock_shared(7305, 4)")  # as who is just committing
    sealing = asyncio.create_task(store.vault.reseal())
    await waiting(db, 1)
    await loop_clock.advance(TIMEOUT * 9)
    assert not sealing.done()
    await db.execute("SELECT pg_advisory_unlock_shared(7305, 4)")
    assert await sealing == 0


async def test_a_large_batch_has_more_time(hasty, db, loop_clock, monkeypatch):
    store = hasty
    monkeypatch.setattr(connections, "SLOWEST_LINE", 1 << 10)
    await store.append(turn("s", "t1", '"x"'))
    async with db.transaction():
        await db.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        large = asyncio.create_task(store.append(turn("s", "t2", f'"{"x" * (60 << 10)}"')))
        small = asyncio.create_task(store.read("s"))
        await waiting(db, 2)
        first = await db.fetchval(_WRITER)
        await loop_clock.advance(TIMEOUT + 30)
        with pytest.raises(Unavailable, match="in time"):
            await small
        assert await db.fetchval(_WRITER) == first  # it was not cut, and said again
    assert await large == 3


async def test_a_new_connection_that_is_not_answered_is_given_up(hasty, db, loop_clock):
    store = hasty
    async with db.transaction():
        await db.execute("LOCK TABLE home IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(store.read("s"))
        await waiting(db, 1)
        await loop_clock.advance(TIMEOUT + 1)
        with pytest.raises(Unavailable, match="in time"):
            await reading
    await loop_clock.advance(LONGEST_PAUSE)
    assert await store.read("s") == []
