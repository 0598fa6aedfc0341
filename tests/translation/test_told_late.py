"""Calls of Responses providers reach every streaming client whole, however late they are said."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.reader_contract import play
from support.recordings import responses as recordings
from support.responses_items import STREAMS, reader
from support.scripted_upstream import ask, scripted_gateway, streamed
from support.translation import blocks_of
from thoughtline.dialects.responses.items import ARGUMENTS as MEMBERS
from thoughtline.dialects.responses.items import item_type
from thoughtline.log.events import Outcome, ToolCall, ToolCallDelta, TurnEnded

ARGUMENTS = ('{"path": "a.txt", "limit": 5}', '{"a":{"b":[1]}}', "{}", '{"text":"é🎉"}')
LAST = ("deltas", "half", "done", "item", "completed")
"""Up to where a server says nothing of a call's arguments."""


def call(nth, arguments):
    return {
        "id": f"fc_{nth}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{nth}",
        "name": "read",
        "arguments": arguments,
    }


def said(nth, arguments, when):
    """The events of one call whose arguments are not said before that."""
    item = call(nth, arguments)
    place = {"output_index": nth + 1, "item_id": item["id"]}
    yield {
        "type": "response.output_item.added",
        "output_index": nth + 1,
        "item": {**item, "arguments": "", "status": "in_progress"},
    }
    deltas = {"deltas": [arguments[:4], arguments[4:]], "half": [arguments[:4]]}.get(when, [])
    for delta in deltas:
        yield {"type": "response.function_call_arguments.delta", **place, "delta": delta}
    if when in ("deltas", "half", "done"):
        name = "response.function_call_arguments.done"
        yield {"type": name, **place, "arguments": arguments}
    if when != "completed":
        yield {"type": "response.output_item.done", "output_index": nth + 1, "item": item}


def stream(calls):
    """A whole answer: a thought, then these calls."""
    thought = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    output = [thought, *(call(nth, arguments) for nth, (arguments, _) in enumerate(calls))]
    head = {"id": "resp_1", "object": "response", "model": "m"}
    return [
        {"type": "response.created", "response": {**head, "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        *(
            event
            for nth, (arguments, when) in enumerate(calls)
            for event in said(nth, arguments, when)
        ),
        {
            "type": "response.completed",
            "response": {**head, "status": "completed", "output": output},
        },
    ]


CLIENTS = {
    "chat": (
        "/v1/chat/completions",
        {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "messages": (
        "/v1/messages",
        {
            "model": "m",
            "stream": True,
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi"}],
        },
    ),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    ),
}


def told(client, calls):
    gateway = scripted_gateway(streamed(*stream(calls)), speaks="responses")
    path, body = CLIENTS[client]
    answer = ask(gateway, path, body, query="alt=sse" if client == "gemini" else "")
    assert answer.status == 200
    found = blocks_of(client, answer.body, stream=True)
    return [json.loads(content[1] or "{}") for kind, content in found if kind == "call"]


@pytest.mark.parametrize("client", CLIENTS)
@given(calls=st.lists(st.tuples(st.sampled_from(ARGUMENTS), st.sampled_from(LAST)), max_size=3))
def test_a_streaming_client_gets_the_arguments_of_every_call(client, calls):
    assert told(client, calls) == [json.loads(arguments) for arguments, _ in calls]


@given(calls=st.lists(st.tuples(st.sampled_from(ARGUMENTS), st.sampled_from(LAST)), max_size=3))
def test_what_is_shown_live_of_a_call_adds_up_to_it(calls):
    assert_told_live(streamed(*stream(calls)).body)


@pytest.mark.parametrize("name", STREAMS)
def test_recorded_calls_are_shown_live_in_full(name):
    assert_told_live(recordings.RECORDINGS[name]().encode())


def assert_told_live(body):
    happenings = play(reader(), [body])
    ended = next(one for one in happenings if isinstance(one, TurnEnded))
    deltas = [one for one in happenings if isinstance(one, ToolCallDelta)]
    calls = [one.call for one in happenings if isinstance(one, ToolCall)]
    own = [call.arguments for call in calls if item_type(json.loads(call.raw)) in MEMBERS]
    numbers = sorted({delta.index for delta in deltas})
    live = ["".join(d.arguments for d in deltas if d.index == number) for number in numbers]
    assert not live or live == own or ended.outcome is not Outcome.COMPLETED
