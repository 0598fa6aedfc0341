"""Thought entries of a tool call, and listings that begin far down."""

from stores.samples import turn
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.postgres import entries


async def test_a_call_is_found_without_a_scan_in_every_tenant(store):
    for tenant in "AB":
        await store.append(turn(f"s{tenant}", "t1", '"a"', calls=("x",), tenant=tenant))
    assert dict(await store.count_calls("x")) == {"A": 1, "B": 1}
    assert await store.forget(EntryFilter(call="x", tenant="A")) == 1
    assert dict(await store.count_calls("x")) == {"B": 1}


async def test_a_listing_that_begins_far_down_does_not_read_what_is_before(store, monkeypatch):
    monkeypatch.setattr(entries, "PAGE", 4)
    for number in range(20):
        calls = ("a", "b")[: 1 + number % 2]
        await store.append(turn("s", f"t{number}", '"hm"', calls=calls))
    everything = [(e.turn, e.call) for e in await store.entries(limit=99)]
    read, read_entry = [], entries.read_entry
    monkeypatch.setattr(
        entries, "read_entry", lambda row, damage: read.append(row) or read_entry(row, damage)
    )
    for which in (ALL_ENTRIES, EntryFilter(provider="deepseek")):
        for offset in range(31):
            listed = await store.entries(which, offset=offset, limit=1)
            assert [(e.turn, e.call) for e in listed] == everything[offset : offset + 1]
            assert len(read) <= 2 * 4
            read.clear()
