"""Several processes on one file: what one writes or erases, the others know at once."""

import pytest

from stores.samples import StillClock, refusal, turn
from support.fragile_store import A, B, Fragile
from support.sqlite_files import held
from thoughtline.errors import Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.sqlite import SqliteStore


@pytest.fixture
async def pair(tmp_path):
    """Two stores on one file, as two processes have them."""
    stores = [CachedStore(SqliteStore(tmp_path / "store.db")) for _ in range(2)]
    yield stores
    for store in stores:
        await store.close()


async def turns(store, key=A):
    return [entry.turn for entry in (await store.find("T", [key])).get(key, ())]


async def thoughts(store, key=A):
    return [t.raw for entry in (await store.find("T", [key])).get(key, ()) for t in entry.thoughts]


async def test_what_a_neighbour_captures_makes_a_tie_here(pair):
    here, there = pair
    await here.append(turn("s", "one", '"here"', keys=(A,)))
    assert await turns(here) == ["one"]
    await there.append(turn("u", "two", '"there"', keys=(A,)))
    assert await turns(here) == ["two", "one"]
    await here.append(turn("s", "three", keys=(B,)))  # an own commit between
    await there.append(turn("v", "four", keys=(A,)))
    assert await turns(here) == ["four", "two", "one"]


async def test_a_key_that_was_empty_is_asked_for_again(pair):
    here, there = pair
    await here.append(turn("s", "one", keys=(B,)))
    assert await turns(here) == []
    await there.append(turn("u", "two", keys=(A,)))
    assert await turns(here) == ["two"]


ERASE = {
    "forget": lambda store: store.forget(EntryFilter(tenant="T")),
    "erase": lambda store: store.erase(EntryFilter(tenant="T")),
    "purge": lambda store: store.purge(session="s"),
    "reindex": lambda store: store.reindex("s", (), remove=["one"]),
    "quarantine": lambda store: store.append(refusal("s", "one")),
}


@pytest.mark.parametrize("how", ERASE)
@pytest.mark.parametrize("who", ["here", "there"])
async def test_the_epoch_changes_when_what_was_found_is_erased(pair, how, who):
    here, there = pair
    await here.append(turn("s", "one", '"here"', keys=(A,)))
    before = here.epoch()
    assert before is not None
    await here.append(turn("s", "two", '"more"', keys=(B,)))
    assert await turns(here) == ["one"]
    assert here.epoch() == before
    await ERASE[how](here if who == "here" else there)
    assert await turns(here, B) is not None
    assert here.epoch() not in (None, before)


async def test_the_epoch_is_not_known_while_the_store_is_not(fragile):
    hot = CachedStore(fragile)
    assert hot.epoch() is not None
    fragile.down = True
    with pytest.raises(Unavailable):
        await hot.append(turn("s", "one", keys=(A,)))
    assert hot.epoch() is None


async def test_the_epoch_changes_before_what_was_found_can_expire(tmp_path):
    clock = StillClock()
    store = CachedStore(SqliteStore(tmp_path / "s.db", clock=clock), clock=clock, retention=10.0)
    await store.append(turn("s", "one", keys=(A,), at=clock.now))
    assert await turns(store) == ["one"]
    before = store.epoch()
    clock.now += 11.0
    assert await turns(store) == []
    assert store.epoch() != before
    await store.close()


@pytest.mark.parametrize("how", ERASE)
@pytest.mark.parametrize("down", [False, True])
async def test_what_a_neighbour_erases_is_not_sent_here(pair, how, down):
    """Not even from memory, while the file does not answer."""
    here, there = pair
    await here.append(turn("s", "one", '"secret"', keys=(A,)))
    assert await thoughts(here) == ['"secret"']
    await ERASE[how](there)
    if down:
        here.store.find = Fragile.find.__get__(_Down())
    try:
        entries = (await here.find("T", [A])).get(A, ())
    except Exception:  # noqa: BLE001 (nothing is there to answer with)
        entries = ()
    assert all(
        entry.quarantined or all(thought.forgotten for thought in entry.thoughts)
        for entry in entries
    )


class _Down:
    down = True


async def test_alone_it_is_answered_from_memory(tmp_path):
    store = CachedStore(SqliteStore(tmp_path / "store.db"))
    await store.append(turn("s", "one", keys=(A,)))
    asked = []
    find = store.store.find

    async def counted(tenant, keys):
        asked.append(keys)
        return await find(tenant, keys)

    store.store.find = counted
    for number in range(3):
        assert await turns(store) == ["one"]
        await store.append(turn("s", f"more-{number}", keys=(B,)))
    assert len(asked) == 1
    await store.close()


async def test_while_the_file_is_locked_memory_answers(tmp_path):
    path = tmp_path / "store.db"
    store = CachedStore(SqliteStore(path, timeout=0.05), retry=0.01)
    await store.append(turn("s", "one", keys=(A,)))
    assert await turns(store) == ["one"]
    with held(path):
        assert await turns(store) == ["one"]
    await store.close()
