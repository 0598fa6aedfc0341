"""Entries are forgotten while others write."""

from msgspec.structs import replace

from stores.samples import turn
from thoughtline.stores.base import ALL_ENTRIES

A, B = b"a" * 16, b"b" * 16


async def test_an_entry_that_somebody_files_meanwhile_is_forgotten_all_the_same(store, other):
    await store.append(turn("s", "t1", '"a"', keys=[A]))
    pages = store._entries.pages

    async def slow(*args):
        async for rows in pages(*args):
            await other.append(replace(turn("s", "t1", '"a"', keys=[A, B]), drafts=()))
            yield rows

    store._entries.pages = slow
    assert await store.forget(ALL_ENTRIES) == 1
    assert [t.raw for t in (await other.find("T", [B]))[B][0].thoughts] == ["null"]
