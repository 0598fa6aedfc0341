"""The writer: groups, one commit for many, and hits that wait."""

import asyncio
import threading

from stores.samples import StillClock, notes, turn
from support.sqlite_files import NAME, look
from support.waiting import eventually
from thoughtline.stores.sqlite import (
    SqliteStore,
    writer,
)
from thoughtline.stores.sqlite.inserts import insert_batch


def counted(store, monkeypatch):
    """Counts the writer's transactions."""
    seen = []
    transact = store._writer._transact
    monkeypatch.setattr(store._writer, "_transact", lambda work: seen.append(1) or transact(work))
    return seen


async def test_batches_that_wait_share_a_commit(store, monkeypatch):
    await store.append(notes("first"))
    seen = counted(store, monkeypatch)
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(60)))
    waiting = [asyncio.ensure_future(store.append(notes(f"s{n % 7}", 2))) for n in range(50)]
    await asyncio.sleep(0)
    gate.set()
    await blocked
    await asyncio.gather(*waiting)
    assert len(seen) == 2  # the one that blocked, and one for all fifty
    assert (await store.stats()).events == 101


async def test_the_thread_is_woken_once_for_what_a_loop_hands_over_at_once(store, monkeypatch):
    level = []
    ring = store._writer._wake_thread
    monkeypatch.setattr(
        store._writer, "_wake_thread", lambda loop: level.append(loop) or ring(loop)
    )
    for count in (50, 1, 2):
        await asyncio.gather(*[store.append(notes(f"s{n % 7}", 2)) for n in range(count)])
    assert len(level) == 3
    assert (await store.stats()).events == 106


async def test_a_loop_that_ends_at_once_keeps_nobody_waiting(store):
    def hand_over():
        store._writer.append(insert_batch(notes("s")))
        loop.stop()

    loop = asyncio.new_event_loop()
    loop.call_soon(hand_over)
    await asyncio.to_thread(loop.run_forever)
    loop.close()
    await store.append(notes("z"))
    assert len(await store.read("s")) == len(await store.read("z")) == 1


async def test_a_transaction_does_not_grow_without_end(store, monkeypatch):
    monkeypatch.setattr(writer, "MAX_BATCHES", 10)
    await store.append(notes("first"))
    seen = counted(store, monkeypatch)
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(60)))
    waiting = [asyncio.ensure_future(store.append(notes("s"))) for _ in range(40)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(blocked, *waiting)
    assert len(seen) >= 5
    assert [e.seq for e in await store.read("s")] == list(range(40))


async def test_nothing_is_answered_before_the_commit(store, monkeypatch):
    await store.append(notes("s"))
    path = store._file.path
    held = []
    settle = writer._set_results

    def spy(jobs):
        held.append(look(path, "SELECT sum(count) FROM batches"))
        settle(jobs)

    monkeypatch.setattr(writer, "_set_results", spy)
    await store.append(notes("s", 4))
    assert held == [[(5,)]]


async def test_hits_are_not_written_on_the_way(store, monkeypatch):
    await store.append(turn("s", "t1", keys=[NAME]))
    seen = counted(store, monkeypatch)
    for _ in range(50):
        store.touch(["s"])
        await store.find("T", [NAME])
    assert seen == []
    await store.sessions()
    assert len(seen) == 2  # the hits, all at once, and the job that asked for it


async def test_hits_are_written_after_a_while(tmp_path):
    path = tmp_path / "store.db"
    clock = StillClock()
    store = SqliteStore(path, clock=clock, touch_every=0.0)
    await store.append(turn("s", "t1", keys=[NAME]))
    clock.now += 5
    store.touch(["s"])
    await eventually(lambda: look(path, "SELECT touched FROM sessions") == [(1005.0,)])
    await store.close()
