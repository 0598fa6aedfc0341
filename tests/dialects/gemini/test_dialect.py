"""Gemini requests read and written, and captured turns found again in what clients bring back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.alterations import brought_back
from support.histories import gemini as histories
from support.reader_contract import play
from support.recordings import gemini as rec
from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.gemini import Gemini
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.events import AssistantMessage, Reasoning, ToolCall
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.turns import Place, Turn, output_shape
from thoughtline.testing import FrozenClock

GEMINI = Gemini()


BYPASS = histories.BYPASS


T = '{"text":"%s","thought":true}'


C = '{"functionCall":{"name":"%s","args":{}}}'


def signed(raw, name, key="thoughtSignature"):
    return f'{raw[:-1]},"{key}":"{name}"}}'


def part(kind, nth, name):
    return PlacedThought(Place(kind, nth), Carrier.PART, T % name)


def read(**members):
    return GEMINI.read(json.dumps({"contents": [], **members}).encode())


def test_what_a_request_says():
    request = read(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}],
        contents=[
            {"parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}]},
            {
                "role": "model",
                "parts": [
                    json.loads(T % "a"),
                    {"text": "Let me.", "thoughtSignature": "s1"},
                    {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}},
                    {"thoughtSignature": "s2"},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "a"}}},
                    {"functionResponse": {"name": "g", "response": {"error": "b"}}},
                    {"functionResponse": {"name": "h", "response": {"b": 1, "a": [2]}}},
                    {"function_response": {"name": "i", "response": {"result": {"x": 1}}}},
                ],
            },
            {"role": "model", "parts": [{"text": "One."}]},
            {"role": "model", "parts": [{"text": " Two."}]},
            {"role": "user", "parts": []},
        ],
    )
    assert (request.model, request.stream, request.tools) == ("", False, True)
    assert request.anchors == ((1,), (3, 4))
    first, second = request.turns
    text, blob = first.input
    assert text == Text(text="Hi")
    assert blob.kind == "inlineData"
    assert output_shape(first.output) == "ttxct"
    summary, signature, _, call, seal = first.output
    assert [t.carrier for t in (summary, signature, seal)] == ["part", "signature", "part"]
    assert [t.seals for t in (summary, signature, seal)] == [
        (),
        (keys.string_digest("s1=="),),
        (keys.string_digest("s2=="),),
    ]
    assert call == Call(name="f", arguments='{"a":1}', id="c1")
    assert second.input == (
        Result(content="a", call="c1", name="f"),
        Result(content="b", name="g", error=True),
        Result(content='{"a":[2],"b":1}', name="h"),
        Result(content='{"result":{"x":1}}', name="i"),
    )
    assert second.output == (Text(text="One. Two."),)


def test_a_bypass_is_no_seal():
    request = read(contents=[{"role": "model", "parts": [json.loads(signed(C % "f", BYPASS))]}])
    (thought,) = request.turns[0].thoughts
    assert thought.carrier is Carrier.SIGNATURE
    assert not thought.sealed


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"thinkingConfig": {"thinkingBudget": 0}}, False),
        ({"thinkingConfig": {"thinkingBudget": -1}}, True),
        ({"thinkingConfig": {"thinkingLevel": "low"}}, True),
        ({"thinkingConfig": {"includeThoughts": True}}, True),
        ({"thinking_config": {"thinking_budget": 0}}, False),
        ({"thinkingConfig": {"thinkingBudget": False}}, None),
        ({"thinkingConfig": []}, None),
        ([], None),
    ],
)
def test_thinking(config, expected):
    assert read(generationConfig=config).thinking is expected
    assert read(generation_config=config).thinking is expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (None, False),
        ([], False),
        ([{"googleSearch": {}}], False),
        ([{"functionDeclarations": []}], False),
        ([{"function_declarations": [{"name": "f"}]}], True),
        ({"functionDeclarations": [{"name": "f"}]}, True),
        ([5], False),
    ],
)
def test_tools(tools, expected):
    assert read(tools=tools).tools is expected


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"contents":{}}', b'{"contents":[}', b"\xff"]
)
def test_what_is_no_request(body):
    with pytest.raises(Unreadable):
        GEMINI.read(body)


@pytest.mark.parametrize("depth", [100, 950, 990, 3000])
def test_depth_is_no_trap(depth):
    deep = "[" * depth + "]" * depth
    parts = f'[{{"thought":true,"odd":{deep}}},{{"functionCall":{{"args":{deep}}}}}]'
    body = f'{{"contents":[{{"role":"model","parts":{parts}}},{{"parts":[{{"odd":{deep}}}]}}]}}'
    try:
        request = GEMINI.read(body.encode())
    except Unreadable:
        return
    assert len(request.turns) == 2


def captured(chunks, *, array=False, stream=True):
    """What a reader tells of this output."""
    one = GEMINI.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    parts = []
    for happening in play(one, [histories.streamed(chunks, array=array)]):
        match happening:
            case Reasoning(thought=thought):
                parts.append(thought)
            case AssistantMessage(parts=said):
                parts += said
            case ToolCall(call=call):
                parts.append(call)
    return tuple(parts)


@given(
    histories.conversations(pictures=False),
    st.lists(st.sampled_from(histories.ALTERATIONS), max_size=4),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_what_was_captured_is_found_in_what_is_echoed(conversation, changes, array, snake, data):
    said, question = conversation
    path = []
    for index, (asked, output) in enumerate(said):
        heard = GEMINI.read(histories.body(said[:index], asked)).turns[-1].input
        chunks = histories.chunked(output, data.draw)
        path.append(Turn(input=heard, output=captured(chunks, array=array)))
    spell = histories.snake if snake else None
    echoed = GEMINI.read(histories.body(brought_back(said, changes, spell=spell), question))
    mine, theirs = keys.rolling_keys(path)[0], keys.rolling_keys(echoed.turns)[0]
    # The further keys are of texts one by one, which a stream divides as it likes.
    plain = [one and replace(one, trimmed=()) for one in (*mine, *theirs[: len(path)])]
    assert plain[: len(path)] == plain[len(path) :]


@given(histories.conversations(), st.booleans(), st.data())
def test_capture_and_echo_of_chunks_have_one_shape(conversation, array, data):
    said = [(asked, histories.chunked(output, data.draw)) for asked, output in conversation[0]]
    for (_, chunks), turn in zip(said, GEMINI.read(histories.body(said)).turns, strict=True):
        parts = captured(chunks, array=array)
        assert output_shape(parts) == output_shape(turn.output)
        mine = [t for t in parts if isinstance(t, Thought)]
        assert [(t.carrier, t.seals, t.text) for t in mine] == [
            (t.carrier, t.seals, t.text) for t in turn.thoughts
        ]
        assert [json.loads(t.raw) for t in mine] == [json.loads(t.raw) for t in turn.thoughts]
        assert [p.digest for p in parts if isinstance(p, Blob)] == [
            p.digest for p in turn.output if isinstance(p, Blob)
        ]


@given(histories.conversations())
def test_a_whole_body_keeps_its_parts_apart_and_to_the_byte(conversation):
    for _, output in conversation[0]:
        parts = captured([output], array=True, stream=False)
        raws = [t.raw for t in parts if isinstance(t, Thought) and t.carrier is Carrier.PART]
        assert raws == [
            raw
            for raw in output
            if json.loads(raw).get("thought") or json.loads(raw).get("text") == ""
        ]


ORIGIN = Origin(dialect="gemini", provider="gemini", account="a1", model="gemini-3-pro")


WHOLE = "gemini-whole.json"


def reader(name="x.sse", clock=None):
    clock = clock or FrozenClock()
    return Gemini().reader(stream=name != WHOLE, clock=clock, origin=ORIGIN, sent=10)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (418, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
        (599, "INTERNAL"),
    ],
)
def test_errors_of_ours(status, name):
    error = {"code": status, "message": "No.", "status": name}
    assert json.loads(Gemini().error(status, "No.")) == {"error": error}


def test_an_error_may_have_a_code():
    (detail,) = json.loads(Gemini().error(400, "No.", code="lost"))["error"]["details"]
    assert detail["reason"] == "lost"


def test_pings_of_ours_are_no_events():
    one = reader()
    assert one.feed(Gemini().keepalive) == []
    assert one.feed(rec.read("gemini-text.sse"))
