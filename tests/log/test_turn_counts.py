"""What is counted of a turn, and where."""

from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import Event, Outcome, TurnEnded, TurnStarted, Usage, draft
from thoughtline.log.parts import Origin
from thoughtline.log.turn_counts import (
    COARSE,
    FINE,
    KEPT,
    TurnCounter,
    ended_counts,
    started_counts,
)

ORIGIN = Origin(provider="deepseek", model="v4")
STARTED = TurnStarted(target=ORIGIN, replay=(ReplayDecision(turn=0, action=Action.RESTORED),))


def event(body, seq=0, at=COARSE * 9.0, **fields):
    made = draft(body, id=fields.get("id", "t1"), parent=fields.get("parent", ""), at=at)
    names = ("id", "parent", "at", "type", "version", "data")
    return Event(session="s", seq=seq, **{name: getattr(made, name) for name in names})


def test_repeated_decisions_are_counted_from_the_tally():
    assert started_counts(STARTED) == {"restored": 1, "new_restored": 1}
    again = TurnStarted(repeated=4, tally={"restored": 5}, replay=STARTED.replay)
    assert started_counts(again) == {"restored": 5, "new_restored": 1}


def test_an_end_counts_its_tokens_and_that_it_failed():
    usage = Usage(input=200_000, output=7, reasoning=5, cached=0)
    ended = TurnEnded(outcome=Outcome.FAILED, usage=usage)
    assert ended_counts(ended, usage) == {
        "failed_turns": 1,
        "input_tokens": 200_000,
        "output_tokens": 7,
        "reasoning_tokens": 5,
        "long_turns": 1,
    }


def test_a_turn_counts_in_both_lengths():
    counter = TurnCounter(lambda _: None)
    counter.add(event(STARTED))
    ended = TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=7))
    counter.add(event(ended, 1, id="e", parent="t1"))
    assert {key[0]: dict(counts) for key, counts in counter.counts.items()} == {
        seconds: {"turns": 1, "restored": 1, "new_restored": 1, "input_tokens": 7}
        for seconds in (FINE, COARSE)
    }


def test_the_start_is_looked_up_when_it_is_not_among_the_events():
    counter = TurnCounter(lambda _: STARTED)
    counter.add(event(TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=7)), parent="t0"))
    assert {key[2:] for key in counter.counts} == {("deepseek", "v4")}


def test_what_is_not_kept_any_longer_is_dropped():
    counter = TurnCounter(lambda _: None)
    counter.add(event(STARTED))
    counter.drop_expired(COARSE * 9.0 + KEPT[FINE] + COARSE)
    assert {key[0] for key in counter.counts} == {COARSE}
