"""Bytes that are not UTF-8 in a thought: it goes back as it came, or not at all."""

import json
from contextlib import asynccontextmanager

import pytest

from support.gateway import PATHS, Answer, InProcessGateway, ScriptedWire

BAD = b"h\xffm"
STREAM = {"content-type": "text/event-stream"}


def sse(*events):
    return b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events).replace(
        b"BAD", BAD
    )


def named(*events):
    return b"".join(
        f"event: {e['type']}\n".encode() + b"data: " + json.dumps(e).encode() + b"\n\n"
        for e in events
    ).replace(b"BAD", BAD)


def chat(stream):
    message = {"role": "assistant", "reasoning_content": "BAD", "content": "Hello."}
    if not stream:
        said = {"choices": [{"message": message, "finish_reason": "stop"}]}
        return json.dumps(said).encode().replace(b"BAD", BAD)
    deltas = [{"reasoning_content": "BAD"}, {"reasoning_content": " ok"}, {"content": "Hello."}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return sse(*chunks, last) + b"data: [DONE]\n\n"


def messages(stream):
    block = {"type": "thinking", "thinking": "BAD", "signature": "EqQB"}
    text = {"type": "text", "text": "Hello."}
    said = {"type": "message", "role": "assistant", "model": "m", "content": [block, text]}
    if not stream:
        return json.dumps({**said, "stop_reason": "end_turn"}).encode().replace(b"BAD", BAD)
    delta, start = "content_block_delta", "content_block_start"
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    return named(
        {"type": "message_start", "message": {**said, "content": []}},
        {"type": start, "index": 0, "content_block": empty},
        {"type": delta, "index": 0, "delta": {"type": "thinking_delta", "thinking": "BAD"}},
        {"type": delta, "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}},
        {"type": "content_block_stop", "index": 0},
        {"type": start, "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": delta, "index": 1, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def gemini(stream):
    thought = {"text": "BAD", "thought": True}
    signed = {"text": "Hello.", "thoughtSignature": "c2ln"}
    content = {"role": "model", "parts": [thought, signed]}
    said = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    return sse(said) if stream else json.dumps(said).encode().replace(b"BAD", BAD)


def responses(stream):
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "BAD"}],
        "encrypted_content": "gAAA",
    }
    content = [{"type": "output_text", "text": "Hello.", "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    done = {"id": "resp_1", "object": "response", "status": "completed", "output": [item, message]}
    if not stream:
        return json.dumps(done).encode().replace(b"BAD", BAD)
    return named(
        {"type": "response.created", "response": {**done, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": done},
    )


def asked(dialect, said=None):
    if dialect == "gemini":
        turns = [{"role": "user", "parts": [{"text": "hi"}]}]
        more = {"role": "model", "parts": [{"text": "Hello."}]}
        after = {"role": "user", "parts": [{"text": "on"}]}
        return {"contents": [*turns, more, after] if said else turns}
    turns = [{"role": "user", "content": "hi"}]
    more = {"role": "assistant", "content": "Hello."}
    history = [*turns, more, {"role": "user", "content": "on"}] if said else turns
    name = "input" if dialect == "responses" else "messages"
    return {"model": "m", name: history, "max_tokens": 100}


ANSWERS = {"chat": chat, "messages": messages, "gemini": gemini, "responses": responses}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ANSWERS)
async def test_a_thought_that_is_not_utf_8_is_never_mended(dialect, stream):
    body = ANSWERS[dialect](stream)
    assert BAD in body
    gateway = InProcessGateway(ScriptedWire(Answer(200, body, STREAM if stream else None)))
    path = "/v1" + PATHS[dialect].format(model="m")
    if stream and dialect == "gemini":
        path = path.replace("generateContent", "streamGenerateContent")
    first = {**asked(dialect), **({} if dialect == "gemini" else {"stream": stream})}
    answer = await gateway.post(path, first)
    assert answer.body == body  # to the byte
    await gateway.post(path, asked(dialect, said=True))
    sent = gateway.wire.sent[-1].body
    assert b"\xef\xbf\xbd" not in sent and b"ufffd" not in sent
    assert BAD in sent or b"hm" not in sent.replace(BAD, b"")


@pytest.mark.parametrize("dialect", ANSWERS)
async def test_a_replacement_character_of_the_provider_itself_goes_back(dialect):
    body = ANSWERS[dialect](True).replace(BAD, "h\ufffdm".encode())
    gateway = InProcessGateway(ScriptedWire(Answer(200, body, STREAM)))
    path = "/v1" + PATHS[dialect].format(model="m")
    if dialect == "gemini":
        path = path.replace("generateContent", "streamGenerateContent")
    await gateway.post(
        path, {**asked(dialect), **({} if dialect == "gemini" else {"stream": True})}
    )
    await gateway.post(path, asked(dialect, said=True))
    sent = gateway.wire.sent[-1].body
    assert "h\ufffdm".encode() in sent


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ANSWERS)
async def test_a_byte_order_mark_does_no_harm(dialect, stream, split):
    """Before an answer and before a request; both go on as they came."""
    body = ANSWERS[dialect](stream).replace(BAD, b"hm")
    marked = b"\xef\xbb\xbf" + body

    class Split(Answer):
        async def chunks(self):
            for piece in (self.body[:2], self.body[2:]) if split else (self.body,):
                yield piece

    class SplitWire(ScriptedWire):
        @asynccontextmanager
        async def send(self, request):
            async with super().send(request) as made:
                yield Split(made.status, made.body, dict(made.headers))

    gateway = InProcessGateway(SplitWire(Answer(200, marked, STREAM if stream else None)))
    path = "/v1" + PATHS[dialect].format(model="m")
    if stream and dialect == "gemini":
        path = path.replace("generateContent", "streamGenerateContent")
    first = {**asked(dialect), **({} if dialect == "gemini" else {"stream": stream})}
    sent = b"\xef\xbb\xbf" + json.dumps(first).encode()
    answer = await gateway.post(path, sent)
    assert (answer.body, gateway.wire.sent[-1].body) == (marked, sent)  # to the byte
    again = b"\xef\xbb\xbf" + json.dumps(asked(dialect, said=True)).encode()
    answer = await gateway.post(path, again)
    assert answer.header("x-thoughtline-replay").startswith("restored=1; missed=0")
    assert b"hm" in gateway.wire.sent[-1].body
