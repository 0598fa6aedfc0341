"""What is known of damaged values, and what stands in their place."""

from thoughtline.errors import Damaged
from thoughtline.log.events import DAMAGED
from thoughtline.log.index import IndexEntry
from thoughtline.stores.damage import (
    MAX_SESSIONS,
    DamagedSessions,
    damaged_entry,
    damaged_events,
    is_damaged,
)


def test_of_many_sessions_a_few_are_named():
    damage, told = DamagedSessions(), []
    damage.tell = told.append
    assert str(damage) == damage.reason("s0") == ""
    for number in range(MAX_SESSIONS + 5):
        damage.note(f"s{number}", Damaged("it does not open"))
        damage.note("s0", Damaged("another one"))
    assert len(told) == MAX_SESSIONS and damage.reason("s0") == "session 's0': it does not open"
    assert f"values of {MAX_SESSIONS} session(s) are damaged (s0, s1, s2 and 997 more)" in str(
        damage
    )


def test_what_stands_for_damaged_values():
    events = damaged_events("s", 3, 2, "t1")
    assert [(e.seq, e.parent, e.type) for e in events] == [(3, "t1", DAMAGED), (4, "t1", DAMAGED)]
    assert is_damaged(damaged_entry("s", "t1"))
    assert not is_damaged(IndexEntry("s", "t1", shape="t"))
