"""Counts of turns are written in slices, once, whoever does it."""

from msgspec.structs import replace

from stores.contract import decided
from stores.samples import plain
from thoughtline.log.turn_counts import COARSE, FINE, KEPT
from thoughtline.stores.base import Batch
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.stores.sqlite import SqliteStore, turn_counts

NOW = 1_000_000.0


async def turns(store, seconds=FINE):
    page = await store.turn_counts(seconds=seconds, since=0.0)
    return sum(one.counts.get("turns", 0) for one in page.counts)


async def test_each_event_is_counted_once(store, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(turn_counts, "ROWS", 7)
    clock.now = NOW
    other = SqliteStore(tmp_path / "store.db", clock=clock)
    for number in range(30):
        await store.append(decided(f"s{number % 4}", f"t{number}", at=NOW - number))
        if number % 6 == 0:
            await (store if number % 4 else other).summarise()
    await store.summarise()
    await other.summarise()
    assert await turns(store) == await turns(other) == await turns(store, COARSE) == 30
    await other.close()


async def test_a_slice_that_somebody_else_has_added_is_not_added_again(store, clock):
    clock.now = NOW
    await store.append(decided("s", "t1", at=NOW))
    counted = await store._read(turn_counts.read_slice)
    for _ in range(2):
        await store._writer.run(lambda db: turn_counts.add_counts(db, counted, NOW))
    assert await turns(store) == 1


async def test_what_is_long_ago_is_dropped(store, clock):
    clock.now = NOW
    await store.append(decided("s", "t1", at=NOW))
    await store.summarise()
    clock.now += KEPT[FINE] + 2 * FINE
    await store.append(decided("s", "t2", at=clock.now))
    await store.summarise()
    assert (await turns(store), await turns(store, COARSE)) == (1, 2)


async def test_many_events_are_counted_in_the_background(store, clock, monkeypatch):
    clock.now = NOW
    for number in range(10):
        await store.append(decided("s", f"t{number}", at=NOW))
    monkeypatch.setattr(turn_counts, "ROWS", 4)
    page = await store.turn_counts(seconds=FINE, since=0.0)
    assert not page.complete
    await store._upkeep._task
    assert (await store.turn_counts(seconds=FINE, since=0.0)).complete
    assert await turns(store) == 10


async def test_damaged_events_count_nothing(store, clock):
    clock.now = NOW
    bad = (plain(1, type="turn_started"), plain(2, type="turn_ended", data="[]"))
    await store.append(Batch(session="s", tenant="T", drafts=bad))
    await store.append(decided("s", "t1", at=NOW))
    await store.summarise()
    assert await turns(store) in (1, 2)  # a start without anything in it is a start


async def test_rows_whose_key_is_lost_count_nothing(tmp_path, clock):
    clock.now = NOW
    chain = Keychain(KeyRing([new_key()]))
    store = SqliteStore(tmp_path / "sealed.db", clock=clock, keychain=chain)
    for number, tenant in enumerate(("T", "gone", "T")):
        batch = decided(f"s{number}", f"t{number}", at=NOW)
        await store.append(replace(batch, tenant=tenant))
    await store._writer.run(lambda db: db.execute("DELETE FROM tenant_keys WHERE tenant = 'gone'"))
    assert await turns(store) == 2
    await store.summarise()
    assert await turns(store) == 2
    await store.close()
