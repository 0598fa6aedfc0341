"""New Messages requests, written from turns."""

import json

from hypothesis import given

from support.histories import messages as histories
from thoughtline.dialects.messages import Messages
from thoughtline.dialects.params import ToolSpec
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Result, Text, Thought
from thoughtline.log.turns import Turn

MESSAGES = Messages()


def read(**members):
    return MESSAGES.read(json.dumps({"messages": [], **members}).encode())


def test_a_request_of_our_own():
    raw = '{"type": "thinking", "thinking": "x", "signature": "s", "odd": 1E+2}'
    blob = '{"type":"server_tool_use","id":"s1"}'
    turns = [
        Turn(
            input=(Text(text="Hi"),),
            output=(
                Thought(carrier=Carrier.BLOCK, raw=raw),
                Thought(carrier=Carrier.REASONING_CONTENT, raw='"no place here"'),
                Text(text="Let me."),
                Blob(kind="server_tool_use", digest="d", raw=blob),
                Call(name="f", arguments='{"a": 5.0}', id="c1"),
                Call(name="g", arguments="not JSON"),
            ),
        ),
        Turn(
            input=(
                Text(text="And?"),
                Result(content="g said", name="g"),
                Result(content="f said", call="c1", error=True),
            )
        ),
    ]
    tool = ToolSpec(name="f", description="does f")
    body = MESSAGES.write(turns, model="claude", system="Be brief.", tools=[tool])
    assert raw.encode() in body
    assert b'"input":{"a": 5.0}' in body
    document = json.loads(body)
    assert document["max_tokens"] == 8192
    assert document["system"] == "Be brief."
    assert document["stream"] is True
    assert document["tools"] == [
        {"name": "f", "description": "does f", "input_schema": {"type": "object"}}
    ]
    asked, answered, results = document["messages"]
    assert asked == {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    assert [b["type"] for b in answered["content"]] == [
        "thinking",
        "text",
        "server_tool_use",
        "tool_use",
        "tool_use",
    ]
    assert answered["content"][-1]["input"] == {}
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": answered["content"][-1]["id"], "content": "g said"},
        {"type": "tool_result", "tool_use_id": "c1", "content": "f said", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_blobs_of_other_dialects_are_not_written():
    blob = Blob(kind="inlineData", digest="d", raw='{"inlineData":{}}')
    turn = Turn(output=(blob, Text(text="x")), target=Origin(dialect="gemini"))
    body = MESSAGES.write([turn], model="m", stream=False, fields={"max_tokens": 5})
    assert json.loads(body) == {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "x"}]}],
    }


@given(histories.conversations(hosted=False))
def test_what_is_written_is_read_again(conversation):
    turns = MESSAGES.read(histories.body(*conversation)).turns
    assert MESSAGES.read(MESSAGES.write(turns, model="m")).turns == turns
