"""What waits is written several at once when the store is back: in order, and nothing twice."""

import asyncio

import pytest
from msgspec.structs import replace

from stores.samples import turn
from support.fragile_store import A
from support.waiting import eventually
from thoughtline.errors import Conflict, Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.spill import SpillFile
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.waiting import MAX_BATCHES


class Counted(SqliteStore):
    """Notes what is being appended, and fails where it is told to."""

    def __init__(self, path):
        super().__init__(path)
        self.running: list[str] = []
        self.most = 0
        self.failures: dict[str, Exception] = {}
        self.transactions = 0
        transact = self._writer._transact

        def counted(work):
            self.transactions += 1
            return transact(work)

        self._writer._transact = counted

    async def append(self, batch):
        assert batch.session not in self.running
        if failure := self.failures.get(batch.id):
            raise failure
        self.running.append(batch.session)
        self.most = max(self.most, len(self.running))
        try:
            return await super().append(batch)
        finally:
            self.running.remove(batch.session)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def waiting(number, sessions):
    session = f"s{number % sessions}"
    return replace(turn(session, f"t{number}", '"hm"', keys=(A,)), id=f"t{number}", held=1.0)


def left_by_a_dead_process(path, count, sessions):
    file = SpillFile.create(path)
    for number in range(count):
        file.append(waiting(number, sessions))
    file.close()


async def caught_up(store):
    await eventually(lambda: not store.backlog)


async def turns(store, session):
    return [event.id for event in await store.read(session) if event.type == "turn_started"]


async def in_order(store, count, sessions):
    for number in range(sessions):
        expected = [f"t{turn}" for turn in range(number, count, sessions)]
        assert await turns(store, f"s{number}") == expected


async def test_many_sessions_are_written_in_few_transactions(path):
    count, sessions = 4 * MAX_BATCHES, 2 * MAX_BATCHES
    left_by_a_dead_process(path, count, sessions)
    counted = Counted(path)
    store = CachedStore(counted, spill=path)
    await store.find("T", [A])
    await caught_up(store)
    assert counted.most == MAX_BATCHES
    assert counted.transactions < 2 * count / MAX_BATCHES
    await in_order(store, count, sessions)
    assert not list(path.parent.glob("*-spill-*"))
    await store.close()


async def test_of_one_session_no_turn_overtakes_one_that_fails(path):
    left_by_a_dead_process(path, 6, 2)
    counted = Counted(path)
    counted.failures["t1"] = Unavailable("not yet")
    store = CachedStore(counted, spill=path, retry=0.001)
    await store._backlog.adopt()

    async def all_but_one():
        return await turns(store, "s0") == ["t0", "t2", "t4"]

    await eventually(all_but_one)
    assert await turns(store, "s1") == []
    assert store.trouble == "not yet"
    counted.failures.clear()
    await caught_up(store)
    await in_order(store, 6, 2)
    assert (store.trouble, store.lost) == ("", 0)
    await store.close()


async def test_one_that_the_store_refuses_takes_no_other_with_it(path):
    left_by_a_dead_process(path, 6, 6)
    counted = Counted(path)
    counted.failures["t1"] = Conflict("it belongs to somebody else")
    store = CachedStore(counted, spill=path)
    await store._backlog.adopt()
    await caught_up(store)
    assert store.lost == 1
    assert [await turns(store, f"s{n}") for n in range(6)] == [
        ["t0"], [], ["t2"], ["t3"], ["t4"], ["t5"],
    ]  # fmt: skip
    await store.close()


async def test_what_is_deleted_before_its_turn_comes_is_not_written(path):
    count, sessions = 4 * MAX_BATCHES, 2 * MAX_BATCHES
    left_by_a_dead_process(path, count, sessions)
    store = CachedStore(Counted(path), spill=path)
    await store._backlog.adopt()
    await asyncio.sleep(0)  # the first are being written
    last = f"s{sessions - 1}"
    await store.purge(session=last)
    await store.erase(EntryFilter(session="s0"))
    await caught_up(store)
    assert await turns(store, last) == []
    assert "hm" not in str(await store.read("s0"))
    assert "hm" in str(await store.read("s1"))
    await store.close()


async def test_a_process_that_dies_while_it_catches_up_leaves_only_the_rest(path):
    left_by_a_dead_process(path, 6, 2)
    counted = Counted(path)
    counted.failures["t3"] = Unavailable("not yet")
    first = CachedStore(counted, spill=path, retry=60.0)
    await first._backlog.adopt()
    await eventually(lambda: len(first._backlog) <= 3)
    async with first._backlog._saving:
        first._backlog._saver.close()  # as a process that is killed
    second = CachedStore(SqliteStore(path), spill=path, retry=60.0)
    await second._backlog.adopt()
    assert second.backlog == 3
    await caught_up(second)
    await in_order(second, 6, 2)
    await second.close()
    first._backlog._cancel()
