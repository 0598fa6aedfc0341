"""What a page shows while a model thinks is what is stored, whatever the order of things.

A reader of each dialect is fed any order of thoughts that open, grow and close, of words and of
waits, on a frozen clock. At every moment the running view says what the log would say if the
stream ended there, and what it says after a reload, an export, a fork, and under other ids.
"""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stores.samples import appended
from thoughtline.agents.export import export_lines, import_lines
from thoughtline.dialects import DIALECTS
from thoughtline.inspector.views import turn_shape
from thoughtline.log.durations import (
    reasoning_durations,
    thought_spans,
    thought_state,
    total_seconds,
    whole_seconds,
)
from thoughtline.log.events import (
    AssistantMessage,
    Reasoning,
    ReasoningEnd,
    SessionForked,
    ToolCall,
    TurnEnded,
    TurnStarted,
    draft,
)
from thoughtline.log.parts import Origin, Thought
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import FrozenClock

WAITS = st.sampled_from([0, 0, 1, 40, 99, 100, 101, 400, 999, 1000, 1001, 2500, 61_000])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["open", "think", "think", "close", "say", "call"]),
        st.integers(0, 2),
        WAITS,
    ),
    max_size=16,
)


def sse(data, name=""):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


class Chat:
    """One message; what is thought in it closes when something else is said."""

    def spell(self, kind, n):
        call = {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}}
        key = "reasoning_content" if n else "reasoning"
        delta = {
            "open": {key: ""},
            "think": {key: "hm "},
            "say": {"content": "word "},
            "close": {"content": "so "},
            "call": {"tool_calls": [call]},
        }[kind]
        return [sse({"id": "r", "choices": [{"index": 0, "delta": delta}]})]

    def end(self):
        return [sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})]


class Blocks:
    """Messages: blocks by index."""

    def __init__(self):
        self.open, self.count = {}, 0

    def start(self, block):
        index, self.count = self.count, self.count + 1
        begin = {"type": "content_block_start", "index": index, "content_block": block}
        return index, sse(begin)

    def spell(self, kind, n):
        if kind in ("say", "call"):
            block = {"type": "text", "text": "word"}
            if kind == "call":
                block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
            index, begun = self.start(block)
            return [begun, sse({"type": "content_block_stop", "index": index})]
        if kind == "close":
            index = self.open.pop(n, None)
            return [] if index is None else [sse({"type": "content_block_stop", "index": index})]
        told = []
        if n not in self.open:
            self.open[n], begun = self.start({"type": "thinking", "thinking": "", "signature": ""})
            told.append(begun)
        if kind == "think":
            delta = {"type": "thinking_delta", "thinking": "hm "}
            told.append(sse({"type": "content_block_delta", "index": self.open[n], "delta": delta}))
        return told

    def end(self):
        return [
            sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            sse({"type": "message_stop"}),
        ]


class Items:
    """Responses: items by id."""

    def __init__(self):
        self.open, self.count = {}, 0

    def spell(self, kind, n):
        if kind in ("say", "call"):
            self.count += 1
            item = {"type": "message", "id": f"m{self.count}", "role": "assistant", "content": []}
            if kind == "call":
                item = {"type": "function_call", "id": f"f{self.count}", "call_id": "c"}
                item |= {"name": "f", "arguments": "{}"}
            at = {"output_index": 100 + self.count, "item": item}
            return [
                sse({"type": "response.output_item.added", **at}),
                sse({"type": "response.output_item.done", **at}),
            ]
        if kind == "close":
            if n not in self.open:
                return []
            id, index = self.open.pop(n)
            item = {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e"}
            done = {"type": "response.output_item.done", "output_index": index, "item": item}
            return [sse(done)]
        told = []
        if n not in self.open:
            self.count += 1
            id, index = self.open[n] = f"rs_{self.count}", self.count
            item = {"type": "reasoning", "id": id, "summary": []}
            added = {"type": "response.output_item.added", "output_index": index, "item": item}
            told.append(sse(added))
        if kind == "think":
            id, index = self.open[n]
            delta = {"item_id": id, "output_index": index, "summary_index": 0, "delta": "hm "}
            told.append(sse({"type": "response.reasoning_summary_text.delta", **delta}))
        return told

    def end(self):
        done = {"id": "r", "status": "completed"}
        closed = [piece for n in list(self.open) for piece in self.spell("close", n)]
        return [*closed, sse({"type": "response.completed", "response": done})]


class Parts:
    """Gemini: parts one after the other; a thought closes when something else follows."""

    def spell(self, kind, n):
        part = {
            "open": {"text": "", "thought": True},
            "think": {"text": "hm ", "thought": True},
            "say": {"text": "word "},
            "close": {"text": "so "},
            "call": {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": f"s{n}"},
        }[kind]
        return [sse({"candidates": [{"index": 0, "content": {"parts": [part]}}]})]

    def end(self):
        return [sse({"candidates": [{"index": 0, "finishReason": "STOP"}]})]


SPEAKERS = {"chat": Chat, "messages": Blocks, "responses": Items, "gemini": Parts}


def running(reader):
    return Turn(output=tuple(reader.snapshot()), id="t")


def seen(turn, *, live):
    """What a person sees of a turn's thoughts: key, state, start and number."""
    return [
        (span.key, thought_state(span, running=live), span.at, span.seconds, span.requested)
        for span in thought_spans(turn)
    ]


def stored(happenings):
    """The turn as the log has it, through its JSON text."""
    bodies = [h for h in happenings if isinstance(h, Reasoning | AssistantMessage | ToolCall)]
    ended = [h for h in happenings if isinstance(h, TurnEnded)]
    drafts = [
        draft(body, id="t" if n == 0 else f"e{n}", parent="t" if n else "", at=0.0)
        for n, body in enumerate([TurnStarted(), *bodies, *ended])
    ]
    return asyncio.run(_kept(drafts))


async def _kept(drafts):
    store = MemoryStore()
    batch = Batch(session="s", tenant="T", drafts=tuple(drafts))
    one = Session("s").extend(await appended(store, batch)).turn("t")
    lines = [line async for line in export_lines(store, "s", alone=False)]
    other = MemoryStore()
    taken = draft(TurnStarted(), id="x", parent="", at=0.0)
    await other.append(Batch(session="s", tenant="U", drafts=(taken,)))
    clock = FrozenClock()
    (new,) = await import_lines(other, lines, tenant="U", clock=clock, rename=True)
    again = Session(new).extend(await other.read(new)).turn("t")
    fork = draft(SessionForked(session=new, turn="t"), id="f", parent="", at=0.0)
    forked = Session("fork").extend(
        await appended(other, Batch(session="fork", tenant="U", drafts=(fork,)))
    )
    elsewhere = {new: Session(new).extend(await other.read(new))}
    assert [thought_spans(turn) for turn in forked.path("t", elsewhere.get)] == [thought_spans(one)]
    assert reasoning_durations(again) == reasoning_durations(one)
    assert thought_spans(again) == thought_spans(one)
    assert total_seconds(again) == total_seconds(one)
    return one


@pytest.mark.parametrize("name", SPEAKERS)
@given(steps=STEPS, cut=st.booleans(), wait=WAITS)
def test_the_running_view_is_what_is_stored(name, steps, cut, wait):
    clock, speaker = FrozenClock(), SPEAKERS[name]()
    reader = DIALECTS[name].reader(
        stream=True, clock=clock, origin=Origin(dialect=name), sent=clock.mono()
    )
    told, known, version, starts = [], None, None, {}
    for kind, n, pause in steps:
        clock.advance(pause / 1000)
        for piece in speaker.spell(kind, n):
            told += reader.feed(piece)
        now = seen(running(reader), live=True)
        shape = [(key, what) for key, what, *_ in now]
        assert reader.version != version or shape == known  # whoever looks at it misses nothing
        version, known = reader.version, shape
        for span in thought_spans(running(reader)):  # a refresh changes no start
            assert starts.setdefault((span.key, span.place, span.at), span.at) == span.at
            if thought_state(span, running=True) == "open":  # and a timer is right at every moment
                timer = max(1, math.ceil(round(clock.wall() - span.at, 6)))
                assert timer == whole_seconds(clock.mono() - span.start)
    last = running(reader)
    clock.advance(wait / 1000)
    if not cut:
        for piece in speaker.end():
            told += reader.feed(piece)
    told += reader.close()
    turn = stored(told)
    before = _as_kept(last, turn)
    after = seen(turn, live=False)
    assert [_id_of(row) for row in after] == [_id_of(row) for row in before]
    assert [row[2] for row in after] == [row[2] for row in before]
    for shown, kept in zip(before, after, strict=True):
        if shown[1] == "open":
            assert kept[1] in (("aborted", "unknown") if cut else ("complete",))
        else:
            assert kept[1:] == shown[1:]
    _rekeyed(turn)


def _id_of(row):
    """The key, where it is an id: places change when text that broke off is left out."""
    return "" if row[0].startswith("part-") else row[0]


def _as_kept(last, turn):
    """The last running view, with only the thoughts where the log keeps nothing else."""
    if all(isinstance(part, Thought) for part in turn.output):
        last = Turn(output=tuple(p for p in last.output if isinstance(p, Thought)))
    return seen(last, live=True)


def _rekeyed(turn):
    """Other ids, of turn, session and parent, change no number and no key."""
    fields = {name: getattr(turn, name) for name in turn.__struct_fields__}
    other = Turn(**{**fields, "id": "other", "session": "cloud", "parent": "p", "response": "r2"})
    assert reasoning_durations(other) == reasoning_durations(turn)
    one, two = turn_shape(turn, thoughts=False), turn_shape(other, thoughts=False)
    assert (one.output, one.thinking) == (two.output, two.thinking)
    assert one.reasoning_durations == reasoning_durations(turn)


@given(steps=STEPS)
def test_what_is_told_live_is_what_the_running_view_says(steps):
    """An end that is told in the stream (`ReasoningEnd`) has the readings that the view shows."""
    clock, speaker = FrozenClock(), Blocks()
    reader = DIALECTS["messages"].reader(
        stream=True, clock=clock, origin=Origin(), sent=clock.mono()
    )
    for kind, n, pause in steps:
        clock.advance(pause / 1000)
        for piece in speaker.spell(kind, n):
            ends = [h for h in reader.feed(piece) if isinstance(h, ReasoningEnd)]
            closed = [p.timing for p in reader.snapshot() if isinstance(p, Thought)]
            assert all(end.timing in closed for end in ends)


@pytest.mark.parametrize("off", [False, True])
async def test_a_request_with_thinking_switched_off_says_so(off):
    started = draft(TurnStarted(thinking_off=off), id="t", parent="", at=1.0)
    events = await appended(MemoryStore(), Batch(session="s", tenant="t", drafts=(started,)))
    turn = Session("s").extend(events).turn("t")
    assert turn_shape(turn, thoughts=False).replay.thinking_off is off
