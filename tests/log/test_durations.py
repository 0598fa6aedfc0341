"""Durations: the same number live, stored and after a reload, whatever the order of things."""

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.agents.ui.chunks import MessageEncoder
from thoughtline.dialects.messages.reader import MessagesReader
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.log.durations import (
    duration_text,
    durations_json,
    output_timing,
    reasoning_durations,
    thought_spans,
    total_seconds,
    total_text,
)
from thoughtline.log.events import Event, Outcome, Reasoning, TurnEnded, TurnStarted, draft
from thoughtline.log.parts import Call, Carrier, Origin, Text, Thought, Timing
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.testing import FrozenClock

S = 10**9


@pytest.mark.parametrize(
    ("seconds", "aborted", "said"),
    [
        (1, False, "Thought for 1 second"),
        (2, False, "Thought for 2 seconds"),
        (23, False, "Thought for 23 seconds"),
        (59, False, "Thought for 59 seconds"),
        (60, False, "Thought for 1m 0s"),
        (65, False, "Thought for 1m 5s"),
        (3665, False, "Thought for 61m 5s"),
        (None, False, "Thought"),
        (1, True, "Stopped thinking after 1 second"),
        (5, True, "Stopped thinking after 5 seconds"),
        (65, True, "Stopped thinking after 1m 5s"),
        (None, True, "Stopped thinking"),
    ],
)
def test_words(seconds, aborted, said):
    assert duration_text(seconds, aborted=aborted) == said


# -- one thought ---------------------------------------------------------------------------------


def thought(opened=None, closed=None, *, id="", carrier=Carrier.BLOCK, text="hm", **more):
    timing = Timing(opened=opened, closed=closed, **more)
    return Thought(carrier=carrier, raw="{}", id=id, text=text, timing=timing)


def turn(*output):
    return Turn(output=output)


@pytest.mark.parametrize(
    ("length", "seconds"),
    [(0, 1), (1, 1), (S - 1, 1), (S, 1), (S + 1, 2), (22 * S + 1, 23), (23 * S, 23)],
)
def test_whole_seconds_rounded_up(length, seconds):
    assert reasoning_durations(turn(thought(7, 7 + length))) == {"part-0": seconds}


@pytest.mark.parametrize(
    "made",
    [
        thought(),
        thought(opened=5),
        thought(closed=5),
        thought(opened=9, closed=5),  # no clock says that
        thought(opened=5, aborted=True),
        Thought(carrier=Carrier.BLOCK, raw="{}"),
    ],
)
def test_unknown_stays_unknown(made):
    assert reasoning_durations(turn(made)) == {}
    assert total_seconds(turn(made)) is None
    [span] = thought_spans(turn(made))
    assert span.seconds is None
    assert "reasoningDurations" not in durations_json([span])


def test_in_an_answer_that_was_not_streamed_it_counts_from_the_request():
    made = turn(thought(closed=5 * S, sent=S), Text(text="x"), thought(closed=5 * S, sent=S))
    first, later = thought_spans(made)
    assert (first.seconds, first.text) == (4, "Thought for 4 seconds (since the request)")
    assert (later.seconds, later.text) == (None, "Thought")
    assert total_text(made) == first.text
    assert durations_json([first, later]) == {
        "reasoningDurations": {"part-0": 4},
        "reasoningStates": {"part-0": "done", "part-2": "done"},
        "reasoningClocks": {"part-0": "request"},
    }
    assert output_timing(made.output).seconds == ()  # for metrics: most of it is not thinking


def test_an_aborted_thought_was_seen_until_its_last_delta():
    [span] = thought_spans(turn(thought(S, aborted=True, first=2 * S, last=6 * S)))
    assert (span.seconds, span.text) == (5, "Stopped thinking after 5 seconds")
    assert durations_json([span])["reasoningStates"] == {"part-0": "aborted"}


def test_parts_of_one_item_are_one_thought():
    made = turn(thought(0, 3 * S, id="rs_1"), Text(text="x"), thought(4 * S, 9 * S, id="rs_1"))
    assert reasoning_durations(made) == {"rs_1": 9}


def test_what_a_chat_message_says_twice_is_one_thought():
    made = turn(
        thought(0, 3 * S, carrier=Carrier.REASONING),
        thought(0, 4 * S, carrier=Carrier.REASONING_DETAILS),
        thought(5 * S, 5 * S, carrier=Carrier.EXTRA_CONTENT, text=""),
        Call(name="f", arguments="{}"),
    )
    assert reasoning_durations(made) == {"part-0": 4}


def test_keys_are_relative_to_the_message():
    one = turn(thought(0, S), Text(text="x"), thought(S, 3 * S, id="rs_1"), thought(3 * S, 6 * S))
    two = turn(thought(0, 4 * S))
    assert reasoning_durations(one, two) == {"part-0": 1, "rs_1": 2, "part-3": 3, "part-4": 4}
    assert reasoning_durations(two) == {"part-0": 4}


def test_a_key_is_the_place_among_what_a_message_shows():
    made = turn(
        thought(0, S, text=""),
        Text(text=""),  # not shown
        Text(text="x"),
        Call(name="f", arguments="{}"),
        thought(S, 3 * S),
    )
    assert reasoning_durations(made) == {"part-0": 1, "part-3": 2}


def test_a_thought_that_was_held_back_counts_from_the_request():
    [span] = thought_spans(turn(thought(9 * S, 9 * S + 1, sent=S)))
    assert (span.seconds, span.requested) == (9, True)
    assert span.text == "Thought for 9 seconds (since the request)"
    assert durations_json([span])["reasoningClocks"] == {"part-0": "request"}


@pytest.mark.parametrize(
    "made",
    [
        turn(thought(9 * S, 10 * S, sent=S)),  # it came in pieces
        turn(thought(S + 5, S + 6, sent=S)),  # at once, and soon
        turn(Text(text="x"), thought(9 * S, 9 * S + 1, sent=S)),  # after something else
    ],
)
def test_other_thoughts_count_from_where_they_opened(made):
    assert [span.requested for span in thought_spans(made)] == [False]
    assert list(reasoning_durations(made).values()) == [1]


def test_overlap_counts_once():
    made = turn(thought(0, 5 * S, id="a"), thought(3 * S, 7 * S, id="b"), thought(9 * S, 10 * S))
    assert total_seconds(made) == 8
    assert total_seconds(made, made) == 16


# -- any order of things, on a frozen clock ------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "delta", "delta", "close"]),
        st.integers(0, 3),
        st.sampled_from([0, 0, 1, 40, 99, 100, 101, 400, 999, 1000, 1001, 2500, 61_000]),
    ),
    max_size=24,
)


class Watched:
    """What an onlooker with a clock of their own writes down about one thought."""

    def __init__(self, opened):
        self.opened, self.last, self.closed = opened, None, None


def frame(event):
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def item(n, **more):
    return {"type": "reasoning", "id": f"rs_{n}", "summary": [], **more}


RESPONSES = {
    "open": lambda n: {
        "type": "response.output_item.added",
        "output_index": n,
        "item": item(n),
    },
    "delta": lambda n: {
        "type": "response.reasoning_summary_text.delta",
        "item_id": f"rs_{n}",
        "output_index": n,
        "summary_index": 0,
        "delta": "hm ",
    },
    "close": lambda n: {
        "type": "response.output_item.done",
        "output_index": n,
        "item": item(n, summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="e"),
    },
    "end": {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
}
MESSAGES = {
    "open": lambda n: {
        "type": "content_block_start",
        "index": n,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    "delta": lambda n: {
        "type": "content_block_delta",
        "index": n,
        "delta": {"type": "thinking_delta", "thinking": "hm "},
    },
    "close": lambda n: {"type": "content_block_stop", "index": n},
    "end": {"type": "message_stop"},
}


def told(reader, clock, steps, spelled, *, cut):
    """Happenings with their times, and the onlooker's notes in order of opening and of closing."""
    seen, notes, closed = [], {}, []
    for kind, n, wait in steps:
        clock.advance(wait / 1000)
        now, known = clock.mono(), notes.get(n)
        if known and (known.closed is not None or kind == "open"):
            continue
        if known is None:
            if kind == "close":
                continue
            known = notes[n] = Watched(now)
        if kind == "delta":
            known.last = now
        if kind == "close":
            known.closed = now
            closed.append(n)
        seen += [(h, clock.wall()) for h in reader.feed(frame(spelled[kind](n)))]
    if not cut:
        seen += [(h, clock.wall()) for h in reader.feed(frame(spelled["end"]))]
    seen += [(h, clock.wall()) for h in reader.close()]
    return seen, notes, closed


def logged(bodies):
    """The bodies as events that went through their JSON text, as in any store or export."""
    made = []
    for seq, body in enumerate([TurnStarted(), *bodies]):
        one = draft(body, id="t" if seq == 0 else f"e{seq}", parent="t" if seq else "", at=0.0)
        fields = {name: getattr(one, name) for name in one.__struct_fields__}
        event = Event(session="s", seq=seq, **fields)
        made.append(msgspec.json.decode(msgspec.json.encode(event), type=Event))
    return made


def agree(seen, expected, *, keyed=True):
    """Live, stored and shown durations are what the onlooker noted.

    `keyed`: thoughts have ids. Without, blocks that are open at once cannot be told apart live.
    """
    bodies = [h for h, _ in seen if isinstance(h, Reasoning | TurnEnded)]
    live = Turn(output=tuple(b.thought for b in bodies if isinstance(b, Reasoning)))
    events = logged(bodies)
    stored = Session("s").extend(events).turn("t")
    assert thought_spans(live) == thought_spans(stored)
    assert [(s.seconds, s.aborted) for s in thought_spans(live)] == [
        (_ceil(end - start) if end is not None else None, aborted)
        for start, end, aborted in expected
    ]
    ticks = set()
    for start, end, _ in expected:
        ticks |= set(range(start // 10**6, (end if end is not None else start) // 10**6))
    known = [e for e in expected if e[1] is not None]
    assert (
        total_seconds(live)
        == total_seconds(stored)
        == (_ceil(len(ticks) * 10**6) if known else None)
    )
    encoder, shown = MessageEncoder("m"), {}
    deltas = [(h, at) for h, at in seen if not isinstance(h, Reasoning | TurnEnded)]
    for happening, at in [(events[0], 0.0), *deltas, *((e, 0.0) for e in events[1:])]:
        for chunk in encoder.feed(happening, at):
            shown |= chunk.get("messageMetadata", {}).get("reasoningDurations", {})
    stored_ones = reasoning_durations(stored)
    if keyed:
        assert shown.items() >= stored_ones.items()
    else:
        assert not Counter(stored_ones.values()) - Counter(shown.values())


def _ceil(nanoseconds):
    return max(1, -(-nanoseconds // S))


def _from_request(intervals, sent):
    """The first one counts from the request if it came at once, long after it."""
    if intervals and intervals[0][1] is not None:
        start, end, aborted = intervals[0]
        if end - start <= S // 10 and start - sent >= S:
            intervals[0] = (sent, end, aborted)
    return intervals


@given(steps=STEPS, cut=st.booleans())
def test_any_order_of_items(steps, cut):
    clock = FrozenClock()
    sent = clock.mono()
    reader = ResponsesReader(stream=True, clock=clock, origin=Origin(), sent=sent)
    seen, notes, closed = told(reader, clock, steps, RESPONSES, cut=cut)
    expected = [(notes[n].opened, notes[n].closed, False) for n in closed]
    if cut:
        expected += [(w.opened, w.last, True) for w in notes.values() if w.closed is None]
    agree(seen, _from_request(expected, sent))


@given(steps=STEPS, cut=st.booleans())
def test_any_order_of_blocks(steps, cut):
    clock = FrozenClock()
    sent = clock.mono()
    reader = MessagesReader(stream=True, clock=clock, origin=Origin(), sent=sent)
    seen, notes, _ = told(reader, clock, steps, MESSAGES, cut=cut)
    expected = []
    for note in notes.values():
        aborted = cut and note.closed is None
        end = note.last if aborted else (clock.mono() if note.closed is None else note.closed)
        expected.append((note.opened, end, aborted))
    agree(seen, _from_request(expected, sent), keyed=False)
    ended = [h for h, _ in seen if isinstance(h, TurnEnded)]
    assert [h.outcome for h in ended] == [Outcome.ABORTED if cut else Outcome.COMPLETED]


# -- for metrics and log lines -------------------------------------------------------------------


def timed(*parts):
    found = output_timing(parts)
    return found.thoughts, found.seconds, found.total


def test_exact_seconds_of_an_output():
    assert timed(thought(S, 4 * S, first=2 * S, last=3 * S)) == (1, (3.0,), 3.0)
    assert timed(thought(S)) == (1, (), None)
    assert timed(thought(S, 2 * S, aborted=True)) == (1, (), None)
    assert timed(Thought(carrier=Carrier.ITEM, raw="{}")) == (1, (), None)
    assert timed() == (0, (), None)


def test_siblings_are_one_thought_and_overlaps_count_once():
    one = thought(S, 5 * S, carrier=Carrier.REASONING)
    other = thought(S, 5 * S, carrier=Carrier.REASONING_DETAILS)
    assert timed(one, other, Text(text="hi")) == (1, (4.0,), 4.0)
    assert timed(thought(S, 4 * S), thought(2 * S, 5 * S)) == (2, (3.0, 3.0), 4.0)


def test_a_thought_that_came_at_once_counts_from_the_request():
    assert timed(thought(9 * S, 9 * S, sent=S)) == (1, (8.0,), 8.0)


def test_the_exact_seconds_are_those_that_people_see():
    parts = (thought(S, 4 * S + 1, id="a"), Text(text="hm"), thought(5 * S, 7 * S, id="b"))
    seconds = output_timing(parts).seconds
    assert [-(-n // 1) for n in seconds] == list(reasoning_durations(turn(*parts)).values())


MOMENTS = st.none() | st.integers(0, 9).map(lambda n: n * S)


@given(sent=MOMENTS, opened=MOMENTS, closed=MOMENTS, aborted=st.booleans(), first=st.booleans())
def test_one_thought_is_timed_for_metrics_as_for_people(sent, opened, closed, aborted, first):
    timing = Timing(sent=sent, opened=opened, closed=closed, aborted=aborted)
    one = Thought(carrier=Carrier.REASONING_CONTENT, raw="", timing=timing)
    parts = (one, Text(text="hm")) if first else (Text(text="hm"), one)
    (span,) = thought_spans(turn(*parts))
    known = span.seconds is not None and not span.aborted and opened is not None
    exact = ((span.end - span.start) / S,) if known else ()
    assert timed(*parts) == (1, exact, exact[0] if known else None)
