"""Deleting sessions."""

import asyncio

from stores.samples import notes, turn
from thoughtline.stores.postgres import purge

A, B = b"a" * 16, b"b" * 16
TABLES = ("sessions", "batches", "entries", "names", "pointers")


async def test_nothing_is_left(store, db):
    for n in range(5):
        await store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[A, B], calls=("c",)))
    assert await store.purge(tenant="T") == 5
    for table in TABLES:
        assert await db.fetchval(f"SELECT count(*) FROM {table}") == 0


async def test_a_session_that_is_used_meanwhile_stays(store, clock, monkeypatch):
    await store.append(turn("s", "t1", keys=[A]))
    clock.now += 100
    delete = purge._delete

    async def slow(*args):
        clock.now += 1
        await store.append(notes("s"))
        return await delete(*args)

    monkeypatch.setattr(purge, "_delete", slow)
    assert await store.purge(untouched_since=1050.0) == 0
    assert await store.find("T", [A])


async def test_two_nodes_that_sweep_at_once_delete_each_session_once(store, other, clock):
    for n in range(30):
        await store.append(turn(f"s{n}", f"t{n}", keys=[A]))
    clock.now += 100
    counts = await asyncio.gather(*(s.purge(untouched_since=1050.0) for s in (store, other)))
    assert sum(counts) == 30
