"""What Responses providers say reaches every streaming client whole, however late they say it."""

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


THOUGHT, TEXT, REFUSAL = "It must be read.", "I read it. é🎉", "I will not."


def item(nth, kind):
    if kind == "thought":
        summary = [{"type": "summary_text", "text": THOUGHT}]
        return {"id": f"rs_{nth}", "type": "reasoning", "summary": summary}
    if kind == "call":
        return call(nth, ARGUMENTS[0])
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    if kind == "refusal":
        part = {"type": "refusal", "refusal": REFUSAL}
    return {"id": f"msg_{nth}", "type": "message", "role": "assistant", "content": [part]}


DELTAS = {
    "thought": ("response.reasoning_summary_text.delta", THOUGHT),
    "text": ("response.output_text.delta", TEXT),
    "refusal": ("response.refusal.delta", REFUSAL),
    "call": ("response.function_call_arguments.delta", ARGUMENTS[0]),
}
EMPTY = {"thought": {"summary": []}, "text": {"content": []}, "refusal": {"content": []}}


def items_stream(kinds, *, announced, grows):
    """A whole answer of these items; each announced or not, and grown or only said when done."""
    head = {"id": "resp_1", "object": "response", "model": "m"}
    output = [item(nth, kind) for nth, kind in enumerate(kinds)]
    yield {"type": "response.created", "response": {**head, "status": "in_progress"}}
    for index, (kind, one) in enumerate(zip(kinds, output, strict=True)):
        place = {"output_index": index}
        if announced:
            empty = one | EMPTY.get(kind, {"arguments": ""})
            yield {"type": "response.output_item.added", **place, "item": empty}
        if grows[index % len(grows)] and announced:
            type, text = DELTAS[kind]
            for piece in (text[:4], text[4:]):
                yield {"type": type, **place, "item_id": one["id"], "delta": piece}
        yield {"type": "response.output_item.done", **place, "item": one}
    yield {
        "type": "response.completed",
        "response": {**head, "status": "completed", "output": output},
    }


KINDS_OF_ITEMS = {
    "a thought, a text": ("thought", "text"),
    "a thought, a refusal": ("thought", "refusal"),
    "a thought, a text, a call": ("thought", "text", "call"),
    "a thought, a call, a call": ("thought", "call", "call"),
    "a text, a thought, a text": ("text", "thought", "text"),
}


@pytest.mark.parametrize("grows", [(True,), (False,), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("kinds", KINDS_OF_ITEMS.values(), ids=KINDS_OF_ITEMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_item_that_grows_by_no_delta_is_told_when_it_is_done(client, kinds, grows):
    found = items_told(client, kinds, announced=True, grows=grows)
    assert found == expected(client, kinds)


@pytest.mark.parametrize("kinds", KINDS_OF_ITEMS.values(), ids=KINDS_OF_ITEMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_items_that_are_only_done_are_told_in_their_order(client, kinds):
    found = items_told(client, kinds, announced=False, grows=(False,))
    assert found == expected(client, kinds)


def items_told(client, kinds, **how):
    upstream = streamed(*items_stream(kinds, **how))
    path, body = CLIENTS[client]
    gateway = scripted_gateway(upstream, speaks="responses")
    answer = ask(gateway, path, body, query="alt=sse" if client == "gemini" else "")
    found = blocks_of(client, answer.body, stream=True)
    return [content[1] if kind == "call" else content for kind, content in found]


def expected(client, kinds):
    """What a client reads; a message of Chat Completions has one of each, and calls last."""
    said = {"thought": THOUGHT, "text": TEXT, "refusal": REFUSAL, "call": ARGUMENTS[0]}
    if client == "chat" and kinds == KINDS_OF_ITEMS["a text, a thought, a text"]:
        return [THOUGHT, TEXT + TEXT]
    if client == "gemini" and "refusal" in kinds:
        return [THOUGHT]  # filtered: a reader of this dialect takes it for a failed turn
    return [said[kind] for kind in kinds]
