"""Clients that go on elsewhere as soon as they hear why the model stopped: the turn is there."""

import asyncio
import json

import pytest

from gateway.test_relay import Pushing, Watched
from support.waiting import eventually
from thoughtline.dialects import DIALECTS
from thoughtline.gateway import relay as module
from thoughtline.gateway.relay import Relay

MESSAGE = {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": None}


def event(**fields):
    return b"event: %b\ndata: %b\n\n" % (fields["type"].encode(), json.dumps(fields).encode())


STREAMS = {
    "chat": (
        b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n',
    ),
    "messages": (
        event(type="message_start", message={**MESSAGE, "usage": {"input_tokens": 1}})
        + event(type="content_block_start", index=0, content_block={"type": "text", "text": "hi"}),
        event(
            type="message_delta",
            delta={"stop_reason": "end_turn"},
            usage={"output_tokens": 1},
        ),
        event(type="message_stop"),
    ),
}


class Client:
    """What a client has received, and when the turn was committed."""

    def __init__(self, dialect, **options):
        self.shown, self.before_commit, self.line = b"", None, Pushing()
        self.relay = Relay(
            self._send,
            Watched(dialect),
            DIALECTS[dialect],
            self._commit,
            push=self.line.push,
            write_now=self._write,
            **{"holds": True, **options},
        )
        self.going = asyncio.ensure_future(self.relay.forward(self.line.chunks(), stream=True))

    async def _send(self, message):
        self.shown += message["body"]

    def _write(self, chunk):
        self.shown += chunk
        return True

    async def _commit(self):
        self.before_commit = self.shown

    async def receive(self, chunk):
        self.line.receive(chunk)
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.mark.parametrize("size", [1, 7, 5000])
@pytest.mark.parametrize("dialect", STREAMS)
async def test_why_it_stopped_waits_for_the_commit(dialect, size):
    said, stop, end = STREAMS[dialect]
    client = Client(dialect)
    await client.receive(said)
    assert client.shown == said
    for start in range(0, len(stop), size):
        await client.receive(stop[start : start + size])
    known = DIALECTS[dialect].stream_stop
    assert not known.search(client.shown)
    await client.receive(end)
    await client.receive(None)
    await client.going
    assert client.shown == said + stop + end
    assert not known.search(client.before_commit)


@pytest.mark.parametrize(
    ("dialect", "member"), [("chat", b'"finish_reason"'), ("messages", b'"stop_reason"')]
)
async def test_an_empty_reason_is_none(dialect, member):
    said, stop, end = STREAMS[dialect]
    said = said.replace(b": null", b":null").replace(member + b":null", member + b': ""')
    assert member + b': ""' in said
    client = Client(dialect)
    await client.receive(said)
    assert client.shown == said
    await client.receive(stop)
    assert client.shown == said
    await client.receive(end)
    await client.receive(None)
    await client.going
    assert client.shown == said + stop + end


async def test_not_where_one_process_serves_all():
    said, stop, end = STREAMS["chat"]
    client = Client("chat", holds=False)
    await client.receive(said + stop)
    assert client.shown == said + stop
    await client.receive(end)
    await client.receive(None)
    await client.going


async def test_an_end_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(module, "HOLD_TIME", 0.0)
    said, stop, end = STREAMS["chat"]
    client = Client("chat")
    await client.receive(said + stop)
    await eventually(lambda: client.shown == said + stop)
    await client.receive(end)
    await client.receive(None)
    await client.going
    assert client.shown == said + stop + end
    assert b"[DONE]" not in client.before_commit


async def test_a_stream_that_breaks_off_or_ends_early_keeps_nothing_back():
    said, stop, _ = STREAMS["chat"]
    client = Client("chat")
    await client.receive(said + stop)
    await client.receive(None)
    await client.going
    assert client.shown == said + stop

    async def broken():
        yield said + stop
        raise ConnectionError("it broke off")

    client = Client("chat")
    client.going.cancel()
    with pytest.raises(ConnectionError):
        await client.relay.forward(broken(), stream=True)
    assert client.shown == said + stop


def answer(*parts, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    return b"data: %b\n\n" % json.dumps({"candidates": [candidate]}).encode()


RUN = answer({"executableCode": {"language": "PYTHON", "code": "1"}}, finishReason="STOP")
ON = answer({"text": "It is one."})
LAST = answer({"text": "Really."}, finishReason="STOP")


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("size", [1, 7, 5000])
async def test_what_may_be_the_end_waits_for_more_or_for_the_commit(size, holds):
    """A stream of Gemini's may say twice that it has ended; only its end is the end."""
    client = Client("gemini", holds=holds)
    for said in (RUN, ON, LAST):
        for start in range(0, len(said), size):
            await client.receive(said[start : start + size])
    assert client.shown.startswith(RUN + ON)
    assert len(client.shown) < len(RUN + ON + LAST)
    assert client.before_commit is None
    await client.receive(None)
    await client.going
    assert client.shown == RUN + ON + LAST
    assert len(client.before_commit) < len(client.shown)


async def test_what_comes_after_the_first_end_does_not_wait():
    client = Client("gemini")
    await client.receive(RUN)
    assert client.shown == b""
    await client.receive(ON)
    assert client.shown == RUN + ON
    await client.receive(None)
    await client.going
    assert client.shown == RUN + ON


async def test_a_stream_that_stays_open_behind_its_end_keeps_nothing_back_for_long(monkeypatch):
    monkeypatch.setattr(module, "HOLD_TIME", 0.0)
    client = Client("gemini")
    await client.receive(RUN)
    await eventually(lambda: client.shown == RUN)
    await client.receive(LAST)
    await client.receive(None)
    await client.going
    assert client.shown == RUN + LAST
