"""Messages requests read and written, and captured turns found again in what clients bring back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.alterations import brought_back
from support.histories import messages as histories
from support.reader_contract import play, show
from thoughtline.dialects.messages import Messages
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.events import AssistantMessage, Reasoning, ToolCall
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.turns import Turn, output_shape
from thoughtline.testing import FrozenClock

MESSAGES = Messages()


T = '{"type":"thinking","thinking":"","signature":"%s"}'


C = '{"type":"tool_use","id":"%s","name":"f","input":{}}'


def read(**members):
    return MESSAGES.read(json.dumps({"messages": [], **members}).encode())


def test_what_a_request_says():
    request = read(
        model="claude",
        stream=True,
        system="Be brief.",
        tools=[{"name": "f"}],
        thinking={"type": "adaptive"},
        metadata={"user_id": "user_1_account__session_2"},
        messages=[
            {"role": "system", "content": "No part of a turn."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [json.loads(T % "a"), json.loads(C % "1")]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    },
                    {"type": "text", "text": "?", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "data": "iVBO"}},
                ],
            },
            {"role": "assistant", "content": "One."},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": None},
        ],
    )
    assert (request.model, request.stream, request.tools) == ("claude", True, True)
    assert (request.thinking, request.hints) == (True, ("user_1_account__session_2",))
    assert request.anchors == (2, 4, 5)
    first, second, third = request.turns
    assert first.input == (Text(text="Hi"),)
    thought, call = first.output
    assert (thought.carrier, thought.seals) == (Carrier.BLOCK, (keys.string_digest("a"),))
    assert call == Call(name="f", arguments="{}", id="1")
    result, text, blob = second.input
    assert result == Result(content="ab", call="1", error=True)
    assert text == Text(text="?")
    assert isinstance(blob, Blob)
    assert (second.output, third.input) == ((Text(text="One."),), ())


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (None, None),
        ({"type": "enabled", "budget_tokens": 1024}, True),
        ({"type": "adaptive"}, True),
        ({"type": "between_tools"}, True),
        ({"type": "disabled"}, False),
        ({"type": 5}, None),
        ([], None),
    ],
)
def test_thinking(thinking, expected):
    assert read(thinking=thinking).thinking is expected


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"messages":{}}', b'{"messages":[}', b"\xff", b'{"messages":"a"}']
)
def test_what_is_no_request(body):
    with pytest.raises(Unreadable):
        MESSAGES.read(body)


@pytest.mark.parametrize("depth", [100, 950, 990, 3000])
def test_depth_is_no_trap(depth):
    deep = "[" * depth + "]" * depth
    body = (
        f'{{"messages":[{{"role":"assistant","content":[{{"type":"thinking","content":{deep}}}]}}'
    )
    body += f',{{"role":"user","content":[{{"type":"tool_result","content":{deep}}}]}}]}}'
    try:
        request = MESSAGES.read(body.encode())
        MESSAGES.prefixes(request)
    except Unreadable:
        return
    assert len(request.turns) == 2


def test_duplicate_keys_are_passed_on():
    body = b'{"messages":[{"role":"assistant","content":"a"}],"messages":[]}'
    request = MESSAGES.read(body)
    assert MESSAGES.patch(request, []) is body
    with pytest.raises(Unreadable):
        MESSAGES.patch(request, [], {"stream": b"true"})


def captured(output, draw, *, stream):
    """What a reader tells of this output."""
    one = MESSAGES.reader(stream=stream, clock=FrozenClock(), origin=Origin(), sent=0)
    body = json.dumps({"content": [json.loads(raw) for raw in output]}).encode()
    parts = []
    for happening in play(one, [histories.streamed(output, draw) if stream else body]):
        match happening:
            case Reasoning(thought=thought):
                parts.append(thought)
            case AssistantMessage(parts=said):
                parts += said
            case ToolCall(call=call):
                parts.append(call)
    return tuple(parts)


@given(
    histories.conversations(hosted=False),
    st.lists(st.sampled_from(histories.ALTERATIONS), max_size=4),
    st.booleans(),
    st.data(),
)
def test_what_was_captured_is_found_in_what_is_echoed(conversation, changes, stream, data):
    said, question = conversation
    path = []
    for index, (_, output) in enumerate(said):
        heard = MESSAGES.read(histories.body(said[:index], said[index][0])).turns[-1].input
        path.append(Turn(input=heard, output=captured(output, data.draw, stream=stream)))
    echoed = MESSAGES.read(histories.body(brought_back(said, changes), question))
    assert keys.rolling_keys(path)[0] == keys.rolling_keys(echoed.turns)[0][: len(path)]


@given(histories.conversations(), st.booleans(), st.data())
def test_capture_and_echo_have_one_shape(conversation, stream, data):
    said, _ = conversation
    for (_, output), turn in zip(said, MESSAGES.read(histories.body(said)).turns, strict=True):
        parts = captured(output, data.draw, stream=stream)
        assert output_shape(parts) == output_shape(turn.output)
        echo = [t for t in turn.output if isinstance(t, Thought)]
        mine = [t for t in parts if isinstance(t, Thought)]
        assert [t.seals for t in mine] == [t.seals for t in echo]
        assert [json.loads(t.raw) for t in mine] == [json.loads(t.raw) for t in echo]
        assert [p.digest for p in parts if isinstance(p, Blob)] == [
            p.digest for p in turn.output if isinstance(p, Blob)
        ]


ORIGIN = Origin(dialect="messages", provider="anthropic", account="a1", model="claude-opus-4-6")


def reader(name="x.sse", clock=None):
    clock = clock or FrozenClock()
    return Messages().reader(stream=name.endswith(".sse"), clock=clock, origin=ORIGIN, sent=10)


PING = ("ping",)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_of_ours(status, kind):
    assert json.loads(Messages().error(status, "No.")) == {
        "type": "error",
        "error": {"type": kind, "message": "No."},
    }


def test_an_error_may_have_a_code():
    assert json.loads(Messages().error(400, "No.", code="lost"))["error"]["code"] == "lost"


def test_pings_of_ours_are_read_as_such():
    assert [show(h) for h in reader().feed(Messages().keepalive)] == [PING]
