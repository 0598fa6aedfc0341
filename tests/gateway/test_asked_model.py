"""Answers of a provider that speaks the client's dialect, under the name that the client asked."""

import asyncio
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.dialects import DIALECTS
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.gateway.asked_model import MAX_HELD, AskedModel, AskedModelSend

ARGUMENTS = {"model": "served-1", "message": {"model": "served-1"}}
TEXT = 'the "model": "served-1" it is'
ANSWERS = {
    "chat": {
        "id": "c",
        "choices": [
            {
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": TEXT, "model": "served-1"},
            }
        ],
        "model": "served-1",
    },
    "messages": {
        "model": "served-1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "text", "text": TEXT},
            {"type": "tool_use", "id": "t", "name": "n", "input": ARGUMENTS},
        ],
        "stop_reason": "tool_use",
    },
    "responses": {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT}],
            }
        ],
        "model": "served-1",
        "metadata": ARGUMENTS,
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": TEXT}, {"functionCall": {"name": "n", "args": ARGUMENTS}}],
                },
                "finishReason": "STOP",
            }
        ],
        "modelVersion": "served-1",
    },
}
PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/mine:{}",
}
REQUESTS = {
    "chat": {"model": "mine", "messages": [{"role": "user", "content": "hi"}]},
    "messages": {"model": "mine", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"model": "mine", "input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def event(value, name=""):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def streamed(dialect):
    """The answer as events; those that hold all of it hold its model, too."""
    whole = ANSWERS[dialect]
    match dialect:
        case "chat":
            delta = {"role": "assistant", "content": TEXT}
            chunk = {"id": "c", "model": "served-1", "choices": [{"index": 0, "delta": delta}]}
            last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            return event(chunk) + b": waiting\n\n" + event(last) + b"data: [DONE]\n\n"
        case "messages":
            start = {"type": "message_start", "message": {**whole, "content": []}}
            block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
            delta = {"type": "content_block_delta", "index": 0}
            delta |= {"delta": {"type": "text_delta", "text": TEXT}}
            end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
            said = [start, block, delta, {"type": "content_block_stop", "index": 0}, end]
            return b"".join(event(one, one["type"]) for one in [*said, {"type": "message_stop"}])
        case "responses":
            begun = {**whole, "status": "in_progress", "output": []}
            first = {"type": "response.created", "response": begun}
            last = {"type": "response.completed", "response": whole}
            return event(first, "response.created") + event(last, "response.completed")
        case _:
            return event(whole).replace(b"\n\n", b"\r\n\r\n")


def named(value, dialect, name):
    """What is expected: the same with another name of the model in the places for it."""
    for place in DIALECTS[dialect].model_places:
        inside = value
        for key in place[:-1]:
            inside = inside.get(key, {})
        if place[-1] in inside:
            inside[place[-1]] = name
    return value


def gateway(dialect, answer, kind):
    made = InProcessGateway(ScriptedWire(Answer(body=answer, headers={"content-type": kind})))
    rows = ModelNames([ModelRow(pattern="mine", upstream="up", model="served")])
    upstream = Upstream(name="up", base_url="http://up.example", dialects=(dialect,))
    made.proxy.directory = Directory([upstream], model_names=rows)
    return made


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_names_the_model_that_was_asked_for(dialect):
    raw = json.dumps(ANSWERS[dialect], indent=1).encode()
    head = {"content-length": str(len(raw)), "content-type": "application/json"}
    made = gateway(dialect, raw, "application/json")
    made.wire.answers[0].headers = list(head.items())
    reply = await made.post(PATHS[dialect].format("generateContent"), REQUESTS[dialect])
    want = named(json.loads(raw), dialect, "mine")
    assert reply.body == json.dumps(want, indent=1).encode()  # and nothing else is touched
    assert reply.header("content-length") in (None, str(len(reply.body)))
    assert reply.header("x-thoughtline-model") == "mine>up/served"
    (ended,) = await made.facts("turn_ended")
    assert ended.model == "served-1"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_so_does_a_stream(dialect):
    made = gateway(dialect, streamed(dialect), "text/event-stream")
    body = {**REQUESTS[dialect], **({} if dialect == "gemini" else {"stream": True})}
    reply = await made.post(PATHS[dialect].format("streamGenerateContent"), body)
    assert reply.body == expected(dialect)
    (ended,) = await made.facts("turn_ended")
    assert ended.model == "served-1"


def expected(dialect, name="mine"):
    lines = streamed(dialect).splitlines(keepends=True)
    return b"".join(
        b"data: " + json.dumps(named(json.loads(line[6:]), dialect, name)).encode() + end(line)
        if line.startswith(b"data: {")
        else line
        for line in lines
    )


def end(line):
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"


async def sent(asked, chunks, *, stream, slow=()):
    """What a client gets of these chunks; those in `slow` cannot be written at once."""
    told, numbers = [], itertools.count()

    async def send(message):
        told.append(message["body"])

    def write_now(chunk):
        if next(numbers) in slow:
            return False
        told.append(chunk)
        return True

    sending = AskedModelSend(asked, send, write_now, stream=stream)
    for chunk in chunks:
        if not (stream and sending.write_now(chunk)):
            await sending.send({"body": chunk, "more_body": True})
    await sending.send({"body": b"", "more_body": False})
    return b"".join(told)


@given(data=st.data(), dialect=st.sampled_from([*DIALECTS]))
def test_it_makes_no_difference_where_a_stream_is_cut(data, dialect):
    text = streamed(dialect)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    slow = data.draw(st.sets(st.integers(0, 12)))
    asked = AskedModel(DIALECTS[dialect], "mine")
    assert asyncio.run(sent(asked, chunks, stream=True, slow=slow)) == expected(dialect)
    whole = json.dumps(ANSWERS[dialect]).encode()
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    want = json.dumps(named(json.loads(whole), dialect, "mine")).encode()
    assert asyncio.run(sent(asked, chunks, stream=False)) == want


async def test_an_array_of_geminis_has_it_in_each_element():
    asked = AskedModel(DIALECTS["gemini"], "mine")
    text = json.dumps([ANSWERS["gemini"]] * 2).encode()
    want = json.dumps([named(json.loads(json.dumps(ANSWERS["gemini"])), "gemini", "mine")] * 2)
    assert asked.put(text) == want.encode()


@pytest.mark.parametrize(
    "text", [b"", b"null", b'"model"', b'{"model": 1}', b'{"model": "a"', b"["]
)
def test_what_names_no_model_or_is_no_json_stays(text):
    for dialect in DIALECTS.values():
        assert AskedModel(dialect, "mine").put(text) == text


async def test_what_is_too_long_to_hold_stays(monkeypatch):
    monkeypatch.setattr("thoughtline.gateway.asked_model.MAX_HELD", 100)
    assert MAX_HELD > 100
    asked = AskedModel(DIALECTS["chat"], "mine")
    text = event({"model": "served-1", "x": "y" * 200}) + event({"model": "served-1"})
    for stream in (True, False):
        chunks = [text[at : at + 50] for at in range(0, len(text), 50)]
        assert await sent(asked, chunks, stream=stream) == text
