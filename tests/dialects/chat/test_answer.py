"""Streams that Chat Completions clients accept, chunk by chunk."""

import json

from openai.types.chat import ChatCompletion, ChatCompletionChunk

from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead
from thoughtline.dialects.chat.answer import ChatAnswerWriter
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.log.events import (
    ReasoningDelta,
    ReasoningEnd,
    StopReason,
    TextDelta,
    ToolCallDelta,
)
from thoughtline.log.parts import Timing
from thoughtline.log.usage import Usage

EVENTS = [
    ReasoningDelta("Hm."),
    ReasoningEnd(Timing()),
    TextDelta("Let me see."),
    ToolCallDelta(0, '{"a":1}', "run", "x"),
    ToolCallDelta(1, "{}", "run", "y"),
]
USAGE = Usage(input=100, output=20, reasoning=5, cached=60)


def writer_of(**changes):
    known = {"id": "t" * 32, "model": "asked", "created": 7, "stream": True}
    return ChatAnswerWriter(AnswerHead(handle=lambda nth: f"handle-{nth}", **(known | changes)))


def told(events=EVENTS, *, stop=StopReason.CALLS, **changes):
    writer = writer_of(**changes)
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"call_{nth}")
    said = writer.start() + writer.write([*blocks.feed(events), *blocks.end(complete=True)])
    return said + writer.finish(AnswerEnd(stop=stop, usage=USAGE))


def chunks_of(body):
    lines = [line.removeprefix("data: ") for line in body.decode().strip().split("\n\n")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_deltas_come_in_order_and_the_last_choice_has_the_reason():
    chunks = chunks_of(told())
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert [next(iter(delta), "") for delta in deltas] == [
        "role",
        "reasoning_content",
        "content",
        "tool_calls",
        "tool_calls",
        "tool_calls",
        "tool_calls",
        "",
    ]
    named = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [call["index"] for call in named] == [0, 0, 1, 1]
    assert named[0]["id"] == "call_0"
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_is_a_chunk_of_its_own_where_it_is_wanted():
    last = chunks_of(told())[-1]
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 60}
    assert chunks_of(told(wants_usage=False))[-1]["choices"]


def test_one_body_is_a_completion():
    body = json.loads(told(stream=False))
    ChatCompletion.model_validate(body)
    message = body["choices"][0]["message"]
    assert message["reasoning_content"] == "Hm."
    assert [call["id"] for call in message["tool_calls"]] == ["call_0", "call_1"]
    assert body["usage"]["total_tokens"] == 120


def test_handles_are_not_shown_here():
    assert b"handle" not in told()


def test_a_failure_is_an_error_in_the_stream():
    error = UpstreamError(status=500, kind=ErrorKind.SERVER, message="Oh.")
    assert writer_of().fail_with(error).startswith(b'data: {"error":{')
    assert writer_of().keepalive().startswith(b":")
