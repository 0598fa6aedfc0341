"""Thought entries of a tool call."""

from stores.samples import turn
from thoughtline.stores.base import EntryFilter


async def test_a_call_is_found_without_a_scan_in_every_tenant(store):
    for tenant in "AB":
        await store.append(turn(f"s{tenant}", "t1", '"a"', calls=("x",), tenant=tenant))
    assert dict(await store.count_calls("x")) == {"A": 1, "B": 1}
    assert await store.forget(EntryFilter(call="x", tenant="A")) == 1
    assert dict(await store.count_calls("x")) == {"B": 1}
