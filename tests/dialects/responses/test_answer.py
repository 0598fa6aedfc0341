"""Streams that Responses clients accept, event by event."""

import json

from openai.types.responses import Response

from support.clients import sse
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, AnswerHead
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.responses.answer import ResponsesAnswerWriter
from thoughtline.dialects.tool_names import ToolNames
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.log.events import (
    ReasoningDelta,
    ReasoningEnd,
    StopReason,
    TextDelta,
    ToolCallDelta,
)
from thoughtline.log.parts import Timing, ToolKind
from thoughtline.log.usage import Usage

EVENTS = [
    ReasoningDelta("Hm."),
    ReasoningEnd(Timing()),
    TextDelta("Let me see."),
    ToolCallDelta(0, '{"a":1}', "run", "x"),
    ToolCallDelta(1, '{"input":"*** Begin"}', "patch", "y"),
    ToolCallDelta(2, '{"path":"."}', "files__ls", "z"),
    ToolCallDelta(3, '{"query":"mail"}', "tool_search", "s"),
]
TOOLS = [
    ToolSpec(name="run"),
    ToolSpec(name="patch", kind=ToolKind.CUSTOM),
    ToolSpec(name="ls", namespace="files"),
    ToolSpec(name="tool_search", kind=ToolKind.SEARCH),
]
USAGE = Usage(input=100, output=20, reasoning=5, cached=60)


def head(**changes):
    known = {"id": "t" * 32, "model": "asked", "created": 7, "stream": True}
    return AnswerHead(handle=lambda nth: f"handle-{nth}", **(known | changes))


def told(events=EVENTS, *, stop=StopReason.CALLS, **changes):
    writer = ResponsesAnswerWriter(head(**changes))
    blocks = AnswerBlocks(ToolNames(TOOLS), lambda nth: f"call_{nth}")
    made = writer.start() + writer.write([*blocks.feed(events), *blocks.end(complete=True)])
    return made + writer.finish(AnswerEnd(stop=stop, usage=USAGE))


def events_of(body):
    return [json.loads(data) for data in sse(body)]


def test_the_order_of_events_is_what_clients_expect():
    events = events_of(told(EVENTS[:3], stop=StopReason.END))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert b"event: response.created\ndata: {" in told()


def test_an_item_has_one_id_from_its_beginning_to_its_end():
    open_item = None
    for event in events_of(told()):
        if "item_id" in event:
            assert (event["item_id"], event["output_index"]) == open_item
        if event["type"] == "response.output_item.added":
            open_item = event["item"]["id"], event["output_index"]


def test_the_last_event_repeats_all_items():
    events = events_of(told())
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done
    Response.model_validate(events[-1]["response"])


def test_tools_come_back_as_they_were_declared():
    items = events_of(told())[-1]["response"]["output"]
    assert [item["type"] for item in items] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "function_call",
        "tool_search_call",
    ]
    assert items[3]["input"] == "*** Begin"
    assert items[3]["id"].startswith("ctc_")
    assert (items[4]["namespace"], items[4]["name"]) == ("files", "ls")
    assert (items[5]["execution"], items[5]["arguments"]) == ("client", {"query": "mail"})


def test_a_thought_is_shown_as_text_or_as_a_summary_and_never_as_both():
    (plain,) = events_of(told(EVENTS[:2]))[-1]["response"]["output"]
    assert plain["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert plain["summary"] == []
    assert plain["encrypted_content"] == "handle-0"
    (summary,) = events_of(told(EVENTS[:2], wants_summary=True))[-1]["response"]["output"]
    assert summary["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert "content" not in summary


def test_an_answer_that_was_cut_is_incomplete():
    last = events_of(told(EVENTS[:3], stop=StopReason.LENGTH))[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_usage_has_both_details():
    usage = events_of(told())[-1]["response"]["usage"]
    assert usage == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }


def test_a_failure_comes_inside_of_the_stream():
    writer = ResponsesAnswerWriter(head())
    error = UpstreamError(status=402, kind=ErrorKind.QUOTA, message="Pay first.")
    (event,) = events_of(writer.fail_with(error))
    assert event["type"] == "response.failed"
    assert event["response"]["error"] == {"code": "insufficient_quota", "message": "Pay first."}


def test_a_keepalive_is_an_event():
    writer = ResponsesAnswerWriter(head())
    assert events_of(writer.keepalive())[0]["type"] == "response.in_progress"


def test_one_body_is_the_same_response():
    body = json.loads(told(stream=False))
    assert body == events_of(told())[-1]["response"]
