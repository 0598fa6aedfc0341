"""Requests read and written, and captured turns found again in what clients bring back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.alterations import brought_back
from support.clients import ResponsesClient, load
from support.histories import responses as histories
from support.junk import JUNK, places, put
from support.responses_items import (
    RESPONSES,
    captured,
    fc,
    msg,
    read,
    result,
    rs,
    shapes,
    told,
    user,
)
from thoughtline.dialects.base import PlacedThought, Revision
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.parts import Result, Text, Thought
from thoughtline.log.turns import Turn, output_shape
from thoughtline.log.turns import places as places_of
from thoughtline.testing import Request, simulator

# -- reading -------------------------------------------------------------------------------------


def test_a_string_is_one_question():
    request = RESPONSES.read(b'{"model":"m","input":"Hello","stream":true}')
    assert request.turns == (Turn(input=(Text(text="Hello"),)),)
    assert (request.model, request.stream, request.anchors) == ("m", True, ((),))


def test_a_run_of_the_models_own_items_is_one_output():
    request = read(
        user(), rs(), fc("c1"), rs("rs_2"), fc("c2"), result("c1"), result("c2"), rs("rs_3"), msg()
    )
    assert shapes(request) == ["tctc", "tx"]
    assert request.anchors == ((1, 2, 3, 4), (7, 8))
    assert [type(part) for part in request.turns[1].input] == [Result, Result]


def test_the_last_question_has_no_answer():
    request = read(user(), msg(), user("And?"))
    assert shapes(request) == ["x", ""]
    assert request.anchors == ((1,), ())


def test_system_messages_are_no_part_of_a_turn_but_end_one():
    request = read(
        {"role": "developer", "content": "Be brief."},
        user(),
        msg("a"),
        {"type": "message", "role": "system", "content": "Now in French."},
        msg("b"),
        instructions="Be nice.",
    )
    assert shapes(request) == ["x", "x"]
    assert request.turns[0].input == (Text(text="?"),)
    assert request.turns[1].input == ()


@pytest.mark.parametrize(
    ("reasoning", "thinking"),
    [({"effort": "none"}, False), ({"effort": "low"}, True), ({}, None), (None, None), ("x", None)],
)
def test_whether_thinking_was_switched(reasoning, thinking):
    assert read(user(), reasoning=reasoning).thinking is thinking


def test_what_else_a_request_says():
    request = read(
        user(),
        tools=[{"type": "function"}],
        previous_response_id="resp_1",
        prompt_cache_key="k1",
        client_metadata={"session_id": "s1"},
        conversation={"id": "conv_1"},
    )
    assert request.tools
    assert request.previous_response == "resp_1"
    assert request.hints == ("k1", "s1", "conv_1")
    assert read(user(), conversation="conv_2").hints == ("conv_2",)


@pytest.mark.parametrize("body", [b'{"prompt":{"id":"p"}}', b'{"previous_response_id":"r"}'])
def test_what_the_server_keeps_needs_no_input(body):
    assert RESPONSES.read(body).turns == ()


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b'{"input":5}', b'{"input":{}}', b'{"input":null}', b'{"input":['],
)
def test_what_is_no_request_is_unreadable(body):
    with pytest.raises(Unreadable):
        RESPONSES.read(body)


def test_deep_nesting_is_read_or_unreadable():
    for depth in (100, 400, 900, 5_000):
        for kind in ("reasoning", "something_new", "message", "function_call"):
            deep = "[" * depth + "]" * depth
            item = f'{{"type":"{kind}","summary":{deep},"content":{deep},"arguments":{deep}}}'
            try:
                RESPONSES.read(f'{{"input":[{item}]}}'.encode())
            except Unreadable:
                assert depth > 100


@given(histories.conversations(), st.data())
def test_wrong_types_are_read_or_unreadable(conversation, data):
    document = json.loads(histories.body(*conversation, tools=[], reasoning={}, metadata={}))
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.sampled_from(list(places(document))))
        document = put(document, where, data.draw(JUNK))
    try:
        request = RESPONSES.read(json.dumps(document).encode())
    except Unreadable:
        return
    assert len(request.anchors) == len(request.turns)
    keys.rolling_keys(request.turns)


@given(st.binary(max_size=100))
def test_noise_is_unreadable(noise):
    with pytest.raises(Unreadable):
        RESPONSES.read(noise)


def test_errors_and_pings():
    error = json.loads(RESPONSES.error(400, "No.", code="bad"))["error"]
    assert error == {
        "message": "No.",
        "type": "invalid_request_error",
        "param": None,
        "code": "bad",
    }
    assert json.loads(RESPONSES.error(502, "No."))["error"]["type"] == "server_error"
    assert RESPONSES.keepalive == b": keep-alive\n\n"


# -- captured, and found again -------------------------------------------------------------------

ALTERATIONS = st.lists(st.sampled_from(histories.ALTERATIONS), max_size=4, unique=True)


@given(histories.conversations(), ALTERATIONS)
def test_a_captured_turn_has_the_keys_of_its_echo(conversation, changes):
    said, question = conversation
    told = brought_back(said, changes)
    echo, _ = keys.rolling_keys(RESPONSES.read(histories.body(told, question)).turns)
    for index, (asked, raws) in enumerate(said):
        request = RESPONSES.read(histories.body(told[:index], asked))
        _, key = keys.rolling_keys(request.turns[:-1])
        key.add_input(request.turns[-1].input)
        assert key.add_output(captured(*raws)) == echo[index]


@given(histories.conversations())
def test_references_resolve_to_the_same_keys(conversation):
    """The AI SDK names thoughts and messages by id and sends calls without one."""
    said, question = conversation
    log, told = {}, []
    for asked, raws in said:
        items = []
        for raw in raws:
            value = json.loads(raw)
            if value["type"] in ("function_call", "custom_tool_call"):
                items.append(json.dumps(value | {"id": None}))
            else:
                log[value["id"]] = raw
                items.append(json.dumps({"type": "item_reference", "id": value["id"]}))
        told.append((asked, items))
    body = histories.body(told, question)
    expanded = RESPONSES.read(RESPONSES.expand(RESPONSES.read(body), log))
    exact = RESPONSES.read(histories.body(said, question))
    assert keys.rolling_keys(expanded.turns)[0] == keys.rolling_keys(exact.turns)[0]
    assert [t.id for t in expanded.turns for t in t.thoughts] == [
        t.id for t in exact.turns for t in t.thoughts
    ]


MODELS = {
    "openai": "gpt-5.6",
    "azure": "gpt-5",
    "codex": "gpt-5.3-codex",
    "xai": "grok-4.5",
    "deepseek-responses": "deepseek-v4-flash",
}


def put_back(index, output):
    """The thoughts of a captured output, each in its place."""
    thoughts = [part for part in output if isinstance(part, Thought)]
    pairs = zip(places_of(output_shape(output)), thoughts, strict=True)
    placed = [PlacedThought(place, thought.carrier, thought.raw) for place, thought in pairs]
    return Revision(turn=index, thoughts=tuple(placed))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_strict_provider_takes_back_what_was_captured(name, stream):
    stream = stream or name == "codex"
    one = ResponsesClient(simulator(name), model=MODELS[name], stream=stream)
    outputs = []
    for _ in range(9):
        items = [load(item) for item in one.history]
        bare = one.request() | {"input": [i for i in items if i.get("type") != "reasoning"]}
        request = RESPONSES.read(json.dumps(bare).encode())
        body = RESPONSES.patch(request, [put_back(*pair) for pair in enumerate(outputs)])
        headers = {"authorization": f"Bearer {one.key}"}
        reply = one.sim.answer(Request("POST", one.path, headers, body))
        assert reply.status == 200, reply.body
        assert "altered=0; missing=0; misplaced=0; foreign=0" in reply.headers["x-sim-thoughts"]
        outputs.append(told(reply.chunks, stream=stream))
        one.absorb(reply)
    assert sum(isinstance(part, Thought) for output in outputs for part in output) >= 9
