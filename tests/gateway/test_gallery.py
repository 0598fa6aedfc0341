"""The gallery: the end of a response waits for the ledger, in whatever pieces it comes."""

import asyncio
import json
import zlib

import pytest

from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.gateway.gallery import Gallery
from thoughtline.parts import Origin

LONG = "x" * 300
ENDS = {
    "chat": b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n',
    "responses": b"event: response.completed\ndata: "
    + json.dumps(
        {
            "type": "response.completed",
            "response": {"id": "r", "status": "completed", "instructions": LONG, "output": []},
        }
    ).encode()
    + b"\n\n",
    "messages": b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    "gemini": b"data: "
    + json.dumps(
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}
            ],
            "usageMetadata": {"note": LONG},
        }
    ).encode()
    + b"\n\n",
}


class Watched:
    """An exchange that keeps what it was fed."""

    def __init__(self, dialect):
        self.dialect = DIALECTS[dialect]
        self.reader = self.dialect.reader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        self.fed = b""

    @property
    def done(self):
        return self.reader.done

    def feed(self, data):
        self.fed += data
        self.reader.feed(data)


async def pieces(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 40, 128, 5000])
@pytest.mark.parametrize("dialect", ENDS)
async def test_the_last_bytes_wait_for_the_ledger_however_they_are_cut(dialect, size, packed):
    said = ENDS[dialect]
    shown, order = b"", []

    async def send(message):
        nonlocal shown
        shown += message["body"]
        order.append(len(shown))

    async def commit():
        order.append("committed")

    sent, encoding = said, ""
    if packed:
        pack = zlib.compressobj(wbits=31)
        sent, encoding = pack.compress(said) + pack.flush(zlib.Z_SYNC_FLUSH), "gzip"
    gallery = Gallery(send, Watched(dialect), commit, encoding)
    await gallery.show(pieces(sent, size), stream=True)
    assert shown == sent
    assert order.index("committed") < order.index(len(sent))


async def test_a_client_that_leaves_makes_no_hole_in_the_record():
    stuck = asyncio.Event()

    async def send(message):
        stuck.set()
        await asyncio.Event().wait()

    async def commit():
        raise AssertionError("nothing is complete")

    exchange = Watched("chat")
    gallery = Gallery(send, exchange, commit)
    first = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    showing = asyncio.ensure_future(gallery.show(pieces(first, 1000), stream=True))
    await stuck.wait()
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await showing
    assert exchange.fed == first


async def test_a_client_that_leaves_a_whole_answer_makes_no_hole_either():
    stuck = asyncio.Event()

    async def send(message):
        stuck.set()
        await asyncio.Event().wait()

    exchange = Watched("chat")
    gallery = Gallery(send, exchange, stuck.wait)
    showing = asyncio.ensure_future(gallery.show(pieces(b"abcd", 2), stream=False))
    await stuck.wait()
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await showing
    assert exchange.fed == b"abcd"


class Quiet:
    """A stream that speaks when it is told to."""

    def __init__(self, encoding=""):
        self.shown = b""
        self.said = asyncio.Queue()
        self.gallery = Gallery(self.send, Watched("chat"), self.commit, encoding)

    async def send(self, message):
        self.shown += message["body"]

    async def commit(self):
        pass

    async def chunks(self):
        while (chunk := await self.said.get()) is not None:
            yield chunk

    async def say(self, chunk):
        self.said.put_nowait(chunk)
        while not self.shown.endswith(chunk):
            await asyncio.sleep(0)

    async def run(self, *steps):
        showing = asyncio.ensure_future(self.gallery.show(self.chunks(), stream=True))
        self.gallery.keep_alive(1e-9)
        for step in steps:
            await step()
        self.said.put_nowait(None)
        await showing
        self.gallery.stop()
        return self.shown


async def test_a_ping_never_stands_inside_of_an_event():
    """The timer is due in the very moment in which half an event comes."""
    quiet = Quiet()

    async def at_once():
        await quiet.say(b"data: {}\n\n")
        quiet.gallery._timer.cancel()
        quiet.said.put_nowait(b'data: {"half":')  # the walk writes it as soon as it is its turn
        quiet.gallery._last = 0.0
        quiet.gallery._tick()
        quiet.gallery._timer.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        quiet.said.put_nowait(b"1}\n\n")

    assert b'data: {"half":1}\n\n' in await quiet.run(at_once)


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_nothing_of_ours_stands_in_a_packed_stream(encoding):
    quiet = Quiet(encoding)

    async def wait():
        for _ in range(20):
            await asyncio.sleep(0.001)

    assert await quiet.run(wait) == b""


async def test_events_that_end_in_the_other_way_are_events():
    quiet = Quiet()

    async def speak():
        await quiet.say(b"data: {}\r\n\r\n")
        before = quiet.shown.count(b"keep-alive")
        async with asyncio.timeout(5):
            while quiet.shown.count(b"keep-alive") == before:
                await asyncio.sleep(0.001)

    await quiet.run(speak)
