"""Streams that Messages clients accept, event by event."""

import json

import pytest
from anthropic.types import Message

from support.clients import sse
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead
from thoughtline.dialects.messages.answer import MessagesAnswerWriter
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.errors import Unreadable
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
    ReasoningDelta("Hm"),
    ReasoningDelta("."),
    ReasoningEnd(Timing()),
    TextDelta("Let me see."),
    ToolCallDelta(0, '{"a":', "run", "x"),
    ToolCallDelta(0, "1}"),
]
USAGE = Usage(input=100, output=20, reasoning=5, cached=60, cache_write=10)


def told(events=EVENTS, *, stop=StopReason.CALLS, stop_text="", **changes):
    known = {"id": "t" * 32, "model": "asked", "created": 7, "stream": True, "input_estimate": 90}
    made = AnswerHead(handle=lambda nth: f"handle-{nth}", **(known | changes))
    writer = MessagesAnswerWriter(made)
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"call_{nth}")
    said = writer.start() + writer.write([*blocks.feed(events), *blocks.end(complete=True)])
    return said + writer.finish(AnswerEnd(stop=stop, stop_text=stop_text, usage=USAGE))


def events_of(body):
    return [json.loads(data) for data in sse(body)]


def test_blocks_never_overlap_and_a_thought_is_signed_once():
    events = events_of(told())
    assert [event["type"] for event in events] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    deltas = [event["delta"] for event in events if "delta" in event]
    signed = [delta for delta in deltas if delta.get("type") == "signature_delta"]
    assert signed == [{"type": "signature_delta", "signature": "handle-0"}]
    assert deltas[-1]["stop_reason"] == "tool_use"


def test_numbers_stand_at_the_start_and_at_the_end():
    events = events_of(told())
    assert events[0]["message"]["usage"]["input_tokens"] == 90
    assert events[-2]["usage"] == {
        "input_tokens": 30,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }


def test_one_body_is_a_message():
    body = json.loads(told(stream=False))
    Message.model_validate(body)
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use"]
    assert body["content"][2]["input"] == {"a": 1}
    assert body["model"] == "asked"


def test_a_thought_without_words_is_redacted():
    body = json.loads(told([ReasoningEnd(Timing()), TextDelta("Yes.")], stream=False))
    assert body["content"][0] == {"type": "redacted_thinking", "data": "handle-0"}
    start = events_of(told([ReasoningEnd(Timing())]))[2]
    assert start["content_block"] == {"type": "redacted_thinking", "data": "handle-0"}


def test_nothing_said_is_an_empty_block():
    events = events_of(told([], stop=StopReason.END))
    assert events[2]["content_block"] == {"type": "text", "text": ""}
    assert json.loads(told([], stream=False))["content"] == [{"type": "text", "text": ""}]


def test_the_text_that_stopped_it_is_said():
    end = events_of(told(EVENTS[:4], stop=StopReason.STOP_TEXT, stop_text="END"))[-2]["delta"]
    assert end == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_arguments_that_are_no_object_are_never_made_up():
    broken = [ToolCallDelta(0, '{"a":', "run", "x")]
    with pytest.raises(Unreadable, match="not a JSON object"):
        told(broken, stream=False)
    deltas = [event["delta"] for event in events_of(told(broken)) if "delta" in event]
    assert deltas[0]["partial_json"] == '{"a":'


def test_a_failure_is_an_error_event():
    writer = MessagesAnswerWriter(AnswerHead(id="t", model="m", created=0, stream=True, handle=str))
    error = UpstreamError(status=529, kind=ErrorKind.OVERLOADED, message="Busy.")
    assert writer.fail_with(error).startswith(b"event: error\ndata: {")
    assert writer.keepalive().startswith(b"event: ping\n")
