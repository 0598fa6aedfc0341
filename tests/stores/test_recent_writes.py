"""What this process wrote lately is found before it is committed, and while the store is down."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stores.samples import turn
from thoughtline.stores.recent_writes import RecentWrites

A, B = b"a" * 16, b"b" * 16


def merged(recent, tenant="T", keys=(A, B)):
    found = {}
    recent.merge(tenant, keys, found)
    return {key: [entry.turn for entry in entries] for key, entries in found.items()}


def test_what_is_not_committed_is_merged():
    recent = RecentWrites(10, 1 << 20)
    one, two = turn("s", "t1", keys=[A, B]), turn("s", "t2", keys=[A])
    recent.add(one)
    recent.add(two)
    assert merged(recent) == {A: ["t2", "t1"], B: ["t1"]}
    assert merged(recent, tenant="U") == {}
    recent.remove(one)
    assert merged(recent) == {A: ["t2"]}
    recent.commit(two)
    assert merged(recent) == {}


def test_what_is_committed_is_merged_once_the_store_failed():
    recent = RecentWrites(2, 1 << 20)
    for n in range(3):
        batch = turn("s", f"t{n}", keys=[A])
        recent.add(batch)
        recent.commit(batch)
    committed = recent.committed("T", {A, B})
    assert {key: [e.turn for e in entries] for key, entries in committed.items()} == {
        A: ["t2", "t1"]  # the last two
    }
    recent.restore()
    assert merged(recent) == {A: ["t2", "t1"]}
    recent.clear()
    assert merged(recent) == {}
    assert recent.committed("T", {A}) == {}
    assert not recent


def test_what_is_committed_is_bounded_in_bytes():
    recent = RecentWrites(100, 50_000)
    for n in range(10):
        batch = turn("s", f"t{n}", f'"{"x" * 10_000}"', keys=[A])
        recent.add(batch)
        recent.commit(batch)
    assert 0 < recent.size <= 50_000
    assert [entry.turn for entry in recent.committed("T", {A})[A]] == ["t9", "t8", "t7", "t6"]
    recent.clear()
    assert recent.size == 0


def test_more_of_a_turn_that_is_being_written():
    recent = RecentWrites(10, 1 << 20)
    one, two = turn("s", "t1", keys=[A]), turn("s", "t1", keys=[A, B])
    recent.add(one, 1.0)
    recent.add(two, 2.0)
    assert recent.since == 1.0
    assert merged(recent) == {A: ["t1", "t1"], B: ["t1"]}
    recent.remove(one)
    assert merged(recent) == {B: ["t1"]}
    recent.remove(two)
    assert merged(recent) == {}
    assert not recent


def test_an_entry_that_was_changed_meanwhile_is_removed_by_its_turn():
    recent = RecentWrites(10, 1 << 20)
    batch = turn("s", "t1", keys=[A])
    recent.add(batch)
    [entry] = batch.index
    recent.remove(replace(batch, index=(replace(entry, forgotten=("",)),)))
    assert merged(recent) == {}
    assert not recent


BATCHES = [turn("s", f"t{n}", keys=keys) for n, keys in enumerate(([A], [B], [A, B], [A, B]))]


@given(st.lists(st.sampled_from(BATCHES), max_size=12))
def test_whether_somebody_looked_in_between_makes_no_difference(batches):
    looked_at, unseen = RecentWrites(10, 1 << 20), RecentWrites(10, 1 << 20)
    writing = set()
    for batch in batches:
        turn = batch.index[0].turn
        for recent in (looked_at, unseen):
            (recent.commit if turn in writing else recent.add)(batch)
        writing ^= {turn}
        merged(looked_at)
    assert bool(unseen) == bool(looked_at)
    assert unseen.since == looked_at.since
    assert unseen.uncommitted("T", [A, B]) == looked_at.uncommitted("T", [A, B])
    assert unseen.parents("T") == looked_at.parents("T")
    assert merged(unseen) == merged(looked_at)
