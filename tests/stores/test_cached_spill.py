"""What the store cannot take is kept in memory and beside it: found meanwhile, and written later."""

import asyncio
import gc
import subprocess
import time
import tracemalloc

import pytest
from msgspec.structs import replace

from stores.samples import turn
from support.fragile_store import A, B
from support.sqlite_files import damage, held
from support.waiting import eventually
from thoughtline.errors import Corrupt, Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.spill import SpillFile
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.sqlite.salvage import salvage


class Observer:
    def __init__(self):
        self.commits, self.lost, self.damage = 0, [], []

    def committed(self, seconds):
        self.commits += 1

    def dropped(self, batch, why):
        self.lost.append((batch, why))

    def damaged(self, why):
        self.damage.append(why)


def key(number):
    return number.to_bytes(16, "big")


def large(number, size, session="s"):
    """A turn whose thought has this many bytes."""
    return turn(session, f"t{number}", f'"{"x" * size}"', keys=(key(number), A))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def opened(path, **options):
    store = SqliteStore(path, timeout=0.05)
    return CachedStore(store, spill=path, **{"retry": 60.0, **options})


async def appended(store, *batches):
    for batch in batches:
        with pytest.raises(Unavailable):
            await store.append(batch)


async def found(store, *keys):
    entries = await store.find("T", keys)
    return [entry.turn for one in keys for entry in entries.get(one, ())]


async def raws(store, *keys):
    """The thoughts that are found."""
    entries = await store.find("T", keys)
    return [t.raw for filed in entries.values() for entry in filed for t in entry.thoughts]


async def started(path):
    store = SqliteStore(path)
    events = await store.read("s")
    await store.close()
    assert [event.seq for event in events] == list(range(len(events)))
    return [event.id for event in events if event.type == "turn_started"]


async def caught_up(store):
    await eventually(lambda: not store.backlog)


# -- bytes -------------------------------------------------------------------------------------


async def less_is_taken_than(most):
    """Wait until loop and thread have let go of the last answer, and no more than this is taken."""

    def few():
        gc.collect()
        return tracemalloc.get_traced_memory()[0] < most

    await eventually(few)


async def test_memory_is_bounded_in_bytes(path):
    """Whatever is held: answers, what was written lately, and what waits."""
    limit, count = 8 << 20, 40
    store = opened(path, size=limit)
    await store.append(large(9999, 10))
    tracemalloc.start()
    try:
        for number in range(count):
            await store.append(large(number, 1 << 20))
            await store.find("T", [key(number)])
            await store.find("T", [A])  # the same turns under another key
        await less_is_taken_than(1.5 * limit)
        with held(path):
            await appended(store, *[large(number, 1 << 20) for number in range(count, count + 20)])
            await less_is_taken_than(1.5 * limit)
            assert store.memory <= limit
            for number in range(count, count + 20):
                assert await found(store, key(number)) == [f"t{number}"]
    finally:
        tracemalloc.stop()
    await store.close()
    assert len(await started(path)) == count + 21


async def test_a_long_lock_loses_nothing(path):
    observer = Observer()
    store = opened(path, backlog=20_000, observer=observer)
    await store.append(large(0, 100))
    with held(path):
        await appended(store, *[large(number, 1_000) for number in range(1, 200)])
        assert store.lost == 0
        assert await found(store, key(1), key(100), key(199)) == ["t1", "t100", "t199"]
        [file] = path.parent.glob("store.db-spill-*")
        assert file.stat().st_mode & 0o777 == 0o600
    await store.close()
    assert observer.lost == []
    assert await started(path) == [f"t{number}" for number in range(200)]
    assert not list(path.parent.glob("store.db-spill-*"))


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk; root may")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def enlarge(disk):
    subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)


async def test_when_the_disk_is_full_for_both_the_loss_is_said(disk):
    observer = Observer()
    store = opened(disk / "store.db", backlog=30_000, observer=observer)
    outcomes = []
    for number in range(60):
        try:
            await store.append(large(number, 10_000))
            outcomes.append("written")
        except Unavailable:
            outcomes.append("waits")
    assert outcomes.count("written") > 0
    assert store.lost == len(observer.lost) > 0
    assert all("full" in why and "No space" in why for _, why in observer.lost)
    assert store.lost + store.backlog == outcomes.count("waits")
    assert "No space" in store.unsaved
    kept = [n for n in range(60) if f"t{n}" not in {b.index[0].turn for b, _ in observer.lost}]
    for number in kept:
        assert await found(store, key(number)) == [f"t{number}"]
    enlarge(disk)
    await store.close()
    assert await started(disk / "store.db") == [f"t{number}" for number in kept]


# -- the process ends ----------------------------------------------------------------------------


async def test_what_waits_is_found_and_written_by_the_next_process(path):
    first = opened(path)
    await first.append(large(0, 10))
    with held(path):
        await appended(first, large(1, 10), large(2, 10))
        first._backlog._saver.close()  # as a process that is killed
        second = opened(path)
        assert await found(second, key(1), key(2)) == ["t1", "t2"]
        await appended(second, large(3, 10))
    await second.close()
    assert await started(path) == ["t0", "t1", "t2", "t3"]


async def test_what_was_written_after_all_is_not_written_twice(path):
    first = opened(path, save_after=0.001)
    append = first.store.append
    committed, answer = asyncio.Event(), asyncio.Event()

    async def slow(batch):
        events = await append(batch)
        committed.set()
        await answer.wait()
        return events

    first.store.append = slow
    writing = asyncio.ensure_future(first.append(replace(large(0, 10), id="t0")))
    await committed.wait()
    await eventually(lambda: list(path.parent.glob("store.db-spill-*")))
    first._backlog._saver.close()  # killed after the commit, before it knew
    second = opened(path)
    assert await found(second, key(0)) == ["t0"]
    await caught_up(second)
    await second.close()
    assert await started(path) == ["t0"]
    writing.cancel()


async def test_a_commit_that_takes_long_is_saved_and_then_released(path):
    store = opened(path, save_after=0.001)
    append, answer = store.store.append, asyncio.Event()

    async def slow(batch):
        await answer.wait()
        return await append(batch)

    store.store.append = slow
    writing = asyncio.ensure_future(store.append(large(0, 10)))
    await eventually(lambda: list(path.parent.glob("store.db-spill-*")))
    answer.set()
    await writing
    assert not list(path.parent.glob("store.db-spill-*"))
    await store.close()


async def test_what_is_only_in_the_file_is_found_while_the_store_does_not_answer(path):
    first = opened(path)
    await first.append(large(0, 10))
    with held(path):
        await appended(first, large(1, 10))
        first._backlog._saver.close()  # as a process that is killed
        second = opened(path)

        async def down(tenant, keys):
            raise Unavailable("it is gone")

        find, second.store.find = second.store.find, down
        assert await found(second, key(1)) == ["t1"]
        with pytest.raises(Unavailable):
            await found(second, key(0))
        second.store.find = find
    await second.close()


async def test_a_turn_that_is_only_in_the_file_continues_another(path):
    store = opened(path, backlog=0)
    await store.append(large(0, 10))
    with held(path):
        await appended(store, turn("s", "t1", keys=(B,), parent="t0"))
        assert store._backlog.unloaded
        assert await store.continued("T", ["t0"]) == {"t0": 1}
        await appended(store, turn("s", "t2", keys=(B,), parent="t1"))
        assert await store.continued("T", ["t0", "t1"]) == {"t0": 2, "t1": 1}
        assert await store.continued("other", ["t0"]) == {}
    await store.close()


async def test_an_append_that_is_cancelled_leaves_nothing_to_another_batch(path):
    store = opened(path, save_after=0.001)
    append, answer = store.store.append, asyncio.Event()

    async def slow(batch):
        await answer.wait()
        return await append(batch)

    store.store.append = slow
    writing = asyncio.ensure_future(store.append(large(0, 10)))
    await eventually(lambda: list(path.parent.glob("store.db-spill-*")))
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await store.close()  # what was saved is left to the next process
    again = opened(path)
    assert await found(again, key(0)) == ["t0"]
    await caught_up(again)
    await again.close()
    assert await started(path) == ["t0"]


# -- erasing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1 << 20])
async def test_what_is_erased_while_it_waits_is_not_written_later(path, limit):
    store = opened(path, backlog=limit)
    await store.append(turn("z", "t0"))
    with held(path):
        for number, session in enumerate("ab"):
            batch = turn(session, f"t{session}", '"secret"', keys=(key(number),), calls=(session,))
            await appended(store, batch)
        with pytest.raises(Unavailable):  # the store itself cannot
            await store.erase(EntryFilter(call="a"))
        await store.purge(session="b")  # it has none of it
        entries = await store.find("T", [key(0), key(1)])
        assert [entry.turn for entry in entries.pop(key(0))] == ["ta"]  # known, and blank
        assert entries == {}
        [file] = path.parent.glob("store.db-spill-*")
        assert b"secret" not in file.read_bytes()
    await store.close()
    again = SqliteStore(path)
    assert len(await again.read("a")) == 3
    assert await again.read("b") == []
    assert await again.entries() == []
    await again.close()


async def test_erasing_reaches_what_a_process_left_that_died_meanwhile(path):
    store, other = opened(path), opened(path)
    await store.append(turn("z", "t0"))  # it has looked for files already
    await other.append(turn("z", "t1"))
    with held(path):
        for session in "ab":
            batch = turn(session, f"t{session}", '"secret"', keys=(key(1),), calls=(session,))
            await appended(other, batch)
        await other.close()  # it cannot write them either
    await store.erase(EntryFilter(call="a"))
    await store.purge(session="b")
    assert all(b"secret" not in file.read_bytes() for file in path.parent.glob("*-spill-*"))
    await store.close()
    again = opened(path)
    assert await raws(again, key(1)) == ["null"]
    await again.close()


async def test_what_was_written_and_then_erased_is_not_filed_again(path):
    """A process died after its commit, and before it could let go of what it had saved."""
    batch = replace(turn("a", "ta", '"secret"', keys=(key(1),), calls=("a",)), id="ta")
    left = SpillFile.create(path)
    left.append(replace(batch, held=time.time()))
    store = opened(path)
    await store.append(batch)
    await store.erase(EntryFilter(call="a"))
    left.close()
    await store.close()
    again = opened(path)
    assert await raws(again, key(1)) == ["null"]
    await caught_up(again)
    assert await raws(again, key(1)) == ["null"]
    await again.close()


# -- damage --------------------------------------------------------------------------------------


async def test_a_damaged_file_loses_no_turn(path, tmp_path):
    first = opened(path)
    for number in range(20):
        await first.append(large(number, 3_000))
    await first.close()
    damage(path)
    observer = Observer()
    store = opened(path, observer=observer)
    batches = [large(number, 10, session=f"s{number}") for number in range(100, 110)]
    kept = 0
    for batch in batches:
        try:
            await store.append(batch)
        except Unavailable as error:
            assert "is damaged" in str(error)
            assert "salvage" in str(error)
            kept += 1
    assert kept > 0
    assert "is damaged" in store.trouble
    assert len(observer.damage) == 1
    assert observer.lost == []
    assert store.lost == 0
    assert await found(store, *[key(n) for n in range(100, 110)]) == [
        f"t{n}" for n in range(100, 110)
    ]
    await store.close()
    rescued = tmp_path / "rescued.db"
    await salvage(path, rescued)
    for left in tmp_path.glob("store.db*"):
        if "spill" not in left.name:
            left.unlink()
    rescued.rename(path)
    again = opened(path)
    assert await found(again, key(105)) == ["t105"]
    await caught_up(again)
    assert again.trouble == ""
    for batch in batches:
        events = await again.read(batch.session)
        assert [event.id for event in events] == [draft.id for draft in batch.drafts]
    await again.close()


async def test_damage_that_a_look_up_meets_is_said_until_the_process_ends(path):
    observer = Observer()
    store = opened(path, observer=observer)
    await store.append(large(0, 10))
    find = store.store.find

    async def damaged(tenant, keys):
        raise Corrupt("it is damaged")

    store.store.find = damaged
    assert await found(store, key(0)) == ["t0"]
    store.store.find = find
    assert await found(store, B) == []
    assert store.trouble == "it is damaged"
    assert observer.damage == ["it is damaged"]
    await store.close()
