"""Continuation is sound: whatever happens, what a server puts together is the full request.

`HYPOTHESIS_PROFILE=thorough` looks at 10,000 histories; that takes a few minutes.
"""

import asyncio
import json
import os

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from support.histories.responses import WORDS, Ids, spelled
from support.model_server import OWN, Say, Server
from thoughtline.clock import SystemClock
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.engine.capture import output_parts
from thoughtline.errors import WireError
from thoughtline.log.events import Outcome, TurnEnded
from thoughtline.log.parts import Blob, Call, Origin, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.testing import FrozenClock
from thoughtline.wires.base import Outbound
from thoughtline.wires.websocket import requests
from thoughtline.wires.websocket.continuation import (
    Continuation,
    Destination,
    LogPosition,
    SendReason,
    plan_send,
)
from thoughtline.wires.websocket.response import ResponseState
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions
from wires.websocket.samples import CALL, FIELDS, RESULT, THOUGHT, USER, read, texts

RESPONSES = Responses()
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
EXAMPLES = 10_000 if THOROUGH else settings.default.max_examples


# --- Histories ----------------------------------------------------------------------------------


@st.composite
def outputs(draw, ids):
    """Items as a server returns them, each as JSON text."""
    items = []
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["reasoning", "message", "call", "parts", "odd"]))
        if what == "reasoning":
            item = {"id": ids("rs"), "type": "reasoning", "summary": []}
            item["encrypted_content"] = "gAAAA" + ids("blob")
            items.append(item)
            what = "message"
        if what in ("message", "parts"):
            text = {"type": "output_text", "text": draw(WORDS), "annotations": [], "logprobs": []}
            content = [text] if what == "message" else [text, {**text, "text": "more"}]
            item = {"id": ids("msg"), "type": "message", "role": "assistant", "content": content}
            item |= {"status": "completed", "phase": draw(st.sampled_from(["commentary", "final"]))}
            items.append(item)
        elif what == "call":
            item = {"id": ids("fc"), "type": "function_call", "status": "completed"}
            item |= {"call_id": ids("call"), "name": "run", "arguments": '{"a": 5.0}'}
            items.append(item)
        else:
            items.append({"id": ids("ws"), "type": "web_search_call", "action": {"n": 5.0}})
    return [draw(spelled(item)) for item in items]


FAULTS = [
    "cut",
    "garbage",
    "limit",
    "forgot",
    "refuse",
    "fail",
    "error",
    "skip",
    "shuffle",
    "incomplete",
    "nameless",
]


@st.composite
def says(draw, ids):
    fault = draw(st.sampled_from(FAULTS)) if draw(st.integers(0, 3)) == 0 else ""
    late, output = draw(st.integers(0, 4)) == 0, draw(st.booleans())
    return Say(draw(outputs(ids)), fault, draw(st.integers(0, 9)), late, output)


@st.composite
def steps(draw):
    """What happens to a session, one thing after the other."""
    ids = Ids()
    made = []
    for _ in range(draw(st.integers(3, 12))):
        kind = draw(st.sampled_from(["ask"] * 9 + ["world", "edit", "fork", "warm"]))
        if kind in ("ask", "warm"):
            told = [draw(says(ids)), Say(draw(outputs(ids)))]
            keep = draw(st.integers(0, 7)) > 0
            leave = draw(st.integers(0, 9)) if draw(st.integers(0, 7)) == 0 else None
            made.append((kind, told, keep, leave))
        elif kind == "world":
            what = ["hang up", "sleep", "age", "system", "tools", "account", "model", "compact"]
            made.append((kind, draw(st.sampled_from(what))))
        elif kind == "edit":
            made.append((kind, draw(st.integers(0, 5)), draw(st.booleans())))
        else:
            made.append((kind, draw(st.booleans())))
    return made


class Branch:
    """One branch of a session: its turns as the log has them, and the lane it is sent on."""

    def __init__(self, lane, turns=()):
        self.lane = lane
        self.turns = list(turns)


class Session:
    """A turn loop in small: fold, send, record."""

    def __init__(self, server_lanes, *, forgetful, nasty):
        self.server = Server(self.judge, server_lanes, forgetful, nasty)
        self.clock = FrozenClock()
        self.wire = ResponsesWire(
            connect=self.server.dial,
            clock=self.clock,
            options=WebSocketOptions(
                stream_ids=server_lanes != "none", retry_delay=0.0, max_attempts=6
            ),
        )
        self.branches = [Branch(self.wire.main)]
        self.at = 0
        self.count = 0
        self.system, self.tools = "be brief", [ToolSpec(name="run")]
        self.destination = Destination(endpoint="e", account="a", model="m")
        self.expected = None
        self.deltas = 0

    @property
    def branch(self):
        return self.branches[self.at]

    def question(self):
        """The results that are owed, or something new."""
        output = self.branch.turns[-1].output if self.branch.turns else ()
        calls = [part for part in output if isinstance(part, Call)]
        self.count += 1
        if calls:
            return tuple(Result(content=f"ok {self.count}", call=call.id) for call in calls)
        return (Text(text=f"and now {self.count}"),)

    def body(self, question):
        return RESPONSES.write(
            [*self.branch.turns, Turn(input=question)],
            model=self.destination.model,
            system=self.system,
            tools=self.tools,
        )

    def judge(self, fields, held, *, delta):
        """The server has put a request together: it must be the one that was meant."""
        meant = json.loads(self.expected)
        assert [seen(item) for item in held] == [seen(item) for item in meant["input"]]
        assert fields == {name: value for name, value in meant.items() if name not in OWN}
        self.deltas += delta

    # -- what happens ----------------------------------------------------------------------------

    async def step(self, kind, *how):
        await getattr(self, kind)(*how)

    def position(self, turn):
        path = [one.id for one in self.branch.turns]
        parent = path[-1] if path else ""
        return LogPosition(
            destination=self.destination, turn=turn, parent=parent, ancestors=frozenset(path)
        )

    async def ask(self, told, keep, leave):
        question = self.question()
        turn = f"t{self.count}"
        self.expected = self.body(question)
        outbound = Outbound(method="POST", url="http://s/v1", headers=[], body=self.expected)
        self.server.script = list(told)
        reader = ResponsesReader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        shown, answer = [], None
        try:
            async with self.branch.lane.send(outbound, self.position(turn)) as answer:
                async for data in answer:
                    shown.append(data)
                    if leave is not None and len(shown) > leave:
                        break
                told_of = [h for data in shown for h in reader.event(data)]
                told_of += reader.close()
                kept = keep and answer.state is ResponseState.COMPLETED
                if kept:
                    answer.commit()
        except WireError:
            kept = False
        self.check(told, shown, answer, finished=leave is None)
        if kept:
            self.record(question, told_of, turn)

    def check(self, told, shown, answer, *, finished):
        """Nothing is shown twice, and a turn is lost only when something of it was shown."""
        frames = [json.loads(data) for data in shown if data.endswith(b"}")]
        responses = {f["response"]["id"] for f in frames if f.get("response", {}).get("id")}
        assert len(responses) <= 1
        assert [f["type"] for f in frames].count("response.created") <= 1
        places = [f["output_index"] for f in frames if f["type"] == "response.output_item.added"]
        assert places == sorted(set(places))
        early = told[0].fault in ("limit", "forgot") or (told[0].fault == "cut" and told[0].at <= 3)
        if early or not told[0].fault:
            assert answer is not None
            assert answer.refusal is None
            assert not finished or answer.state is ResponseState.COMPLETED

    def record(self, question, happenings, turn):
        for one in happenings:
            assert not isinstance(one, TurnEnded) or one.outcome is Outcome.COMPLETED
        made = Turn(input=question, output=tuple(output_parts(happenings)), id=turn)
        self.branch.turns.append(made)

    async def warm(self, told, keep, leave):
        question = self.question()
        self.expected = self.body(question)
        outbound = Outbound(method="POST", url="http://s/v1", headers=[], body=self.expected)
        self.server.script = list(told)
        await self.branch.lane.warm(outbound, self.position("warm"))

    async def world(self, what):
        match what:
            case "hang up":
                self.server.hang_up()
            case "sleep":
                self.clock._wall += 3600
            case "age":
                self.clock.advance(56 * 60)
            case "system":
                self.system += "!"
            case "tools":
                self.tools = [*self.tools, ToolSpec(name=f"t{len(self.tools)}")]
            case "account":
                self.destination = Destination(
                    endpoint="e", account=self.destination.account + "a", model="m"
                )
            case "model":
                self.destination = Destination(
                    endpoint="e", account=self.destination.account, model="n"
                )
            case "compact":
                raw = json.dumps({"type": "compaction", "encrypted_content": f"c{self.count}"})
                self.branch.turns = [Turn(output=(Blob(kind="compaction", digest="", raw=raw),))]

    async def edit(self, index, rewind):
        """Change what somebody said, or go back: the log grows another branch."""
        turns = self.branch.turns
        if not turns:
            return
        index %= len(turns)
        if rewind:
            del turns[index:]
        elif turns[index].input:
            said = [
                Text(text="edited") if isinstance(one, Text) else Result(content="x", call=one.call)
                for one in turns[index].input
            ]
            turns[index] = Turn(input=tuple(said), output=turns[index].output, id=f"e{self.count}")

    async def fork(self, go_there):
        if len(self.branches) < 4:
            self.branches.append(Branch(self.branch.lane.fork(), self.branch.turns))
        self.at = (self.at + go_there) % len(self.branches)


def seen(item):
    """What a model sees of an item: without the labels that servers put on."""
    kind = item.get("type", "message" if "role" in item else "")
    if kind == "message" and item.get("role") == "assistant":
        content = item["content"]
        words = content if isinstance(content, str) else "".join(p["text"] for p in content)
        return ("assistant", words, item.get("phase"))
    if kind == "function_call":
        return ("call", item["call_id"], item["name"], item["arguments"])
    return json.dumps(item, sort_keys=True)


@pytest.mark.timeout(3600 if THOROUGH else 180)
@settings(max_examples=EXAMPLES)
@given(
    steps(),
    st.sampled_from(["lanes", "lanes", "single", "ignores", "none"]),
    st.booleans(),
    st.booleans(),
)
def test_what_the_server_puts_together_is_the_full_request(steps, lanes, forgetful, nasty):
    async def live():
        session = Session(lanes, forgetful=forgetful, nasty=nasty)
        for step in steps:
            await session.step(*step)
        await session.wire.close()
        assert all(socket.closed or not socket.open for socket in session.server.sockets)
        return session

    session = asyncio.run(live())
    event("with deltas" if session.deltas else "without deltas")


# --- The proof, case by case --------------------------------------------------------------------

HERE = LogPosition(destination=Destination(endpoint="e", account="a", model="m"), turn="t1")
NEXT = LogPosition(destination=HERE.destination, turn="t2", parent="t1")


def committed(request, position, **how):
    continuation = Continuation()
    continuation.commit(request, position, **how)
    return continuation.baseline


def baseline(request=None, items=(THOUGHT, CALL), **changes):
    made = committed(
        request or read(USER), HERE, generation=1, response_id="resp_1", items=texts(*items)
    )
    return replace(made, **changes)


def planned(request, base=None, position=NEXT, **how):
    return plan_send(request, position, baseline() if base is None else base, generation=1, **how)


def test_what_extends_the_baseline_is_cut_down_to_what_is_new():
    made = planned(read(USER, THOUGHT, CALL, RESULT))
    assert (made.reason, made.since, made.previous) == (SendReason.CONTINUED, 3, "resp_1")
    frame = json.loads(
        requests.create_frame(read(USER, THOUGHT, CALL, RESULT), since=3, previous="resp_1")
    )
    assert frame == {
        "type": "response.create",
        **FIELDS,
        "previous_response_id": "resp_1",
        "input": [RESULT],
    }


ELSEWHERE = LogPosition(destination=HERE.destination, turn="t9", parent="t0")
OTHERS = [
    ("no_baseline", lambda r: plan_send(r, NEXT, None)),
    ("aged", lambda r: plan_send(r, NEXT, baseline(), generation=2, lost=SendReason.AGED)),
    ("missing_response_id", lambda r: planned(r, baseline(response_id=""))),
    ("branch_changed", lambda r: planned(r, position=ELSEWHERE)),
    ("asked", lambda r: planned(r, position=replace(NEXT, full=True))),
    (
        "guard_changed(account)",
        lambda r: planned(r, baseline(destination=Destination(endpoint="e", model="m"))),
    ),
    ("empty_delta", lambda r: planned(read(USER, THOUGHT, CALL))),
    (
        "prefix_mismatch(0)",
        lambda r: planned(read({**USER, "content": "hi"}, THOUGHT, CALL, RESULT)),
    ),
    ("prefix_mismatch(1)", lambda r: planned(read(USER, CALL, RESULT))),
    ("prefix_mismatch(2)", lambda r: planned(read(USER, THOUGHT))),
    ("compaction(0)", lambda r: planned(read({"type": "compaction", "encrypted_content": "x"}))),
    ("stateful", lambda r: planned(read(RESULT, previous_response_id="resp_0"))),
    ("fields_changed(instructions)", lambda r: planned(read(RESULT, instructions="be long"))),
    ("fields_changed(store, tools)", lambda r: planned(read(RESULT, tools=[], store=False))),
]


@pytest.mark.parametrize(("reason", "make"), OTHERS, ids=[name for name, _ in OTHERS])
def test_everything_else_goes_out_whole_and_says_why(reason, make):
    made = make(read(USER, THOUGHT, CALL, RESULT))
    assert str(made) == reason
    assert made.full
    assert (made.since, made.previous) == (0, "")


def test_a_baseline_further_up_the_branch_is_good_enough():
    above = replace(NEXT, parent="t5", ancestors={"t1", "t5"})
    assert planned(read(USER, THOUGHT, CALL, RESULT), position=above).reason is SendReason.CONTINUED


def test_a_warm_up_may_be_continued_with_nothing_new():
    made = committed(read(USER), HERE, generation=1, response_id="r", items=[], warm_up=True)
    assert planned(read(USER), made, position=HERE).reason is SendReason.CONTINUED


def test_a_baseline_is_used_once_however_that_turns_out():
    held = Continuation(baseline())
    request = read(USER, THOUGHT, CALL, RESULT)
    assert (
        held.plan(request, NEXT, generation=1, ended=SendReason.AGED).reason is SendReason.CONTINUED
    )
    assert (
        held.plan(request, NEXT, generation=1, ended=SendReason.AGED).reason
        is SendReason.UNCOMMITTED
    )
    held.drop(SendReason.ERROR)
    assert held.plan(request, NEXT, generation=1, ended=SendReason.AGED).reason is SendReason.ERROR


def test_notes_about_one_delivery_are_not_compared_and_always_sent():
    base = baseline(read(USER, client_metadata={"turn": 1}))
    request = read(USER, THOUGHT, CALL, RESULT, client_metadata={"turn": 2}, stream=True)
    assert planned(request, base).reason is SendReason.CONTINUED
    frame = json.loads(requests.create_frame(request, since=3, previous="resp_1"))
    assert frame["client_metadata"] == {"turn": 2}
    assert "stream" not in frame
