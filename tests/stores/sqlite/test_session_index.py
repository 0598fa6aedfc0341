"""The index of a session in the file: keys that are missing, and keys that lead nowhere."""

from stores.samples import turn
from support.sqlite_files import edit
from thoughtline.stores.sqlite import SqliteStore

A, B = b"a" * 16, b"b" * 16


async def damaged(store, path, *statements):
    """The same file after somebody else has changed it."""
    await store.close()
    edit(path, *statements)
    return SqliteStore(path)


async def test_a_key_that_is_not_filed_is_told(store, tmp_path):
    await store.append(turn("s", "t1", '"a"', keys=[A, B]))
    gone = f"DELETE FROM lookup_keys WHERE name = x'{A.hex()}'"
    again = await damaged(store, tmp_path / "store.db", gone)
    [filed] = await again.index("s")
    assert filed.unfiled == {A}
    await again.reindex("s", [filed.entry])
    assert [one.unfiled for one in await again.index("s")] == [frozenset()]
    assert (await again.find("T", [A])).keys() == {A}
    await again.close()


async def test_keys_of_entries_that_are_gone_are_pruned(store, tmp_path):
    await store.append(turn("s", "t1", '"a"', keys=[A, B]))
    again = await damaged(store, tmp_path / "store.db", "UPDATE batches SET memo = x''")
    assert await again.find("T", [A]) == {}
    assert await again.prune_index() == 2
    assert await again.prune_index() == 0
    await again.close()
