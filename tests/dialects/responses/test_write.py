"""New Responses requests, written from turns."""

import json

from hypothesis import given

from support.histories import responses as histories
from support.recordings import responses as rec
from support.responses_items import RESPONSES, captured, fc, shapes
from thoughtline.dialects.params import ToolSpec
from thoughtline.log import keys
from thoughtline.log.parts import Blob, Call, Carrier, Result, Text, Thought
from thoughtline.log.turns import Turn, output_shape


def test_a_path_is_written_stateless_and_without_ids():
    output = captured(rec.THINK_1, rec.CALL_1, rec.THINK_2, rec.CUSTOM)
    answers = (Result(content="a", call=output[1].id), Result(content="b", call=output[3].id))
    turns = [
        Turn(input=(Text(text="Do "), Text(text="it")), output=output),
        Turn(input=(*answers, Text(text="Go on")), output=captured(rec.ANSWER)),
    ]
    tools = [ToolSpec(name="run", description="Runs.", parameters={"type": "object"})]
    body = RESPONSES.write(turns, model="gpt-5.6", system="Be brief.", tools=tools)
    assert json.loads(body) == {
        "model": "gpt-5.6",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Do it"},
            json.loads(rec.THINK_1),
            {
                "type": "function_call",
                "call_id": "call_first0000000001",
                "name": "read_file",
                "arguments": '{"path": "a b.py", "limit": 5.0}',
            },
            json.loads(rec.THINK_2),
            {
                "type": "custom_tool_call",
                "call_id": "call_patch00000003",
                "name": "apply_patch",
                "input": "*** Begin Patch\n*** End Patch",
            },
            {
                "type": "function_call_output",
                "call_id": "call_first0000000001",
                "output": "a",
            },
            {
                "type": "custom_tool_call_output",
                "call_id": "call_patch00000003",
                "output": "b",
            },
            {"role": "user", "content": "Go on"},
            {
                "type": "message",
                "role": "assistant",
                "content": "It is\u2028done. 🎉 ",
                "phase": "final_answer",
            },
        ],
        "tools": [
            {
                "type": "function",
                "name": "run",
                "description": "Runs.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }
    assert rec.THINK_1.encode() in body
    assert rec.THINK_2.encode() in body


def test_what_the_server_itself_did_goes_back_as_it_came():
    shell = Result(content="x", call="c", raw='{"type":"local_shell_call_output","id":"c"}')
    picture = Blob(kind="input_image", digest="", raw='{"type":"input_image","file_id":"f"}')
    foreign = Blob(kind="server_tool_use", digest="", raw='{"type":"server_tool_use"}')
    output = (*captured(rec.SEARCH, rec.COMPACTION, rec.SHELL), foreign)
    turns = [Turn(input=(Text(text="q"), picture), output=output), Turn(input=(shell,))]
    items = json.loads(RESPONSES.write(turns, model="m"))["input"]
    assert items == [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "q"}, json.loads(picture.raw)],
        },
        json.loads(rec.SEARCH),
        json.loads(rec.COMPACTION),
        json.loads(rec.SHELL),
        json.loads(shell.raw),
    ]


def test_members_can_be_overridden():
    fields = {"store": True, "include": [], "reasoning": {"effort": "low"}}
    written = json.loads(RESPONSES.write([], model="m", stream=False, fields=fields))
    assert written == {"model": "m", "input": [], **fields}


def test_thoughts_of_other_shapes_are_not_written():
    thought = Thought(carrier=Carrier.REASONING_CONTENT, raw='"hm"')
    turn = Turn(output=(thought, Call(name="f", arguments="{}", id="c", raw='{"type":"tool_use"}')))
    (item,) = json.loads(RESPONSES.write([turn], model="m"))["input"]
    assert item == fc("c")


@given(histories.conversations())
def test_what_is_written_is_read_again(conversation):
    said, _ = conversation
    turns = [
        Turn(input=RESPONSES.read(histories.body([], asked)).turns[0].input, output=captured(*raws))
        for asked, raws in said
    ]
    body = RESPONSES.write(turns, model="m")
    again = RESPONSES.read(body)
    assert shapes(again) == [output_shape(turn.output) for turn in turns]
    assert keys.rolling_keys(again.turns)[0] == keys.rolling_keys(turns)[0]
    for turn in turns:
        for thought in turn.thoughts:
            assert thought.raw.encode() in body
