"""Servers that write every member they know: one that is null, zero or empty says nothing."""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.engine.capture import output_parts
from thoughtline.log import keys
from thoughtline.log.events import Outcome, TextDelta, ToolCallDelta, TurnEnded
from thoughtline.log.parts import Call, Origin, Thought
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock
from thoughtline.testing.sims.values import sse

CALL = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"a":1}'}}
NO_CALL = {"name": "", "arguments": ""}
NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": None}
ZEROS = {
    "chat": {
        "choice": {"finish_reason": "", "logprobs": None, "index": 0, "usage": NO_USAGE},
        "message": {
            "content": "",
            "refusal": "",
            "audio": None,
            "annotations": [],
            "tool_calls": [],
            "function_call": NO_CALL,
        },
        "call": {"custom": {"name": "", "input": ""}, "extra_content": None},
        "answer": {"error": {"code": "", "message": ""}, "usage": NO_USAGE, "base_resp": {}},
    },
    "messages": {
        "delta": {"thinking": "", "signature": "", "text": "", "partial_json": ""},
        "event": {"error": {"type": "", "message": ""}, "usage": {"input_tokens": 0}},
        "end": {"stop_reason": "", "stop_sequence": ""},
    },
    "responses": {
        "item": {"namespace": "", "status": None, "caller": None, "error": None},
        "event": {"error": None, "message": None, "code": "", "output_item": {}},
        "response": {"error": None, "incomplete_details": {"reason": ""}, "usage": {}},
    },
    "gemini": {
        "part": {
            "text": "",
            "thought": False,
            "functionCall": {"name": "", "args": {}},
            "inlineData": None,
            "executableCode": {"language": 0, "code": ""},
        },
        "candidate": {"finishReason": 0, "index": 0, "citationMetadata": None},
        "answer": {
            "promptFeedback": {"blockReason": 0, "safetyRatings": []},
            "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0},
            "error": {"code": 0, "message": "", "status": ""},
        },
    },
}


def read(name, data, *, stream):
    origin = Origin(dialect=name, provider="p", model="m")
    reader = DIALECTS[name].reader(stream=stream, clock=FrozenClock(), origin=origin, sent=1)
    return [*reader.feed(data), *reader.close()]


def chat(z, *, stream):
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    thought, said = {"reasoning_content": "hm"}, {"content": "hi"}
    if not stream:
        message = {**z["message"], **thought, **said, "tool_calls": [{**z["call"], **CALL}]}
        choice = {**z["choice"], "message": message, "finish_reason": "tool_calls"}
        return json.dumps({**z["answer"], "choices": [choice], "usage": usage}).encode()

    def chunk(delta, **more):
        choice = {**z["choice"], "delta": {**z["message"], **delta}, **more}
        return {**z["answer"], "choices": [choice]}

    call = {**z["call"], **CALL, "index": 0}
    first = chunk({"tool_calls": [{**call, "function": {**CALL["function"], "arguments": ""}}]})
    more = chunk({"tool_calls": [{"index": 0, "id": "", "function": {**CALL["function"]}}]})
    more["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = ""
    last = chunk({}, finish_reason="tool_calls")
    chunks = [chunk(thought), chunk(said), first, more, last]
    chunks = [chunk({}), *chunks, {**z["answer"], "choices": [], "usage": usage}, {**z["answer"]}]
    return b"".join(map(sse, [*chunks, "[DONE]"]))


def messages(z, *, stream):
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": {"text": "hi"}},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "call_1", "name": "ls", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"partial_json": '{"a":1}'}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": z["end"], "usage": {"output_tokens": 0}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 2, "input_tokens": 0}
            if z["event"]
            else {"output_tokens": 2},
        },
        {"type": "sparkle"},
        {"type": "message_stop"},
    ]
    for event in events:
        if "index" in event and "delta" in event:
            event["delta"] = {**z["delta"], **event["delta"]}
    return b"".join(sse({**z["event"], **event}) for event in events)


def responses(z, *, stream):
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "ls"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    said["content"] = [{"type": "output_text", "text": "hi", "annotations": []}]
    output = [thought, said, {**z["item"], **call, "arguments": '{"a":1}'}]
    usage = {"input_tokens": 5, "output_tokens": 2}
    whole = {**z["response"], "id": "r", "status": "completed", "output": output, "usage": usage}
    if not stream:
        return json.dumps(whole).encode()
    events = [{"type": "response.created", "response": {**z["response"], "id": "r"}}]
    for index, item in enumerate(output):
        events += (
            {"type": "response.output_item.added", "output_index": index, "item": item},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        )
        if z["event"]:
            events.append({"type": "response.output_item.done", "item": {}})
    events.append({"type": "response.completed", "response": whole})
    return b"".join(sse({**z["event"], **event}) for event in events)


def gemini(z, *, stream):
    call = {"functionCall": {"id": "call_1", "name": "ls", "args": {"a": 1}}}
    parts = [{"text": "hm", "thought": True}, {"text": "hi"}, {**call, "thoughtSignature": "c2ln"}]
    parts = [{**z["part"], **part} for part in parts]

    def chunk(parts, **more):
        candidate = {**z["candidate"], "content": {"role": "model", "parts": parts}, **more}
        return {**z["answer"], "candidates": [candidate]}

    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2}
    if not stream:
        return json.dumps({**chunk(parts, finishReason="STOP"), "usageMetadata": usage}).encode()
    chunks = [chunk([part]) for part in parts]
    chunks[-1] |= {"usageMetadata": usage}
    return b"".join(map(sse, [*chunks, chunk([], finishReason="STOP")]))


ANSWERS = {"chat": chat, "messages": messages, "responses": responses, "gemini": gemini}


def bare(parts):
    """Parts without the JSON text and the times of a thought, in which zeros are kept."""
    return [
        (part.carrier, part.text, part.seals)
        if isinstance(part, Thought)
        else (type(part), getattr(part, "text", ""), getattr(part, "arguments", ""))
        for part in parts
    ]


KINDS = [(name, stream) for name in DIALECTS for stream in (False, True)]
KINDS.remove(("messages", False))  # there a block is kept as it is


@pytest.mark.parametrize(("name", "stream"), KINDS)
def test_a_member_with_its_zero_value_says_nothing(name, stream):
    made = ANSWERS[name]
    plain = read(name, made({key: {} for key in ZEROS[name]}, stream=stream), stream=stream)
    padded = read(name, made(ZEROS[name], stream=stream), stream=stream)
    assert len(output_parts(plain)) >= 3
    assert bare(output_parts(padded)) == bare(output_parts(plain))
    for kind in (TextDelta, ToolCallDelta):
        assert [e for e in padded if type(e) is kind] == [e for e in plain if type(e) is kind]
    assert [type(event) for event in padded] == [type(event) for event in plain]
    ended = padded[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.outcome, ended.stop) == (Outcome.COMPLETED, plain[-1].stop)
    assert ended.usage == Usage(input=5, output=2)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_end_without_a_reason_is_not_the_end(name):
    """A stream whose reason to stop is empty has not ended."""
    made = {
        "chat": [{"choices": [{"delta": {"content": "hi"}, "finish_reason": ""}]}],
        "messages": [{"type": "message_delta", "delta": {"stop_reason": ""}}],
        "responses": [{"type": "response.in_progress", "response": {"status": ""}}],
        "gemini": [{"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": ""}]}],
    }[name]
    (ended,) = (
        e for e in read(name, b"".join(map(sse, made)), stream=True) if isinstance(e, TurnEnded)
    )
    assert ended.outcome is Outcome.ABORTED


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("said", "told"), [("null", ""), ("{}{}", "{}"), ('{"a":1}{"a":1}', '{"a":1}')]
)
def test_arguments_that_are_none_or_are_said_twice(said, told, stream):
    """A call's arguments stay in the log as they came; whoever follows live has an object."""
    call = {"index": 0, "id": "c", "function": {"name": "ls", "arguments": said}}
    key = "delta" if stream else "message"
    answer = {"choices": [{key: {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    data = sse(answer) + sse("[DONE]") if stream else json.dumps(answer).encode()
    events = read("chat", data, stream=stream)
    (part,) = output_parts(events)
    assert part == Call(name="ls", arguments=said, id="c")
    assert "".join(e.arguments for e in events if isinstance(e, ToolCallDelta)) == told * stream
    once = Call(name="ls", arguments=told or "{}", id="c")
    assert keys.RollingKey().keys_for([part]) == keys.RollingKey().keys_for([once])
