"""Memory in front of a store: the same answers, faster, and when the store is down."""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from stores.contract import Contract
from stores.samples import StillClock, refusal, turn
from thoughtline.errors import Unavailable
from thoughtline.stores.base import Filter
from thoughtline.stores.hot import HotStore
from thoughtline.stores.memory import MemoryStore

A, B = b"a" * 16, b"b" * 16


class TestHotStore(Contract):
    def open(self, place, clock):
        return HotStore(MemoryStore(clock))


class TestSharedHotStore(Contract):
    def open(self, place, clock):
        return HotStore(MemoryStore(clock), shared=True)


class Fragile(MemoryStore):
    """A store that can be down, slow, and counts what it is asked."""

    def __init__(self):
        super().__init__(StillClock())
        self.written = []
        self.down = False
        self.asked = []
        self.gate = None

    async def find(self, tenant, names):
        if self.down:
            raise Unavailable("the disk is gone")
        self.asked.append(list(names))
        found = await super().find(tenant, names)
        if self.gate is not None:
            await self.gate.wait()
        return found

    async def append(self, batch):
        if self.down:
            raise Unavailable("the disk is gone")
        self.written += [draft.id for draft in batch.drafts if draft.type == "turn_started"]
        return await super().append(batch)


@pytest.fixture
async def fragile():
    return Fragile()


async def found(store, name):
    return [memory.turn for memory in (await store.find("t", [name])).get(name, ())]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("how", ["find", "append"])
async def test_what_a_store_lost_while_it_was_down_is_still_found(fragile, how, shared):
    """As a file that is removed: the store is back, and empty."""
    hot = HotStore(fragile, retry=0.001, shared=shared)
    await hot.append(turn("s", "one", tenant="t", names=(A,)))
    fragile.down = True
    if how == "find":
        assert await found(hot, A) == ["one"]
    with contextlib.suppress(Unavailable):
        await hot.append(turn("s", "two", tenant="t", names=(B,)))
    hot.store = empty = Fragile()
    while hot.trouble:
        await asyncio.sleep(0.001)
    assert empty.written == ["two"]
    assert await found(hot, B) == ["two"]
    assert await found(hot, A) == ([] if shared else ["one"])
    await hot.purge(tenant="t")
    assert await found(hot, A) == []


async def test_what_is_known_is_not_asked_again(fragile):
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    first = await hot.find("T", [A, B])
    second = await hot.find("T", [A, B])
    assert fragile.asked == [[A, B]]
    assert [m.turn for m in first[A]] == [m.turn for m in second[A]] == ["t1"]
    assert B not in second


async def test_a_second_conversation_under_a_known_name_is_seen(fragile):
    """An answer from memory is a whole answer: two that look alike stay two."""
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    await hot.find("T", [A])
    await hot.append(turn("u", "t2", names=(A,)))
    assert {m.turn for m in (await hot.find("T", [A]))[A]} == {"t1", "t2"}
    assert len(fragile.asked) == 1


async def test_shared_with_other_processes_it_always_asks(fragile):
    hot = HotStore(fragile, shared=True)
    await hot.append(turn("s", "t1", names=(A,)))
    await hot.find("T", [A])
    await fragile.append(turn("u", "t2", names=(A,)))  # somebody else
    assert {m.turn for m in (await hot.find("T", [A]))[A]} == {"t1", "t2"}


async def test_a_store_that_hangs_is_a_store_that_is_down(fragile):
    """Requests flow from memory, and only the first one has waited."""
    hot = HotStore(fragile, patience=0.1)
    await hot.append(turn("s", "t1", names=(A,)))
    answered, waits = fragile.find, []

    async def stuck(tenant, names):
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        finally:
            waits.append(asyncio.get_running_loop().time() - began)

    fragile.find = stuck
    async with asyncio.timeout(10):
        for _ in range(2):
            assert [m.turn for m in (await hot.find("T", [A, B]))[A]] == ["t1"]
    assert "did not answer" in hot.trouble
    assert waits[1] < waits[0]
    fragile.find = answered
    assert [m.turn for m in (await hot.find("T", [A, B]))[A]] == ["t1"]
    assert hot.trouble == ""


async def test_tenants_do_not_share_memory(fragile):
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    assert await hot.find("T", [A])
    assert not await hot.find("other", [A])


async def test_oldest_out_first_and_hits_promoted(fragile):
    hot = HotStore(fragile, entries=2)
    names = [bytes([n]) * 16 for n in range(3)]
    for number, name in enumerate(names):
        await hot.append(turn("s", f"t{number}", names=(name,)))
    await hot.find("T", [names[0]])
    await hot.find("T", [names[1]])
    await hot.find("T", [names[0]])  # promoted
    await hot.find("T", [names[2]])  # pushes out names[1]
    asked = len(fragile.asked)
    await hot.find("T", [names[0]])
    assert len(fragile.asked) == asked
    await hot.find("T", [names[1]])
    assert len(fragile.asked) == asked + 1
    assert hot.remembered <= 2


async def test_bytes_are_bounded(fragile):
    hot = HotStore(fragile, size=3000)
    for number in range(20):
        name = bytes([number]) * 16
        await hot.append(turn("s", f"t{number}", names=(name,)))
        await hot.find("T", [name])
    assert hot.remembered < 7


async def test_a_quarantine_reaches_memory(fragile):
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", '"hm"', names=(A,)))
    await hot.find("T", [A])
    await hot.append(refusal("s", "t1"))
    assert (await hot.find("T", [A]))[A][0].quarantined


async def test_a_dead_store_takes_nobody_down(fragile):
    hot = HotStore(fragile, retry=0.01)
    await hot.append(turn("s", "t1", names=(A,)))
    await hot.find("T", [A])
    fragile.down = True
    assert (await hot.find("T", [A]))[A][0].turn == "t1"
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t2", names=(B,)))
    assert (await hot.find("T", [B]))[B][0].turn == "t2"  # from memory
    assert hot.backlog == 1
    assert "disk" in hot.trouble
    fragile.down = False
    while hot.backlog:
        await asyncio.sleep(0.01)
    assert [e.seq for e in await fragile.read("s")] == list(range(len(await fragile.read("s"))))
    assert (await fragile.find("T", [B]))[B][0].turn == "t2"
    await hot.close()


async def test_what_was_committed_by_us_is_found_when_the_store_is_gone(fragile):
    """Also what nobody has asked for since: the last turn before the disk went away."""
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    fragile.down = True
    assert (await hot.find("T", [A, B]))[A][0].turn == "t1"
    assert not await hot.find("other", [A])


async def test_order_is_kept_while_catching_up(fragile):
    hot = HotStore(fragile, retry=0.01)
    fragile.down = True
    for number in range(5):
        with pytest.raises(Unavailable):
            await hot.append(turn("s", f"t{number}", names=(bytes([number]) * 16,)))
    fragile.down = False
    while hot.backlog:
        await asyncio.sleep(0.01)
    started = [e.id for e in await fragile.read("s") if e.type == "turn_started"]
    assert started == [f"t{number}" for number in range(5)]
    await hot.close()


async def test_a_full_backlog_gives_up_the_oldest(fragile):
    hot = HotStore(fragile, backlog=2, retry=60)
    fragile.down = True
    for number in range(4):
        with pytest.raises(Unavailable):
            await hot.append(turn("s", f"t{number}", names=(bytes([number]) * 16,)))
    assert hot.backlog == 2
    fragile.down = False
    await hot.close()  # one last try
    assert fragile.written == ["t2", "t3"]


async def test_a_look_up_under_way_does_not_hide_what_is_written_meanwhile(fragile):
    hot = HotStore(fragile)
    fragile.gate = asyncio.Event()
    asking = asyncio.ensure_future(hot.find("T", [A]))
    await asyncio.sleep(0)
    await hot.append(turn("s", "t1", names=(A,)))
    fragile.gate.set()
    assert (await asking)[A][0].turn == "t1"
    fragile.gate = None
    assert (await hot.find("T", [A]))[A][0].turn == "t1"


async def test_counts(fragile):
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    await hot.find("T", [A, B])
    assert (hot.counts.hits, hot.counts.misses) == (1, 1)


async def test_what_waits_is_forgotten_too(fragile):
    hot = HotStore(fragile, retry=60)
    fragile.down = True
    for number, name in enumerate((A, B)):
        with pytest.raises(Unavailable):
            await hot.append(
                turn("s", f"t{number}", '"secret"', names=(name,), calls=(f"c{number}",))
            )
    assert await hot.forget(Filter(call="c0")) == 1
    found = await hot.find("T", [A, B])
    assert set(found) == {B}
    fragile.down = False
    await hot.close()
    fragile._closed = False
    events = await fragile.read("s")
    assert [e.seq for e in events] == list(range(len(events)))
    assert sum("secret" in e.data for e in events) == 1
    assert [e.turn for e in await fragile.entries()] == ["t1"]


async def test_a_purged_tenants_waiting_turns_are_let_go(fragile):
    hot = HotStore(fragile, retry=60)
    fragile.down = True
    for tenant in ("T", "U"):
        with pytest.raises(Unavailable):
            await hot.append(turn(f"s{tenant}", f"t{tenant}", '"x"', names=(A,), tenant=tenant))
    await hot.purge(tenant="T")
    assert hot.backlog == 1
    assert not await hot.find("T", [A])
    fragile.down = False
    await hot.close()
    assert fragile.written == ["tU"]


class Recorder:
    def __init__(self):
        self.commits = []
        self.lost = []

    def committed(self, seconds):
        self.commits.append(seconds)

    def dropped(self, batch, why):
        self.lost.append((batch.session, why))


async def test_a_watcher_hears_of_commits_and_losses(fragile):
    watcher = Recorder()
    hot = HotStore(fragile, backlog=1, retry=60, watcher=watcher)
    await hot.append(turn("s", "t0"))
    assert len(watcher.commits) == 1
    assert 0 <= watcher.commits[0] < 5
    fragile.down = True
    for number in range(2):
        with pytest.raises(Unavailable):
            await hot.append(turn(f"s{number}", f"t{number}"))
    assert watcher.lost == [("s0", "too many turns wait for the store: the disk is gone")]
    await hot.close()


async def test_giving_up_the_one_that_is_being_written_loses_no_other(fragile):
    hot = HotStore(fragile, backlog=1, retry=0.001)
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t0"))
    gate = asyncio.Event()
    slow = fragile.append

    async def append(batch):
        await gate.wait()
        return await slow(batch)

    fragile.down, fragile.append = False, append
    await asyncio.sleep(0.02)  # t0 is being written
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t1"))
    gate.set()
    while hot.backlog:
        await asyncio.sleep(0.01)
    assert fragile.written == ["t0", "t1"]
    await hot.close()


async def test_trouble_ends_when_the_store_answers_again(fragile):
    hot = HotStore(fragile)
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.find("T", [A])
    assert hot.trouble
    fragile.down = False
    await hot.find("T", [A])
    assert not hot.trouble


async def test_what_is_sifted_out_is_neither_written_nor_found(fragile):
    hot = HotStore(fragile, sift=lambda batch: replace(batch, memories=()))
    await hot.append(turn("s", "t0", '"hm"', names=(A,)))
    assert not await hot.find("T", [A])
    assert await fragile.read("s")


async def test_a_purge_that_finds_nothing_leaves_memory_as_it_is(fragile):
    hot = HotStore(fragile)
    await hot.append(turn("s", "t1", names=(A,)))
    await hot.find("T", [A])
    assert await hot.purge(untouched_since=0.0) == 0
    assert hot.remembered == 1
    assert await hot.purge(session="s") == 1
    assert hot.remembered == 0
    assert not await hot.find("T", [A])


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_cannot_be_written_at_the_end_is_said(fragile, hangs):
    watcher = Recorder()
    hot = HotStore(fragile, watcher=watcher, retry=60, patience=0.05)
    fragile.down = True
    for number in range(3):
        with contextlib.suppress(Unavailable):
            await hot.append(turn("s", f"t{number}", names=(A,)))
    if hangs:
        fragile.append = lambda batch: asyncio.Event().wait()
    async with asyncio.timeout(10):
        await hot.close()
    why = "the store did not answer" if hangs else "the disk is gone"
    assert watcher.lost == [("s", why)] * 3
