"""Thought entries in the file: how they are found, listed and cleared."""

from msgspec.structs import replace

from stores.samples import ORIGIN, turn
from support.sqlite_files import look
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.sqlite import entries


async def test_pages_go_on_where_the_last_one_ended(store):
    for number in range(5):
        await store.append(turn("s", f"t{number}", '"hm"'))
    listed = [entry.turn for entry in await store.entries(limit=5)]
    assert listed == ["t4", "t3", "t2", "t1", "t0"]
    assert [entry.turn for entry in await store.entries(limit=2, offset=3)] == ["t1", "t0"]


async def test_a_listing_that_begins_far_down_leaves_out_whole_blocks(store, monkeypatch):
    monkeypatch.setattr(entries, "BLOCK", 4)
    for number in range(20):
        await store.append(turn("s", f"t{number}", '"hm"', calls=("a", "b")))
    everything = [(e.turn, e.call) for e in await store.entries(limit=99)]
    for which in (ALL_ENTRIES, EntryFilter(provider="deepseek")):
        for offset in range(41):
            listed = await store.entries(which, offset=offset, limit=3)
            assert [(e.turn, e.call) for e in listed] == everything[offset : offset + 3]


async def test_a_listing_that_begins_far_down_reads_what_it_shows(store, monkeypatch):
    monkeypatch.setattr(entries, "BLOCK", 4)
    for number in range(40):
        await store.append(turn("s", f"t{number}", '"hm"', calls=("a", "b")[: 1 + number % 2]))
    everything = [(e.turn, e.call) for e in await store.entries(limit=99)]
    read, read_rows = [], entries.read_rows
    monkeypatch.setattr(
        entries, "read_rows", lambda db, found: read.append(len(found)) or read_rows(db, found)
    )
    monkeypatch.setattr(entries, "CHUNK", 2)
    for which in (ALL_ENTRIES, EntryFilter(provider="deepseek")):
        for offset in range(61):
            listed = await store.entries(which, offset=offset, limit=1)
            assert [(e.turn, e.call) for e in listed] == everything[offset : offset + 1]
            assert sum(read) <= 4 + 2 * 4
            read.clear()


async def test_of_one_account_no_block_is_left_out_whose_entries_are_others(store, monkeypatch):
    monkeypatch.setattr(entries, "BLOCK", 4)
    for number in range(20):
        origin = replace(ORIGIN, account="mine" if number % 2 else "another's")
        await store.append(turn("s", f"t{number}", '"hm"', origin=origin))
    there = ORIGIN.endpoint
    mine = EntryFilter(provider="up", endpoints=(there,), accounts={there: "mine"})
    for offset in range(11):
        listed = await store.entries(mine, offset=offset, limit=99)
        assert [e.turn for e in listed] == [
            f"t{number}" for number in range(19 - 2 * offset, 0, -2)
        ]


async def test_clearing_leaves_keys_and_log_alone(store, tmp_path):
    await store.append(turn("s", "t1", '"hm"', keys=[b"n" * 16]))
    before = look(tmp_path / "store.db", "SELECT thoughts, said FROM batches")
    assert await store.forget(EntryFilter(tenant="T", model="v5")) == 0
    assert await store.forget(ALL_ENTRIES) == 1
    assert look(tmp_path / "store.db", "SELECT thoughts, said FROM batches") == before
    assert look(tmp_path / "store.db", "SELECT count(*) FROM lookup_keys") == [(1,)]
