"""What is erased from the log is not left in any page of the file."""

from stores.samples import turn
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.sqlite import erasure


async def test_what_is_erased_is_not_left_in_the_file(store, tmp_path):
    await store.append(turn("s", "t1", '"a thought like no other"', keys=[b"n" * 16]))
    await store.append(turn("s", "t2", '"another one"', tenant="T"))
    assert await store.erase(EntryFilter(tenant="T", model="v5")) == 0
    assert await store.erase(ALL_ENTRIES) == 2
    assert await store.entries() == []
    await store.close()
    pages = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"a thought like no other" not in pages


async def test_it_takes_a_few_at_a_time(store, monkeypatch):
    monkeypatch.setattr(erasure, "CHUNK", 3)
    for number in range(10):
        await store.append(turn("s", f"t{number}", '"hm"'))
    slices = []
    assert await store.erase(ALL_ENTRIES, progress=lambda *of: slices.append(of)) == 10
    assert len(slices) == 4
    assert slices == sorted(slices)
