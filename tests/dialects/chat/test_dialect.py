import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.alterations import CHAT as ALTERATIONS
from support.histories.chat import STYLES, answers, assistant, body, histories
from support.json_spellings import OBJECTS, RANDOMS, spell
from support.junk import WILD, places, put
from thoughtline.dialects import splice
from thoughtline.dialects.base import Request, Revision
from thoughtline.dialects.chat import ChatCompletions
from thoughtline.engine.capture import input_events
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.canonical import visible
from thoughtline.log.events import TYPE_NAMES, Event, TurnStarted, draft
from thoughtline.log.parts import Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn, output_shape
from thoughtline.testing import FrozenClock

CHAT = ChatCompletions()


def read(*messages, **more):
    return CHAT.read(body(list(messages), **more))


def user(content="q"):
    return {"role": "user", "content": content}


def use(name="f", arguments="{}", **more):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | more


# --- reading -----------------------------------------------------------------------------------


def test_a_history_is_a_path_of_turns():
    request = read(
        {"role": "system", "content": "s"},
        user("one"),
        {"role": "assistant", "content": "a", "reasoning_content": "r", "tool_calls": [use()]},
        {"role": "tool", "tool_call_id": "c1", "content": "result", "name": "f"},
        {"role": "developer", "content": "d"},
        {"role": "assistant", "content": "b"},
        user("two"),
        model="m1",
        stream=True,
        tools=[{"type": "function"}],
        prompt_cache_key="k",
    )
    assert (request.model, request.stream, request.tools, request.hints) == (
        "m1",
        True,
        True,
        ("k",),
    )
    assert request.anchors == (2, 5, -1)
    first, second, last = request.turns
    assert first.input == (Text(text="one"),)
    assert first.output == (
        Thought(carrier=Carrier.REASONING_CONTENT, raw='"r"', text="r"),
        Text(text="a"),
        Call(name="f", arguments="{}", id="c1"),
    )
    assert second.input == (Result(content="result", call="c1", name="f"),)
    assert second.output == (Text(text="b"),)
    assert last == Turn(input=(Text(text="two"),))


def test_one_answer_after_another():
    request = read({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"})
    assert [turn.input for turn in request.turns] == [(), ()]
    assert request.anchors == (0, 1)


def test_an_empty_answer_is_a_turn():
    request = read(user(), {"role": "assistant", "content": ""}, user())
    assert [turn.output for turn in request.turns] == [(), ()]
    assert request.anchors == (1, -1)


def test_unknown_roles_are_heard():
    (turn,) = read({"role": "critic", "content": "hm"}, {"no": "role"}, 5, None).turns
    assert output_shape(turn.input) == "bbbb"
    one, other = (
        read({"role": "critic", "content": "hm"}),
        read({"role": "critic", "content": "oh"}),
    )
    assert visible(one.turns[0].input) != visible(other.turns[0].input)


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, None),
        ({"thinking": {"type": "enabled"}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": {"type": "adaptive"}}, True),
        ({"thinking": {"type": 5}}, None),
        ({"enable_thinking": False}, False),
        ({"enable_thinking": True}, True),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "high"}, True),
        ({"reasoning": {"effort": "none"}}, False),
        ({"reasoning": {"enabled": False}}, False),
        ({"reasoning": {"enabled": True, "effort": "none"}}, True),
        ({"reasoning": "odd"}, None),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"chat_template_kwargs": {"thinking": True}}, True),
        ({"chat_template_kwargs": 5}, None),
        ({"think": False}, False),
    ],
)
def test_whether_thinking_is_switched(fields, thinking):
    assert read(user(), **fields).thinking is thinking


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"messages":{}}',
        '{"messages":null}',
        '{"input":[]}',
        "{",
        '{"messages":[',
    ],
)
def test_what_is_no_request_is_unreadable(text):
    with pytest.raises(Unreadable):
        CHAT.read(text.encode())


@pytest.mark.parametrize("depth", [300, 900, 990, 3_000, 100_000])
def test_deep_nesting_is_read_or_unreadable(depth):
    for opening, closing in (
        ("[", "]"),
        ('{"a":', "}"),
        ('{"thinking":', "}"),
        ('{"image_url":', "}"),
    ):
        deep = opening * depth + "1" + closing * depth
        for message in (
            f'{{"role":"assistant","content":{deep}}}',
            f'{{"role":"assistant","content":[{{"type":"thinking","thinking":{deep}}}]}}',
            f'{{"role":"assistant","reasoning_details":{deep}}}',
            f'{{"role":"assistant","tool_calls":[{{"function":{{"arguments":{deep}}}}}]}}',
            f'{{"role":"user","content":[{deep}]}}',
            f'{{"role":"tool","content":{deep}}}',
            f'{{"role":{deep}}}',
        ):
            data = f'{{"messages":[{message}]}}'.encode()
            try:
                request = CHAT.read(data)
            except Unreadable:
                continue
            keys.rolling_keys(request.turns)
            assert CHAT.patch(request, []) is data


# --- wrong types at every position -------------------------------------------------------------

DOCUMENT = {
    "model": "m",
    "stream": True,
    "tools": [],
    "thinking": {"type": "enabled"},
    "reasoning": {"effort": "none"},
    "chat_template_kwargs": {"thinking": True},
    "prompt_cache_key": "k",
    "metadata": {"session_id": "s", "user_id": "u"},
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:;base64,x"}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": [{"text": "t"}]},
                {"text": "<think>a</think>b"},
            ],
            "reasoning_content": "r",
            "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": "s"}],
            "reasoning_opaque": "o",
            "tool_calls": [use(extra_content={"google": {"thought_signature": "s"}})],
            "function_call": {"name": "f", "arguments": "{}"},
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "name": "f",
            "content": [{"type": "text", "text": "r"}],
        },
        {"role": "assistant", "content": "<think>a</think>b"},
    ],
}


@given(WILD)
@settings(max_examples=30)
def test_any_type_at_any_place_is_read_or_unreadable(junk):
    for place in places(DOCUMENT):
        data = json.dumps(put(DOCUMENT, place, junk)).encode()
        try:
            request = CHAT.read(data)
        except Unreadable:
            assert place in {(), ("messages",)} or b"Infinity" in data or b"NaN" in data
            continue
        assert CHAT.patch(request, []) is data
        keys.rolling_keys(request.turns)
        revised = CHAT.patch(request, [Revision(turn=n) for n in range(len(request.turns))])
        assert [t for turn in CHAT.read(revised).turns for t in turn.thoughts] == []
        for turn in request.turns:
            for bodies in input_events(turn.input):
                draft(bodies, id="i", parent="p", at=0.0)


@given(st.binary(max_size=50) | OBJECTS.map(json.dumps).map(str.encode))
def test_garbage_is_read_or_unreadable(data):
    with suppress(Unreadable):
        assert isinstance(CHAT.read(data), Request)


@given(histories(), RANDOMS, st.data())
def test_damaged_bodies_are_read_or_unreadable(messages, random, data):
    damaged = bytearray(spell({"messages": messages}, random).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        request = CHAT.read(bytes(damaged))
    except Unreadable:
        return
    assert CHAT.patch(request, []) == bytes(damaged)


@given(histories(), RANDOMS)
def test_formatting_does_not_matter(messages, random):
    document = {"messages": messages, "stream": True, "model": "m"}
    spelled = CHAT.read(spell(document, random).encode())
    assert spelled.turns == read(*messages).turns


def test_errors_and_pings_are_the_dialects_own():
    error = splice.loads(CHAT.error(400, "no", code="c"))["error"]
    assert error == {"message": "no", "type": "invalid_request_error", "param": None, "code": "c"}
    assert splice.loads(CHAT.error(502, "no"))["error"]["type"] == "api_error"
    assert CHAT.keepalive == b": keep-alive\n\n"
    assert CHAT.prefixes(read(user())) == ()


# --- the law: the key of a capture is the key of its echo --------------------------------------


def captured(request, told):
    """The turn as the log has it, folded from events."""
    bodies = [*input_events(request.turns[-1].input), *(t for t in told if type(t) in TYPE_NAMES)]
    drafts = [draft(TurnStarted(), id="t1", parent="", at=0.0)]
    drafts += [draft(b, id=f"e{n}", parent="t1", at=0.0) for n, b in enumerate(bodies)]
    events = [
        Event(session="s", seq=seq, **msgspec.structs.asdict(d)) for seq, d in enumerate(drafts)
    ]
    return Session("s").extend(events).turn("t1")


def answered(message, *, stream, draw):
    """What the reader makes of this message, sent in one way or the other."""
    reader = CHAT.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    if not stream:
        reader.feed(
            json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        )
        return reader.close()
    deltas = [
        {key: value}
        for key, value in message.items()
        if key not in {"role", "tool_calls", "content"}
    ]
    content = message.get("content")
    if isinstance(content, str):
        cut = draw(st.integers(0, len(content)))
        deltas += [{"content": content[:cut]}, {"content": content[cut:]}]
    elif content:
        deltas += [{"content": [part]} for part in content]
    for index, call in enumerate(message.get("tool_calls", ())):
        deltas.append({"tool_calls": [call | {"index": index}]})
    for delta in [*deltas, None]:
        choice = {"index": 0, "delta": delta or {}, "finish_reason": None if delta else "stop"}
        reader.feed(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    return reader.close()


@given(histories(most=2), st.sampled_from(STYLES), st.booleans(), st.data())
def test_capture_key_is_look_up_key(messages, style, stream, data):
    message = data.draw(assistant(style, "new"))
    after = data.draw(answers(message))
    request = read(*messages)
    turn = captured(request, answered(message, stream=stream, draw=data.draw))
    before = request.turns[:-1] if not request.turns[-1].output else request.turns
    kept = keys.rolling_keys([*before, turn])[0][-1]
    spoke = keys.rolling_keys(request.turns)[1].add_output(turn.output)
    assert kept is None or kept == spoke

    for name, alteration in ALTERATIONS.items():
        echo = CHAT.read(body(alteration([*messages, message, *after])))
        found = keys.rolling_keys(echo.turns)[0][len(before)]
        assert found is None or found == spoke, name
        assert found is not None or not visible(turn.output).strip(b"v0:1|"), name
        if stream or style != "details":
            assert _seals(turn) == _seals(CHAT.read(body([message])).turns[0])


def _seals(turn):
    return [thought.seals for thought in turn.thoughts]
