"""Deleting sessions."""

import asyncio
import sys
from types import SimpleNamespace

from stores.samples import notes, turn
from stores.sealed_samples import keychain
from thoughtline.clock import SystemClock
from thoughtline.gateway.retention import Sweep
from thoughtline.stores.postgres import PostgresStore, purge

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


async def test_what_is_begun_while_a_tenant_is_deleted_stays(store, other, clock, monkeypatch):
    await store.append(turn("before", "t0", '"x"', keys=[A]))
    delete = purge._delete
    begun = []

    async def slow(*args):
        deleted = await delete(*args)
        if len(begun) < 3:
            clock.now += 1
            begun.append(f"s{len(begun)}")
            await other.append(turn(begun[-1], f"t{begun[-1]}", '"x"', keys=[B]))
        return deleted

    monkeypatch.setattr(purge, "_delete", slow)
    assert await store.purge(tenant="T") == 1
    assert sorted(one.session for one in await store.sessions()) == begun
    assert len((await store.find("T", [B]))[B]) == len(begun)


async def test_what_does_not_open_is_deleted_all_the_same(nodes, db):
    store = nodes(keychain())
    for n in range(3):
        await store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[A]))
    await db.execute(
        "UPDATE entries SET memo = set_byte(memo, 40, get_byte(memo, 40) # 1) WHERE session = 's1'"
    )
    assert await store.purge(untouched_since=store._clock.wall() + 1) == 3
    assert await db.fetchval("SELECT count(*) FROM entries") == 0


async def test_two_nodes_that_sweep_at_once_delete_each_session_once(store, other, clock):
    for n in range(30):
        await store.append(turn(f"s{n}", f"t{n}", keys=[A]))
    clock.now += 100
    counts = await asyncio.gather(*(s.purge(untouched_since=1050.0) for s in (store, other)))
    assert sum(counts) == 30


class WrongClock(SystemClock):
    """A machine's clock that is a year fast."""

    def wall(self):
        return super().wall() + 365 * 86_400


async def test_a_node_with_a_wrong_clock_deletes_nothing_too_early(database, db):
    store = PostgresStore(database, clock=WrongClock())
    await store.append(turn("s", "t1", '"x"', keys=[A]))
    await store.append(turn("z", "t2", '"x"', keys=[A]))
    await db.execute("UPDATE sessions SET touched = touched - 7200 WHERE session = 'z'")
    assert await store.purge(untouched_since=store._clock.wall() - 3600) == 1
    assert [one.session for one in await store.sessions()] == ["s"]
    await store.close()


_HOLDER = """
import asyncio, sys
from thoughtline.stores.postgres import PostgresStore

async def main():
    store = PostgresStore(sys.argv[1])
    print(await store.lease("sweep", 3600.0), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_the_work_of_a_node_that_was_killed_is_taken_over(database, store, other, clock, db):
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HOLDER, database, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await holder.stdout.readline() == b"True\n"
        await store.append(turn("s", "t1", '"x"', keys=[A]))
        clock.now += 100
        log = SimpleNamespace(info=lambda *_, **__: None, warning=lambda *_, **__: None)
        sweeps = [Sweep(one, retention=50.0, clock=clock, log=log) for one in (store, other)]
        assert [await sweep.once() for sweep in sweeps] == [0, 0]  # not theirs
    finally:
        holder.kill()
        await holder.communicate()
    assert [await sweep.once() for sweep in sweeps] == [0, 0]  # its time is not over
    await db.execute("UPDATE jobs SET until = clock_timestamp() - interval '1 s'")
    assert [await sweep.once() for sweep in sweeps] == [1, 0]
    assert await store.sessions() == []
