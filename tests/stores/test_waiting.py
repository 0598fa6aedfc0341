"""Batches that wait: which of them are written at once."""

from msgspec.structs import replace

from stores.samples import notes
from thoughtline.stores.waiting import (
    LOOKED_AT,
    MAX_BATCHES,
    MAX_BYTES,
    batch_size,
    describe,
    next_to_write,
)


def waiting(*sessions, size=10):
    return [replace(describe(notes(session)), size=size) for session in sessions]


def test_a_batch_is_described_without_it():
    batch = notes("s", 3, held=5.0)
    found = describe(batch)
    assert (found.session, found.tenant, found.held, found.batch) == ("s", "T", 5.0, None)
    assert found.size == batch_size(batch) > 3 * batch_size(notes("s")) / 2
    assert describe(batch).number > found.number


def test_the_first_of_each_session_is_written():
    items = waiting("a", "a", "b", "a", "c")
    assert next_to_write(items) == [items[0], items[2], items[4]]
    assert next_to_write([]) == []


def test_no_more_than_so_many_at_once():
    items = waiting(*[f"s{number}" for number in range(2 * MAX_BATCHES)])
    assert next_to_write(items) == items[:MAX_BATCHES]


def test_no_more_bytes_than_that_but_for_one_that_is_larger():
    items = waiting("a", "b", "c", size=MAX_BYTES // 2)
    assert next_to_write(items) == items[:2]
    large = waiting("a", "b", size=2 * MAX_BYTES)
    assert next_to_write(large) == large[:1]


def test_of_a_session_that_has_very_many_the_others_are_not_searched_for():
    items = waiting(*["a"] * LOOKED_AT, "b")
    assert next_to_write(items) == items[:1]
