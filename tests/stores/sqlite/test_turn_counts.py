"""Counts of turns are added to the file from time to time, once, whoever does it."""

from msgspec.structs import replace

from stores.contract import decided
from stores.samples import notes, plain
from support.sqlite_files import held, look
from thoughtline.log.turn_counts import COARSE, FINE, KEPT
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.turn_counting import ADD_EVERY

NOW = 1_000_000.0
IN_FILE = "SELECT coalesce(sum(count), 0) FROM turn_counts WHERE name = 'turns' AND seconds = 300"


async def turns(store, seconds=FINE):
    found = await store.turn_counts(seconds=seconds, since=0.0)
    return sum(one.counts.get("turns", 0) for one in found)


async def test_two_who_write_count_together(store, clock, tmp_path):
    clock.now = NOW
    other = SqliteStore(tmp_path / "store.db", clock=clock)
    for number in range(30):
        await (store if number % 4 else other).append(
            decided(f"s{number % 4}", f"t{number}", at=NOW - number)
        )
    assert await turns(store) < 30
    await other.close()
    assert await turns(store) == await turns(store, COARSE) == 30
    assert look(tmp_path / "store.db", IN_FILE) == [(30,)]


async def test_an_append_writes_no_counts_until_it_is_time(store, clock, tmp_path):
    clock.now = NOW
    await store.append(decided("s", "t1", at=NOW))
    await store.append(notes("s"))  # a batch is counted when it was answered for, before the next
    assert look(tmp_path / "store.db", IN_FILE) == [(0,)]
    clock.now += ADD_EVERY
    await store.append(notes("s"))
    await store.append(notes("s"))
    assert look(tmp_path / "store.db", IN_FILE) == [(1,)]


async def test_what_could_not_be_added_is_added_later(tmp_path, clock):
    clock.now = NOW
    path = tmp_path / "store.db"
    store = SqliteStore(path, clock=clock, timeout=0.01)
    await store.append(decided("s", "t1", at=NOW))
    with held(path):
        assert await turns(store) == 0
    assert await turns(store) == 1
    await store.close()


async def test_what_is_long_ago_is_dropped(store, clock):
    clock.now = NOW
    await store.append(decided("s", "t1", at=NOW))
    assert await turns(store) == 1
    clock.now += KEPT[FINE] + 2 * FINE
    await store.append(decided("s", "t2", at=clock.now))
    assert (await turns(store), await turns(store, COARSE)) == (1, 2)


async def test_damaged_events_count_nothing(store, clock):
    clock.now = NOW
    bad = (plain(1, type="turn_started"), plain(2, type="turn_ended", data="[]"))
    await store.append(Batch(session="s", tenant="T", drafts=bad))
    await store.append(decided("s", "t1", at=NOW))
    assert await turns(store) in (1, 2)  # a start without anything in it is a start


async def test_the_end_of_a_turn_that_another_process_began_counts_for_its_model(tmp_path, clock):
    clock.now = NOW
    whole = decided("s", "t1", at=NOW)
    for drafts in (whole.drafts[:1], whole.drafts[1:]):
        store = SqliteStore(tmp_path / "store.db", clock=clock)
        await store.append(replace(whole, drafts=drafts, index=()))
        await store.close()
    store = SqliteStore(tmp_path / "store.db", clock=clock)
    [found] = await store.turn_counts(seconds=FINE, since=0.0)
    assert (found.model, found.counts["turns"], found.counts["input_tokens"]) == ("v4", 1, 9)
    await store.close()
