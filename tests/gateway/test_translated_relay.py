"""Answers told again while they arrive: the end waits for the log, and a break is said."""

import asyncio
import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.errors import WireError


def chunk(**delta):
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta}]}


def event(value):
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = {"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
STREAM = [
    event(chunk(role="assistant", reasoning_content="Hm.")),
    event(chunk(content="Yes.")),
    event(DONE),
    b"data: [DONE]\n\n",
]


class Streamed(Answer):
    """An answer that comes in pieces, and may break off."""

    def __init__(self, pieces, error=None):
        super().__init__(body=b"", headers={"content-type": "text/event-stream"})
        self.pieces, self.error = pieces, error

    async def chunks(self):
        for piece in self.pieces:
            await asyncio.sleep(0)
            yield piece
        if self.error:
            raise self.error


class StreamWire(ScriptedWire):
    """Gives the very answers, with their pieces."""

    def send(self, request):
        self.sent.append(request)
        return _given(self.answers[0])


class _given:  # noqa: N801
    def __init__(self, answer):
        self.answer = answer

    async def __aenter__(self):
        return self.answer

    async def __aexit__(self, *error):
        return False


def gateway_of(answer, **options):
    gateway = InProcessGateway(StreamWire(answer), "generic", **options)
    upstream = Upstream(name="up", base_url="http://sim", policy="generic", dialects=("chat",))
    gateway.proxy.directory = Directory([upstream])
    return gateway


BODY = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi."}]}


async def test_the_turn_is_in_the_log_as_its_provider_made_it():
    gateway = gateway_of(Streamed(STREAM))
    answer = await gateway.post("/v1/messages", {**BODY, "stream": True})
    assert answer.body.count(b"signature_delta") == 1
    (reasoning,) = await gateway.facts("reasoning")
    assert reasoning.thought.raw == '"Hm."'
    (started,) = await gateway.facts("turn_started")
    assert started.target.dialect == "chat"


async def test_a_stream_that_breaks_off_ends_in_the_clients_words():
    gateway = gateway_of(Streamed(STREAM[:2], WireError("it broke")))
    answer = await gateway.post("/v1/messages", {**BODY, "stream": True})
    last = answer.body.decode().strip().split("\n\n")[-1]
    assert last.startswith("event: error")
    assert "it broke" in last
    (ended,) = await gateway.facts("turn_ended")
    assert ended.outcome.value == "failed"


async def test_a_stream_without_an_end_is_not_taken_for_a_whole_one():
    gateway = gateway_of(Streamed(STREAM[:2]))
    answer = await gateway.post("/v1/responses", {"model": "m", "input": "Hi.", "stream": True})
    assert answer.body.decode().strip().split("\n\n")[-1].startswith("event: response.failed")


async def test_what_came_last_before_a_break_is_told():
    gateway = gateway_of(Streamed([STREAM[0], STREAM[1].strip()]))  # its event has no end
    answer = await gateway.post("/v1/responses", {"model": "m", "input": "Hi.", "stream": True})
    events = [event.split("data: ")[1] for event in answer.body.decode().strip().split("\n\n")]
    told = [json.loads(event) for event in events]
    assert "Yes." in [event.get("delta") for event in told]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))


async def test_an_answer_in_one_body_to_a_client_that_streams():
    message = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}
    body = {"id": "c1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    gateway = gateway_of(Answer(body=body))
    answer = await gateway.post("/v1/messages", {**BODY, "stream": True})
    assert answer.header("content-type").startswith("text/event-stream")
    assert b"message_stop" in answer.body
    assert b'"thinking_delta","thinking":"Hm."' in answer.body


async def test_arguments_that_cannot_be_read_fail_a_whole_answer():
    call = {"id": "x", "type": "function", "function": {"name": "run", "arguments": "{"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"id": "c1", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    gateway = gateway_of(Answer(body=body))
    answer = await gateway.post("/v1/messages", BODY)
    assert answer.status == 502
    assert "not a JSON object" in answer.json["error"]["message"]


def call(nth, arguments):
    return {"index": nth, "id": f"call_{nth}", "function": {"name": "run", "arguments": arguments}}


def call_delta(nth, arguments):
    return event(chunk(tool_calls=[call(nth, arguments)]))


ASK = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
BROKEN = {
    "each by itself": [call_delta(0, '{"n":1}'), call_delta(1, "{")],
    "at once": [call_delta(0, '{"n":1}') + call_delta(1, "{")],
    "with its end": [call_delta(0, '{"n":1}') + call_delta(1, "{") + b"".join(STREAM[-2:])],
    "in one event": [event(chunk(tool_calls=[call(0, '{"n":1}'), call(1, "{")]))],
    "by turns": [
        event(chunk(tool_calls=[call(0, '{"n"'), call(1, "{")])),
        event(chunk(tool_calls=[call(0, ":1}"), call(1, "[")])),
    ],
    "the last first": [call_delta(1, "{") + call_delta(0, '{"n":1}')],
    "after a text": [event(chunk(content="Yes.")) + call_delta(0, '{"n":1}'), call_delta(1, "{")],
}


@pytest.mark.parametrize("query", ["", "alt=sse"])
@pytest.mark.parametrize("chunks", BROKEN.values(), ids=BROKEN)
async def test_what_is_whole_before_an_error_is_told_and_the_stream_stays_well_formed(
    chunks, query
):
    gateway = gateway_of(Streamed([*chunks, *STREAM[-2:]]))
    answer = await gateway.post("/v1beta/models/m:streamGenerateContent", ASK, query=query)
    events = [event.removeprefix("data: ") for event in answer.body.decode().split("\r\n\r\n")]
    told = [json.loads(event) for event in events if event] if query else json.loads(answer.body)
    *before, last = told
    assert "not a JSON object" in last["error"]["message"]
    parts = [part for one in before for part in one["candidates"][0]["content"]["parts"]]
    assert [part["functionCall"]["args"] for part in parts if "functionCall" in part] == [{"n": 1}]
