"""Rules that every store follows: batches, conflicts, numbers, and what events refer to."""

import pytest

from stores.samples import fork, notes, refusal, turn
from thoughtline.errors import StoreError
from thoughtline.stores.base import Batch
from thoughtline.stores.rules import (
    REFERRING_TYPES,
    check_batch,
    find_conflict,
    number_events,
    read_thought,
    referred_id,
)


def test_a_batch_is_of_one_session_and_its_data_is_json():
    check_batch(turn("s", "t1", '"hm"'))
    [entry] = turn("elsewhere", "t1", '"hm"').index
    with pytest.raises(StoreError, match="cannot be filed with session 's'"):
        check_batch(Batch(session="s", tenant="T", drafts=(), index=(entry,)))


@pytest.mark.parametrize(
    ("tenant", "last", "expect", "says"),
    [
        (None, -1, None, ""),
        ("T", 4, 4, ""),
        ("T", 4, 3, "is at event 4, not 3"),
        ("another", 4, None, "belongs to another tenant"),
    ],
)
def test_conflicts(tenant, last, expect, says):
    found = find_conflict(notes("s", expect=expect), tenant, last)
    assert says in str(found) if says else found is None


def test_events_are_numbered_on_from_the_last():
    made = number_events(notes("s", 3), 7)
    assert [(event.session, event.seq, event.id) for event in made] == [
        ("s", 7, "e0"),
        ("s", 8, "e1"),
        ("s", 9, "e2"),
    ]


def test_which_other_turn_or_session_an_event_is_about():
    [refused], [forked] = refusal("s", "t1", 0).drafts, fork("s", "origin").drafts
    assert referred_id(refused.type, refused.data) == "t1"
    assert referred_id(forked.type, forked.data) == "origin"
    assert {refused.type, forked.type} == REFERRING_TYPES
    assert referred_id("note", refused.data) is None
    assert referred_id("quarantined", "[]") is referred_id("session_forked", "nonsense") is None


def test_a_thought_that_this_version_cannot_read_is_none():
    [_, reasoning, *_] = turn("s", "t1", '"hm"').drafts
    assert read_thought(reasoning.version, reasoning.data).raw == '"hm"'
    assert read_thought(reasoning.version, "{}") is None
