"""New Gemini requests, written from turns."""

import json

from hypothesis import given

from support.histories import gemini as histories
from thoughtline.dialects.gemini import Gemini
from thoughtline.dialects.params import ToolSpec
from thoughtline.log import keys
from thoughtline.log.parts import Blob, Call, Carrier, Result, Text, Thought
from thoughtline.log.turns import Turn

GEMINI = Gemini()


def read(**members):
    return GEMINI.read(json.dumps({"contents": [], **members}).encode())


def test_a_request_of_our_own():
    raw = '{"text": "x", "thought": true, "odd": 1E+2}'
    blob = '{"executableCode": {"code":"1"}}'
    turns = [
        Turn(
            input=(Text(text="Hi"),),
            output=(
                Thought(carrier=Carrier.PART, raw=raw),
                Thought(carrier=Carrier.REASONING_CONTENT, raw='"no place here"'),
                Text(text="Let me."),
                Thought(carrier=Carrier.SIGNATURE, raw='"s1"'),
                Blob(kind="executableCode", digest="d", raw=blob),
                Thought(carrier=Carrier.SIGNATURE, raw='"s2"'),
                Call(name="f", arguments='{"a": 5.0}', id="c1"),
                Call(name="g", arguments="not JSON"),
            ),
        ),
        Turn(
            input=(
                Result(content="g said", name="g"),
                Result(content="f said", call="c1", error=True),
                Text(text="And?"),
            )
        ),
    ]
    tools = [
        ToolSpec(name="f", description="does f", parameters={"type": "object"}),
        ToolSpec(name="g"),
    ]
    body = GEMINI.write(turns, model="gemini", system="Be brief.", tools=tools)
    assert raw.encode() in body
    assert b'"args":{"a": 5.0}' in body
    document = json.loads(body)
    assert set(document) == {"contents", "systemInstruction", "tools"}
    assert document["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert document["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "does f", "parameters": {"type": "object"}},
                {"name": "g", "description": ""},
            ]
        }
    ]
    asked, answered, results = document["contents"]
    assert asked == {"role": "user", "parts": [{"text": "Hi"}]}
    assert answered["parts"] == [
        json.loads(raw),
        {"text": "Let me."},
        {"executableCode": {"code": "1"}, "thoughtSignature": "s1"},
        {
            "functionCall": {"id": "c1", "name": "f", "args": {"a": 5.0}},
            "thoughtSignature": "s2",
        },
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert results["parts"] == [
        {"functionResponse": {"name": "g", "response": {"result": "g said"}}},
        {"functionResponse": {"id": "c1", "name": "f", "response": {"error": "f said"}}},
        {"text": "And?"},
    ]


@given(histories.conversations(pictures=False))
def test_what_is_written_is_read_again(conversation):
    turns = GEMINI.read(histories.body(*conversation)).turns
    again = GEMINI.read(GEMINI.write(turns, model="m")).turns
    assert [turn.output for turn in again] == [turn.output for turn in turns]
    assert keys.rolling_keys(again)[0] == keys.rolling_keys(turns)[0]
