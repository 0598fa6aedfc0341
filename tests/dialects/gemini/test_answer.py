"""Streams that `generateContent` clients accept, response by response."""

import json
import warnings

import pytest

from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead
from thoughtline.dialects.gemini.answer import GeminiAnswerWriter
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

with warnings.catch_warnings():  # of its source, when it is compiled for the first time
    warnings.simplefilter("ignore")
    from google.genai.types import GenerateContentResponse

HANDLE = "aGFuZGxl"
EVENTS = [
    ReasoningDelta("Hm."),
    ReasoningEnd(Timing()),
    TextDelta("Let me "),
    TextDelta("see\u2028it."),
    ToolCallDelta(0, '{"a":1}', "run", "x"),
    ToolCallDelta(1, '{"b":2}', "run", "y"),
]
USAGE = Usage(input=100, output=20, reasoning=5, cached=60)


def writer_of(**changes):
    known = {"id": "t" * 32, "model": "asked", "created": 7, "stream": True}
    return GeminiAnswerWriter(AnswerHead(handle=lambda nth: HANDLE, **(known | changes)))


def told(events=EVENTS, *, stop=StopReason.CALLS, **changes):
    writer = writer_of(**changes)
    blocks = AnswerBlocks(ToolNames([]), lambda nth: f"call_{nth}")
    said = writer.start() + writer.write([*blocks.feed(events), *blocks.end(complete=True)])
    return said + writer.finish(AnswerEnd(stop=stop, usage=USAGE))


def responses_of(body):
    frames = body.decode().strip().split("\r\n\r\n")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def parts_of(responses):
    return [p for r in responses for p in r["candidates"][0]["content"]["parts"]]


def test_calls_come_whole_in_order_and_the_first_has_the_handle():
    responses = responses_of(told())
    for response in responses:
        GenerateContentResponse.model_validate(response)
    calls = [part for part in parts_of(responses) if "functionCall" in part]
    assert [part["functionCall"]["args"] for part in calls] == [{"a": 1}, {"b": 2}]
    assert [part.get("thoughtSignature") for part in calls] == [HANDLE, None]
    assert responses[-1]["candidates"][0]["finishReason"] == "STOP"


def test_without_a_call_the_handle_stands_on_an_empty_last_part():
    assert parts_of(responses_of(told(EVENTS[:4])))[-1] == {"text": "", "thoughtSignature": HANDLE}
    assert parts_of(responses_of(told(EVENTS[2:4])))[-1] == {"text": "see\u2028it."}


def test_what_some_clients_take_for_the_end_of_a_line_is_escaped():
    assert "\u2028" not in told().decode()


def test_one_body_joins_what_belongs_together():
    body = json.loads(told(stream=False))
    texts = [part["text"] for part in parts_of([body]) if "text" in part]
    assert texts == ["Hm.", "Let me see\u2028it."]
    assert body["usageMetadata"] == {
        "promptTokenCount": 100,
        "candidatesTokenCount": 15,
        "totalTokenCount": 120,
        "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 60,
    }


def test_arguments_that_are_no_object_are_never_made_up():
    with pytest.raises(Unreadable):
        told([ToolCallDelta(0, "{", "run", "x")])


def test_a_failure_is_a_frame():
    error = UpstreamError(status=503, kind=ErrorKind.OVERLOADED, message="Busy.")
    (frame,) = responses_of(writer_of().fail_with(error))
    assert frame["error"]["status"] == "UNAVAILABLE"
    assert writer_of().keepalive().startswith(b":")


def test_the_words_of_a_failure_do_not_end_its_line():
    error = UpstreamError(status=500, kind=ErrorKind.SERVER, message="One\u2028two\u0085three")
    assert b"One\\u2028two\\u0085three" in writer_of().fail_with(error)
