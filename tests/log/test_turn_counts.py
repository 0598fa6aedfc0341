"""What is counted of a turn, and where."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.plain_turn_counter import plain_counts
from thoughtline.log.decisions import TIED, Action, MatchLevel, ReplayDecision, tally
from thoughtline.log.events import Event, Outcome, TurnEnded, TurnStarted, Usage, draft
from thoughtline.log.parts import Origin
from thoughtline.log.turn_counts import (
    COARSE,
    FINE,
    LONG_PROMPT,
    TurnCounter,
    ended_counts,
    started_counts,
    token_counts,
)

ORIGIN = Origin(provider="deepseek", model="v4")
STARTED = TurnStarted(target=ORIGIN, replay=(ReplayDecision(turn=0, action=Action.RESTORED),))


def event(body, seq=0, at=COARSE * 9.0, **fields):
    made = draft(body, id=fields.get("id", "t1"), parent=fields.get("parent", ""), at=at)
    names = ("id", "parent", "at", "type", "version", "data")
    return Event(session="s", seq=seq, **{name: getattr(made, name) for name in names})


def test_repeated_decisions_are_counted_from_the_tally():
    assert started_counts(STARTED, "") == {"restored": 1, "new_restored": 1}
    again = TurnStarted(repeated=4, tally={"restored": 5}, replay=STARTED.replay)
    assert started_counts(again, "") == {"restored": 5, "new_restored": 1}


def test_only_the_output_of_the_turn_before_and_what_follows_is_new():
    made = [ReplayDecision(turn=n, action=Action.RESTORED, entry=f"t{n}") for n in range(4)]
    made.append(ReplayDecision(turn=4, action=Action.ABSENT, reason="unknown"))
    started = TurnStarted(replay=tuple(made))
    counts = {"restored": 4, "absent": 1, "missed": 1}
    new = {"new_restored": 1, "new_absent": 1, "new_missed": 1}
    assert started_counts(started, "t3") == counts | new
    assert started_counts(started, "t2")["new_restored"] == 2
    assert started_counts(started, "failed") == counts


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
    counter = TurnCounter(lambda *_: None)
    counter.add("s", event(STARTED))
    ended = TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=7))
    counter.add("s", event(ended, 1, id="e", parent="t1"))
    assert {key[0]: dict(counts) for key, counts in counter.counts.items()} == {
        seconds: {"turns": 1, "restored": 1, "new_restored": 1, "input_tokens": 7}
        for seconds in (FINE, COARSE)
    }


def test_the_start_is_looked_up_when_it_is_not_among_the_events():
    counter = TurnCounter(lambda *_: STARTED)
    counter.add("s", event(TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=7)), parent="t0"))
    assert {key[2:] for key in counter.counts} == {("deepseek", "v4")}


@pytest.mark.parametrize("at", [nan, inf, -inf, 1.7e308, -1e300])
def test_a_time_that_is_none_does_not_stop_the_counting(at):
    counter = TurnCounter(lambda *_: None)
    counter.add("s", event(TurnStarted(), at=at))
    assert {key[1] for key in counter.counts} == {0}
    counter.add("s", event(TurnStarted()))
    assert sum(counts["turns"] for counts in counter.counts.values()) == 4


def test_zeros_and_long_prompts():
    assert token_counts(Usage(input=0, output=None)) == {}
    assert token_counts(Usage(input=LONG_PROMPT)) == {"input_tokens": LONG_PROMPT}
    assert token_counts(Usage(input=LONG_PROMPT + 1, cache_write=2)) == {
        "input_tokens": LONG_PROMPT + 1,
        "long_turns": 1,
        "cache_write_tokens": 2,
    }


names = st.sampled_from(["", "a", "deepseek"])
origins = st.builds(
    Origin,
    dialect=st.sampled_from(["", "chat", "messages", "gemini"]),
    provider=names,
    endpoint=st.sampled_from(["", "sim:x", "https://a.test"]),
    model=names,
)
decisions = st.builds(
    ReplayDecision,
    turn=st.integers(0, 3),
    action=st.sampled_from(list(Action)),
    reason=st.sampled_from(["", "unknown", TIED, "uncorroborated"]),
    level=st.sampled_from(list(MatchLevel)),
    entry=st.sampled_from(["", "t1", "t2"]),
)
tallies = st.dictionaries(
    st.sampled_from(["restored", "turns", "new_restored", "missed"]), st.integers(0, 9)
)
starts = st.builds(
    TurnStarted,
    target=st.none() | origins,
    replay=st.lists(decisions, max_size=4).map(tuple),
    repeated=st.integers(0, 2),
    tally=tallies,
)
tokens = st.none() | st.integers(0, 3) | st.just(LONG_PROMPT + 1)
usages = st.builds(
    Usage, input=tokens, output=tokens, reasoning=tokens, cached=tokens, cache_write=tokens
)
ends = st.builds(
    TurnEnded, outcome=st.sampled_from(list(Outcome)), usage=st.none() | usages, model=names
)
damaged = st.sampled_from(["", "[]", "{", '{"target": 5}', '{"outcome": "lost"}', '{"usage": []}'])
times = st.floats(0, 3e9, allow_nan=False) | st.integers(0, 100).map(lambda n: n * 300.0)


@st.composite
def logged(draw):
    is_start = draw(st.booleans())
    turn = draw(st.sampled_from(["t1", "t2", "t3"]))
    made = event(
        draw(starts if is_start else ends),
        at=draw(times),
        id=turn if is_start else "e",
        parent=draw(st.sampled_from(["", "t1", "t3"])) if is_start else turn,
    )
    version = draw(st.sampled_from([made.version] * 3 + [0, 1, 9]))
    data = draw(st.just(made.data) | st.just(made.data) | damaged)
    session = draw(st.sampled_from(["s", "r"]))
    return replace(made, version=version, data=data, session=session)


@given(st.lists(logged(), max_size=12), st.integers(0, 12))
def test_fast_counting_says_what_plain_counting_says(events, middle):
    counter = TurnCounter(lambda *_: None)
    for one in events[:middle]:
        counter.add(one.session, one)
    _ = counter.counts  # asking in between changes nothing
    for one in events[middle:]:
        counter.add(one.session, one)
    assert counter.counts == plain_counts(events)


@given(st.lists(decisions, max_size=6))
def test_a_tally_counts_each_decision_by_its_action(made):
    counted = tally(made)
    assert sum(counted.get(action.value, 0) for action in Action) == len(made)
    assert counted.get("missed", 0) == sum(one.missed for one in made)
    assert counted.get("tied", 0) == sum(one.tied for one in made)
    assert 0 not in counted.values()
