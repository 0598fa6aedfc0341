"""What a process counts of what it writes, until the store has it."""

from stores.contract import decided
from thoughtline.log.turn_counts import FINE, KEPT, body_of
from thoughtline.stores import turn_counting
from thoughtline.stores.turn_counting import TurnCounting

NOW = 999_600.0


def turns(rows):
    return sum(count for seconds, *_, name, count in rows if (seconds, name) == (FINE, "turns"))


def test_what_is_taken_is_counted_once_and_what_is_given_back_is_kept():
    counting = TurnCounting()
    assert not counting
    for number in range(3):
        counting.add("s", decided("s", f"t{number}", at=NOW).drafts)
    assert counting
    rows = counting.take({}, NOW)
    assert turns(rows) == 3
    assert not counting
    counting.give_back(rows)
    assert counting
    assert turns(counting.take({}, NOW)) == 3
    assert counting.take({}, NOW) == []


def test_what_is_too_long_ago_is_not_taken():
    counting = TurnCounting()
    counting.add("s", decided("s", "t1", at=NOW).drafts)
    assert {seconds for seconds, *_ in counting.take({}, NOW + KEPT[FINE] + 2 * FINE)} == {10_800}


def test_the_start_of_a_turn_that_began_elsewhere_is_asked_for(monkeypatch):
    start, *rest = decided("s", "t1", at=NOW).drafts
    counting = TurnCounting()
    counting.add("s", rest)
    assert counting.unknown == {("s", "t1")}
    rows = counting.take({("s", "t1"): body_of(start)}, NOW)
    assert {row[2:4] for row in rows} == {("deepseek", "v4")}
    monkeypatch.setattr(turn_counting, "MAX_RUNNING", 0)
    counting.add("s", [start])  # it is forgotten at once
    counting.add("s", rest)
    assert counting.unknown == {("s", "t1")}
