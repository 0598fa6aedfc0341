"""The index of a memory store."""

from stores.samples import after, refusal, turn
from thoughtline.stores.memory import MemoryStore

A = b"a" * 16


async def test_nothing_is_left_of_a_session_that_is_deleted():
    store = MemoryStore()
    await store.append(turn("s", "t1", '"hm"', keys=(A,)))
    await store.append(after("s", "t2", "t1"))
    await store.append(refusal("s", "t1", 0))
    index = store._index
    looked_up = [index._by_key, index._reasoning, index._continuing, index._referring, index._filed]
    assert all(looked_up)
    assert await store.purge(session="s") == 1
    assert not any(looked_up)
