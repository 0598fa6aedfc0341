"""Memory in front of a store: the same answers, faster, and when the store is down."""

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from stores.contract import Contract
from stores.samples import after, refusal, turn
from support.fragile_store import A, B, found
from support.waiting import eventually
from thoughtline.errors import Corrupt, SealError, Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.waiting import batch_size

SIZE = batch_size(turn("s", "t0", keys=(A,)))


class TestCachedStore(Contract):
    def open(self, place, clock):
        return CachedStore(MemoryStore(clock), clock=clock)


@pytest.mark.parametrize("how", ["find", "append"])
async def test_what_a_store_lost_while_it_was_down_is_still_found(fragile, how):
    """As a file that is removed: the store is back, and empty."""
    hot = CachedStore(fragile, retry=0.001)
    await hot.append(turn("s", "one", tenant="t", keys=(A,)))
    fragile.down = True
    if how == "find":
        assert await found(hot, A) == ["one"]
    with contextlib.suppress(Unavailable):
        await hot.append(turn("s", "two", tenant="t", keys=(B,)))
    fragile.__init__()  # another file under the same name
    await eventually(lambda: not hot.trouble)
    assert fragile.written == ["two"]
    assert await found(hot, B) == ["two"]
    assert await found(hot, A) == ["one"]
    await hot.purge(tenant="t")
    assert await found(hot, A) == []


async def test_a_batch_whose_answer_is_lost_is_written_once(fragile):
    hot = CachedStore(fragile, retry=0.001)
    append, answers = fragile.append, iter([False, True])

    async def unsure(batch):
        events = await append(batch)
        if not next(answers):
            raise Unavailable("the connection was lost")
        return events

    fragile.append = unsure
    batch = replace(turn("s", "one", tenant="t", keys=(A,)), id="one", expect=-1)
    with pytest.raises(Unavailable):
        await hot.append(batch)
    await eventually(lambda: not hot.trouble)
    assert fragile.written == ["one", "one"]
    assert [event.id for event in await hot.read("s")] == ["one", "one.end"]
    assert hot.lost == 0


async def test_what_is_being_written_continues_a_turn_already(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    batches = [after("s", "t2", "t1"), after("s", "t3", "t2")]
    batches = [replace(b, index=(replace(b.index[0], keys=(B,)),)) for b in batches]
    written, append = asyncio.Event(), fragile.append

    async def slow(batch):
        await written.wait()
        return await append(batch)

    fragile.append = slow
    asked, known = ["t1", "t2", "t3"], []
    writes = []
    for batch in batches:
        writes.append(asyncio.create_task(hot.append(batch)))
        await asyncio.sleep(0)
        known.append(await hot.continued("T", asked))
    written.set()
    await asyncio.gather(*writes)
    assert known == [{"t1": 1}, {"t1": 2, "t2": 1}]
    assert await hot.continued("T", asked) == {"t1": 2, "t2": 1}
    assert await hot.continued("B", asked) == {}


async def test_a_store_that_does_not_say_what_was_continued_is_not_waited_for(fragile):
    hot = CachedStore(fragile, timeout=0.001)
    fragile.continued = lambda tenant, turns: asyncio.Event().wait()
    with pytest.raises(Unavailable, match="did not answer"):
        await hot.continued("T", ["t1"])


async def test_what_is_known_is_not_asked_again(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    first = await hot.find("T", [A, B])
    second = await hot.find("T", [A, B])
    assert fragile.asked == [[A, B]]
    assert [m.turn for m in first[A]] == [m.turn for m in second[A]] == ["t1"]
    assert B not in second


async def test_a_second_conversation_under_a_known_name_is_seen(fragile):
    """An answer from memory is a whole answer: two that look alike stay two."""
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    await hot.find("T", [A])
    await hot.append(turn("u", "t2", keys=(A,)))
    assert {m.turn for m in (await hot.find("T", [A]))[A]} == {"t1", "t2"}
    assert len(fragile.asked) == 1


@pytest.mark.parametrize("error", [SealError, Corrupt])
async def test_a_batch_that_is_refused_by_itself_holds_up_its_session_only(fragile, error):
    """A tenant's key is damaged, or a row: the turns of all others are written at once."""
    hot = CachedStore(fragile, retry=0.001)
    append, spoilt, tried = fragile.append, range(100), [0]

    async def picky(batch):
        if batch.session != "good" and int(batch.session) in spoilt:
            tried[0] += 1
            raise error("its key is damaged")
        return await append(batch)

    fragile.append = picky
    for n in range(100):
        with pytest.raises(Unavailable):
            await hot.append(turn(str(n), f"b{n}", keys=(A,)))
    for n in range(3):
        await hot.append(turn("good", f"g{n}", keys=(B,)))
        await eventually(lambda before=tried[0]: tried[0] > before)  # the others, meanwhile
    assert fragile.written == ["g0", "g1", "g2"]
    with pytest.raises(Unavailable):
        await hot.append(turn("99", "later", keys=(A,)))
    assert (hot.backlog, hot.lost) == (101, 0)
    assert "damaged" in hot.trouble
    spoilt = range(80)  # more than are tried at once
    await eventually(lambda: hot.backlog <= 80)
    assert [event.id for event in await hot.read("99")][::2] == ["b99", "later"]
    await hot.close()


async def test_a_quarantine_reaches_memory(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", '"hm"', keys=(A,)))
    await hot.find("T", [A])
    await hot.append(refusal("s", "t1"))
    assert (await hot.find("T", [A]))[A][0].quarantined


async def test_a_dead_store_takes_nobody_down(fragile):
    hot = CachedStore(fragile, retry=0.01)
    await hot.append(turn("s", "t1", keys=(A,)))
    await hot.find("T", [A])
    fragile.down = True
    assert (await hot.find("T", [A]))[A][0].turn == "t1"
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t2", keys=(B,)))
    assert (await hot.find("T", [B]))[B][0].turn == "t2"  # from memory
    assert hot.backlog == 1
    assert "disk" in hot.trouble
    fragile.down = False
    await eventually(lambda: not hot.backlog)
    assert [e.seq for e in await fragile.read("s")] == list(range(len(await fragile.read("s"))))
    assert (await fragile.find("T", [B]))[B][0].turn == "t2"
    await hot.close()


async def test_what_was_committed_by_us_is_found_when_the_store_is_gone(fragile):
    """Also what nobody has asked for since: the last turn before the disk went away."""
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    fragile.down = True
    assert (await hot.find("T", [A, B]))[A][0].turn == "t1"
    assert not await hot.find("other", [A])


async def test_order_is_kept_while_catching_up(fragile):
    hot = CachedStore(fragile, retry=0.01)
    fragile.down = True
    for number in range(5):
        with pytest.raises(Unavailable):
            await hot.append(turn("s", f"t{number}", keys=(bytes([number]) * 16,)))
    fragile.down = False
    await eventually(lambda: not hot.backlog)
    started = [e.id for e in await fragile.read("s") if e.type == "turn_started"]
    assert started == [f"t{number}" for number in range(5)]
    await hot.close()


async def test_a_full_backlog_gives_up_the_oldest(fragile):
    hot = CachedStore(fragile, backlog=2 * SIZE, retry=60)
    fragile.down = True
    for number in range(4):
        with pytest.raises(Unavailable):
            await hot.append(turn("s", f"t{number}", keys=(bytes([number]) * 16,)))
    assert hot.backlog == 2
    assert hot.lost == 2
    fragile.down = False
    await hot.close()  # one last try
    assert fragile.written == ["t2", "t3"]


async def test_a_look_up_under_way_does_not_hide_what_is_written_meanwhile(fragile):
    hot = CachedStore(fragile)
    fragile.gate = asyncio.Event()
    asking = asyncio.ensure_future(hot.find("T", [A]))
    await asyncio.sleep(0)
    await hot.append(turn("s", "t1", keys=(A,)))
    fragile.gate.set()
    assert (await asking)[A][0].turn == "t1"
    fragile.gate = None
    assert (await hot.find("T", [A]))[A][0].turn == "t1"


async def test_what_is_committed_during_a_look_up_of_another_key_is_found(fragile):
    """A key cached as empty is written by the backlog while the store is asked for another one."""
    hot = CachedStore(fragile, retry=0.001)
    assert not await hot.find("T", [A])  # cached: nothing
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t1", keys=(A,)))
    fragile.down, fragile.gate = False, asyncio.Event()
    asking = asyncio.ensure_future(hot.find("T", [A, B]))
    await eventually(lambda: not hot.backlog)
    fragile.gate.set()
    assert [entry.turn for entry in (await asking)[A]] == ["t1"]
    await hot.close()


async def test_what_is_committed_during_a_second_look_up_is_found(fragile):
    """The store is asked again for a key that was written meanwhile; another one is then."""
    hot = CachedStore(fragile)
    gates, asked = [asyncio.Event(), asyncio.Event()], []
    find, append = fragile.find, fragile.append

    async def slow_find(tenant, keys):
        found = await find(tenant, keys)
        asked.append(keys)
        await gates[len(asked) - 1].wait()
        return found

    written = asyncio.Event()

    async def slow_append(batch):
        await written.wait()
        return await append(batch)

    fragile.find, fragile.append = slow_find, slow_append
    slow = asyncio.ensure_future(hot.append(turn("s", "t1", keys=(A,))))
    await asyncio.sleep(0)
    asking = asyncio.ensure_future(hot.find("T", [A, B]))
    await eventually(lambda: asked)
    fragile.append = append
    await hot.append(turn("s", "t2", keys=(B,)))
    gates[0].set()
    await eventually(lambda: len(asked) >= 2)
    written.set()
    await slow
    gates[1].set()
    found = await asking
    assert {key: [entry.turn for entry in entries] for key, entries in found.items()} == {
        A: ["t1"],
        B: ["t2"],
    }


async def test_what_is_erased_during_a_look_up_is_not_brought_back(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", '"secret"', keys=(A,)))
    assert await hot.find("T", [A])
    fragile.gate = asyncio.Event()
    asking = asyncio.ensure_future(hot.find("T", [A, B]))
    await asyncio.sleep(0)
    await hot.forget(EntryFilter(tenant="T"))
    fragile.gate.set()
    found = await asking
    assert [thought.raw for thought in found[A][0].thoughts] == ["null"]


async def test_counts(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    await hot.find("T", [A, B])
    assert (hot.counts.hits, hot.counts.misses) == (1, 1)


@pytest.mark.parametrize(("how", "left"), [("forget", 2), ("erase", 1)])
async def test_what_waits_is_forgotten_too(fragile, how, left):
    hot = CachedStore(fragile, retry=60)
    fragile.down = True
    for number, name in enumerate((A, B)):
        with pytest.raises(Unavailable):
            await hot.append(
                turn("s", f"t{number}", '"secret"', keys=(name,), calls=(f"c{number}",))
            )
    assert await getattr(hot, how)(EntryFilter(call="c0")) == 1
    found = await hot.find("T", [A, B])
    assert [[t.raw for t in found[key][0].thoughts] for key in (A, B)] == [["null"], ['"secret"']]
    fragile.down = False
    await hot.close()
    events = await fragile.read("s")
    assert [e.seq for e in events] == list(range(len(events)))
    assert sum("secret" in e.data for e in events) == left
    assert [e.turn for e in await fragile.entries()] == ["t1"]


async def test_a_purged_tenants_waiting_turns_are_let_go(fragile):
    hot = CachedStore(fragile, retry=60)
    fragile.down = True
    for tenant in ("T", "U"):
        with pytest.raises(Unavailable):
            await hot.append(turn(f"s{tenant}", f"t{tenant}", '"x"', keys=(A,), tenant=tenant))
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
        self.damage = []

    def committed(self, seconds):
        self.commits.append(seconds)

    def dropped(self, batch, why):
        self.lost.append((batch.session, why))

    def damaged(self, why):
        self.damage.append(why)


async def test_a_watcher_hears_of_commits_and_losses(fragile):
    watcher = Recorder()
    hot = CachedStore(fragile, backlog=batch_size(turn("s", "t0")), retry=60, observer=watcher)
    await hot.append(turn("s", "t0"))
    assert len(watcher.commits) == 1
    assert 0 <= watcher.commits[0] < 5
    fragile.down = True
    for number in range(2):
        with pytest.raises(Unavailable):
            await hot.append(turn(f"s{number}", f"t{number}"))
    [(lost, why)] = watcher.lost
    assert lost == "s0"
    assert why.startswith("too many turns wait for the store: the disk is gone")
    await hot.close()


async def test_giving_up_the_one_that_is_being_written_loses_no_other(fragile):
    hot = CachedStore(fragile, backlog=SIZE, retry=0.001)
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t0"))
    gate, began = asyncio.Event(), asyncio.Event()
    slow = fragile.append

    async def append(batch):
        began.set()
        await gate.wait()
        return await slow(batch)

    fragile.down, fragile.append = False, append
    await began.wait()  # t0 is being written
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "t1"))
    gate.set()
    await eventually(lambda: not hot.backlog)
    assert fragile.written == ["t0", "t1"]
    await hot.close()


async def test_trouble_ends_when_the_store_answers_again(fragile):
    hot = CachedStore(fragile)
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.find("T", [A])
    assert hot.trouble
    fragile.down = False
    await hot.find("T", [A])
    assert not hot.trouble


async def test_what_is_sifted_out_is_neither_written_nor_found(fragile):
    hot = CachedStore(fragile, record=lambda batch: replace(batch, index=()))
    await hot.append(turn("s", "t0", '"hm"', keys=(A,)))
    assert not await hot.find("T", [A])
    assert await fragile.read("s")


async def test_a_purge_that_finds_nothing_leaves_memory_as_it_is(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", '"hm"', keys=(A,)))
    await hot.find("T", [A])
    assert await hot.purge(untouched_since=0.0) == 0
    assert hot.remembered == 1
    assert await hot.purge(session="s") == 1
    assert hot.remembered == 0
    assert not await hot.find("T", [A])


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_cannot_be_written_at_the_end_is_said(fragile, hangs):
    watcher = Recorder()
    hot = CachedStore(fragile, observer=watcher, retry=60, timeout=0.05)
    fragile.down = True
    for number in range(3):
        with contextlib.suppress(Unavailable):
            await hot.append(turn("s", f"t{number}", keys=(A,)))
    if hangs:
        fragile.append = lambda batch: asyncio.Event().wait()
    async with asyncio.timeout(60):
        await hot.close()
    why = "the store did not answer" if hangs else "the disk is gone"
    assert watcher.lost == [("s", why)] * 3


async def test_reindexing_empties_the_cache(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    assert await hot.find("T", [A])
    await hot.reindex("s", (), remove=["t1"])
    assert await hot.find("T", [A]) == {}
