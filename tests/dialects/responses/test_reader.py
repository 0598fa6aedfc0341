"""Recorded streams in, happenings out, however the bytes are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.junk import JUNK, places, put
from support.recordings import responses as rec
from support.responses_items import STREAMS, play, reader
from thoughtline.log import keys
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
)
from thoughtline.log.parts import Blob, Carrier, Timing
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock

USAGE = Usage(input=812, output=377, reasoning=320, cached=640)


def show(happening):
    """A happening in one line of a playbook."""
    match happening:
        case ReasoningDelta(text, item):
            return ("think~", item, text)
        case TextDelta(text):
            return ("text~", text)
        case ToolCallDelta(index, arguments, name, id):
            return ("call~", index, arguments, name, id)
        case Reasoning(thought=thought):
            cut = ("cut", thought.text) if thought.timing.aborted else ()
            return ("think", thought.raw, *cut)
        case ToolCall(call=call):
            return ("call", call.name, call.arguments, call.id, call.item, call.raw)
        case AssistantMessage(parts=(Blob(kind=kind, raw=raw),)):
            return ("blob", kind, raw)
        case AssistantMessage(parts=(text,)):
            return ("text", text.text, text.id, text.raw)
        case TurnEnded(outcome=outcome, reason=reason, usage=usage):
            assert happening.response == rec.RESPONSE
            assert happening.model == rec.MODEL
            return ("end", outcome, reason, usage)


READ = ("read_file", "call_first0000000001")
RUN = ("run", "call_second000000002")
PATCH = ("apply_patch", "call_patch00000003")
CALL_1 = ("call", READ[0], '{"path": "a b.py", "limit": 5.0}', READ[1], "fc_01", rec.CALL_1)
CALL_2 = ("call", RUN[0], "{}", RUN[1], "fc_02", rec.CALL_2)
CUSTOM = ("call", PATCH[0], "*** Begin Patch\n*** End Patch", PATCH[1], "ctc_01", rec.CUSTOM)
ANSWER = ("text", "It is\u2028done. 🎉 ", "msg_01", rec.ANSWER)
HALF = '{"id":"rs_08","type":"reasoning","summary":[{"type":"summary_text","text":"\\ud83d"}]}'
PARTYING = rec.message("a🎉b", escape=True)
COMPLETED = ("end", Outcome.COMPLETED, "hung up", USAGE)

PLAYBOOK = {
    "responses-interleaved.sse": [
        ("think~", "rs_01", "**Looking**\n\nat"),
        ("think~", "rs_01", " the \u2028 file"),
        ("think~", "rs_01", "\n\n"),
        ("think~", "rs_01", "Then the tests — twice."),
        ("call~", 0, "", *READ),
        ("call~", 0, '{"path": "a b', *READ),
        ("call~", 0, '.py", "limit": 5.0}', *READ),
        ("call~", 1, "", *RUN),
        ("call~", 1, "{}", *RUN),
        ("think", rec.THINK_1),
        CALL_1,
        ("think", rec.THINK_2),
        CALL_2,
        COMPLETED,
    ],
    "responses-sealed.sse": [
        ("think~", "rs_01", "**Looking**\n\nat the \u2028 file\n\nThen the tests — twice."),
        ("text~", "It is\u2028"),
        ("text~", "done. 🎉 "),
        ("think", rec.THINK_1),
        ("think", rec.THINK_2),
        ANSWER,
        COMPLETED,
    ],
    "responses-late.sse": [
        ("text~", "It is\u2028done. 🎉 "),
        ("think", rec.THINK_FULL),
        ANSWER,
        COMPLETED,
    ],
    "responses-alias.sse": [
        ("call~", 0, "", *PATCH),
        ("call~", 0, "*** Begin", *PATCH),
        ("call~", 0, " Patch\n*** End Patch", *PATCH),
        ("think", rec.THINK_2),
        CUSTOM,
        COMPLETED,
    ],
    "responses-incomplete.sse": [
        ("think~", "rs_01", "**Looking**\n\nat the \u2028 file"),
        ("text~", "It is"),
        ("think", rec.THINK_1),
        ("text", "It is", "msg_01", rec.message("It is").replace("completed", "incomplete")),
        ("end", Outcome.CAPPED, "max_output_tokens", USAGE),
    ],
    "responses-failed.sse": [
        ("text~", "It is"),
        ("think", rec.THINK_2),
        ("end", Outcome.FAILED, "The model had an error.", USAGE),
    ],
    "responses-error.sse": [
        ("think", rec.THINK_2),
        ("end", Outcome.FAILED, "Slow down.", None),
    ],
    "responses-cut.sse": [
        ("think~", "rs_09", "Half a"),
        ("think", rec.THINK_2),
        ("think", rec.BEGUN, "cut", "Half a"),
        ("end", Outcome.ABORTED, "hung up", None),
    ],
    "responses-halves.sse": [
        ("think~", "rs_08", "\ufffd"),
        ("text~", "a"),
        ("text~", "\U0001f789b"),  # not the one that the item has: deltas are for display
        ("think", HALF),
        ("text", "a🎉b", "msg_01", PARTYING),
        COMPLETED,
    ],
    "responses-unknown.sse": [
        ("think~", "rs_zz", "Six times seven."),
        ("think~", "rs_03", "seven."),
        ("text~", "I can"),
        ("text~", "not."),
        ("blob", "compaction", rec.COMPACTION),
        ("think", rec.THINK_OPEN),
        ("blob", "web_search_call", rec.SEARCH),
        (
            "call",
            "local_shell_call",
            '{"action":{"command":["ls","-l"],"type":"exec"}}',
            "call_shell00000004",
            "lsh_01",
            rec.SHELL,
        ),
        ("text", "I cannot.", "msg_05", rec.REFUSAL),
        COMPLETED,
    ],
    "responses-last.sse": [("think", rec.THINK_1), CALL_1, ANSWER, COMPLETED],
    "responses-whole.json": [
        ("think", rec.THINK_1),
        CALL_1,
        ("think", rec.THINK_2),
        ANSWER,
        COMPLETED,
    ],
}

each_recording = pytest.mark.parametrize("name", PLAYBOOK)


@pytest.mark.parametrize("name", rec.RECORDINGS)
def test_recordings_are_what_their_maker_makes(name):
    assert rec.read(name) == rec.RECORDINGS[name]().encode()


@each_recording
def test_playbook(name):
    told = play([rec.read(name)], stream=name.endswith(".sse"))
    assert [show(happening) for happening in told] == PLAYBOOK[name]


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "responses-cut.sse"])
def test_canonical_bodies_come_with_the_last_event_and_the_end_with_close(name):
    one = reader()
    told = one.feed(rec.read(name))
    assert one.done
    assert any(isinstance(happening, Reasoning) for happening in told)
    assert [type(happening) for happening in one.close()] == [TurnEnded]
    assert one.close() == []
    assert one.feed(rec.read(name)) == []


def test_a_thought_knows_where_it_was_made_and_what_seals_it():
    told = play([rec.read("responses-interleaved.sse")])
    thought = next(h.thought for h in told if isinstance(h, Reasoning))
    assert thought.carrier is Carrier.ITEM
    assert thought.id == "rs_01"
    assert thought.text == "**Looking**\n\nat the \u2028 file\n\nThen the tests — twice."
    assert thought.seals == (keys.string_digest("gAAAAABo_first=="),)
    assert (thought.origin.model, thought.origin.asked) == (rec.MODEL, "gpt-5.6")
    assert thought.origin.account == "a1"


def test_timing():
    clock = FrozenClock(wall=0.0, mono=0)
    one = reader(clock=clock)
    frames = rec.thinking(rec.THINK_1, 0, summary=[["a", "b"], ["c"]]).encode().split(b"\n\n")
    at = {}
    told = []
    for block in [*frames[:-1], rec.ended("completed").strip().encode()]:
        clock.advance(1)
        name = block.split(b"\n")[0].decode().removeprefix("event: ")
        at.setdefault(name, []).append(clock.mono())
        told += one.feed(block + b"\n\n")
    (thought,) = [h.thought for h in told if isinstance(h, Reasoning)]
    assert thought.timing == Timing(
        sent=10,
        opened=at["response.output_item.added"][0],
        first=at["response.reasoning_summary_text.delta"][0],
        last=at["response.reasoning_summary_text.delta"][2],
        closed=at["response.output_item.done"][0],
        at=1.0,
    )


@pytest.mark.parametrize(
    ("opened", "done"),
    [
        ({"output_index": 0, "id": "rs_other"}, {"output_index": 0, "id": "rs_1"}),  # another id
        ({"output_index": 0, "id": "rs_1"}, {"output_index": 5, "id": "rs_1"}),  # another index
        ({"id": "rs_1"}, {"id": "rs_1"}),
        ({}, {}),
    ],
)
def test_an_item_is_timed_by_id_or_by_index(opened, done):
    clock = FrozenClock(mono=1_000)
    one = reader(clock=clock)
    for event, members in (("added", opened), ("done", done)):
        item = {"type": "reasoning", "summary": []} | {k: members[k] for k in members if k == "id"}
        frame = {"type": f"response.output_item.{event}", "item": item}
        frame |= {k: members[k] for k in members if k != "id"}
        one.event(json.dumps(frame).encode())
        clock.advance(7e-9)
    (thought,) = [h.thought for h in one.close() if isinstance(h, Reasoning)]
    assert (thought.timing.opened, thought.timing.closed) == (1_000, 1_007)


def frames(*pairs):
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in pairs)


def done(item, index=0):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def completed(*output):
    return {"type": "response.completed", "response": {"output": list(output)}}


def thought(blob=None, **members):
    return {"type": "reasoning", "summary": [], "encrypted_content": blob, **members}


def raws(told):
    return [json.loads(h.thought.raw) for h in told if isinstance(h, Reasoning)]


def test_a_seal_is_filled_in_by_position_where_there_are_no_ids():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    stream = frames(
        done(thought()),
        done(call, 1),
        done(thought(), 2),
        completed(thought("A"), call, thought("B")),
    )
    assert raws(play([stream])) == [thought("A"), thought("B")]


def test_a_seal_is_filled_in_under_another_id_but_never_from_another_item():
    one, two = thought(id="rs_1"), thought("B", id="rs_2")
    stream = frames(done(one), completed(thought("A", id="rs_other")))
    assert raws(play([stream])) == [thought("A", id="rs_other")]
    stream = frames(done(one), done(two, 1), completed(two))
    assert raws(play([stream])) == [one, two]


@pytest.mark.parametrize("there", [None, ""])
def test_a_seal_that_came_is_never_taken_back(there):
    stream = frames(done(thought("A", id="rs_1")), completed(thought(there, id="rs_1")))
    assert raws(play([stream])) == [thought("A", id="rs_1")]


def test_items_that_were_never_done_are_taken_from_the_end():
    text = {"type": "message", "id": "msg_1", "role": "assistant", "content": "Hi"}
    stream = frames(
        done(text, 1), completed(thought("A", id="rs_1"), text, thought("B", id="rs_2"))
    )
    kinds = [type(h) for h in play([stream])]
    assert kinds == [Reasoning, AssistantMessage, Reasoning, TurnEnded]


def test_what_cannot_be_told_apart_stands_as_it_arrived():
    stream = frames(done(thought("A")), completed(thought("B", id="rs_1"), thought("C", id="rs_2")))
    assert raws(play([stream])) == [thought("A")]


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        (rec.refused(), Outcome.FAILED, "The encrypted content gAAA could not be verified."),
        ('{"detail":"Unsupported parameter: max_output_tokens"}', Outcome.FAILED, "Unsupported"),
        ('{"error":"no"}', Outcome.FAILED, "no"),
        ('{"status":"failed","error":{"code":"server_error"}}', Outcome.FAILED, "server_error"),
        ('{"status":"cancelled","output":[]}', Outcome.ABORTED, "cancelled"),
        ('{"status":"queued","output":[]}', Outcome.ABORTED, "queued"),
        ('{"status":"incomplete","output":[]}', Outcome.CAPPED, "incomplete"),
        ('{"output":[]}', Outcome.COMPLETED, ""),
        ("", Outcome.ABORTED, ""),
        ("<html>Bad gateway</html>", Outcome.ABORTED, ""),
        ("[]", Outcome.ABORTED, ""),
        ("{}", Outcome.ABORTED, ""),
    ],
)
def test_whole_bodies_end(body, outcome, reason):
    one = reader(stream=False)
    one.feed(body.encode())
    (ended,) = one.close()
    assert ended.outcome is outcome
    assert ended.reason.startswith(reason)


# -- wrong types everywhere ----------------------------------------------------------------------

EVENTS = [
    json.loads(line.removeprefix(b"data: "))
    for name in STREAMS
    for line in rec.read(name).replace(b"\r\n", b"\n").split(b"\n")
    if line.startswith(b"data: {") and line.endswith(b"}") and b"\\ud83d" not in line
]


@given(st.lists(st.sampled_from(EVENTS), max_size=8), st.data())
def test_wrong_types_break_nothing(events, data):
    spoiled = []
    for event in events:
        where = data.draw(st.sampled_from(list(places(event))))
        spoiled.append(put(event, where, data.draw(JUNK)))
    stream = frames(*spoiled)
    assert isinstance(play([stream], broken=True)[-1], TurnEnded)


def test_deep_nesting_breaks_nothing():
    for depth in (100, 400, 900, 5_000):
        deep = "[" * depth + "]" * depth
        item = f'{{"type":"reasoning","summary":{deep}}}'
        event = f'{{"type":"response.output_item.done","item":{item}}}'
        body = f'{{"output":[{item}]}}'
        told = play([f"data: {event}\n\n".encode()])
        assert isinstance(told[-1], TurnEnded)
        assert depth > 400 or told[0].thought.raw == item
        assert isinstance(play([body.encode()], stream=False)[-1], TurnEnded)
