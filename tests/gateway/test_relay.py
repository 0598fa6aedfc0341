"""The relay: the end of a response waits for the commit, in whatever pieces it comes."""

import asyncio
import json
import zlib

import pytest

from support.waiting import eventually
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.sse import SseParser
from thoughtline.gateway.relay import Relay
from thoughtline.log.parts import Origin

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
    """A recording that keeps what it was fed."""

    has_late = False

    def __init__(self, dialect):
        self.dialect = DIALECTS[dialect]
        self.reader = self.dialect.reader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        self.fed = b""

    @property
    def done(self):
        return self.reader.done

    @property
    def opening(self):
        return self.reader.opening

    def feed(self, data):
        self.fed += data
        self.reader.feed(data)

    feed_later = feed


class Pushing:
    """A connection whose chunks are pushed: to the relay's sink, or else into its hands."""

    def __init__(self):
        self.sink, self.waiting, self.arrived = None, asyncio.Queue(), []

    def push(self, sink):
        self.sink = sink if self.waiting.empty() else None

    def receive(self, chunk):
        """What a connection does in its callback; returns whether the sink took the chunk."""
        taken = chunk is not None and self.sink is not None and self.sink(chunk)
        if not taken:
            self.sink = None
            self.waiting.put_nowait(chunk)
        return taken

    async def chunks(self):
        while (chunk := await self.waiting.get()) is not None:
            yield chunk


async def pieces(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 40, 128, 5000])
@pytest.mark.parametrize("dialect", ENDS)
async def test_the_last_bytes_wait_for_the_commit_however_they_are_cut(dialect, size, packed):
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
    relay = Relay(send, Watched(dialect), DIALECTS[dialect], commit, encoding)
    await relay.forward(pieces(sent, size), stream=True)
    assert shown == sent
    assert order.index("committed") < order.index(len(sent))


async def test_a_client_that_leaves_makes_no_hole_in_the_record():
    stuck = asyncio.Event()

    async def send(message):
        stuck.set()
        await asyncio.Event().wait()

    async def commit():
        raise AssertionError("nothing is complete")

    recording = Watched("chat")
    relay = Relay(send, recording, DIALECTS["chat"], commit)
    first = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    showing = asyncio.ensure_future(relay.forward(pieces(first, 1000), stream=True))
    await stuck.wait()
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await showing
    assert recording.fed == first


async def test_a_client_that_leaves_a_whole_answer_makes_no_hole_either():
    stuck = asyncio.Event()

    async def send(message):
        stuck.set()
        await asyncio.Event().wait()

    recording = Watched("chat")
    relay = Relay(send, recording, DIALECTS["chat"], stuck.wait)
    showing = asyncio.ensure_future(relay.forward(pieces(b"abcd", 2), stream=False))
    await stuck.wait()
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await showing
    assert recording.fed == b"abcd"


class Quiet:
    """A stream that speaks when it is told to."""

    def __init__(self, encoding="", dialect="chat"):
        self.shown = b""
        self.said = asyncio.Queue()
        self.watched = Watched(dialect)
        self.relay = Relay(self.send, self.watched, DIALECTS[dialect], self.commit, encoding)

    async def send(self, message):
        self.shown += message["body"]

    async def commit(self):
        pass

    async def chunks(self):
        while (chunk := await self.said.get()) is not None:
            yield chunk

    async def say(self, chunk):
        self.said.put_nowait(chunk)
        await eventually(lambda: self.shown.endswith(chunk))

    async def run(self, *steps):
        showing = asyncio.ensure_future(self.relay.forward(self.chunks(), stream=True))
        self.relay.keep_alive(1e-9)
        for step in steps:
            await step()
        self.said.put_nowait(None)
        await showing
        self.relay.stop()
        return self.shown


async def test_a_ping_never_stands_inside_of_an_event():
    """The timer is due in the very moment in which half an event comes."""
    quiet = Quiet()

    async def at_once():
        await quiet.say(b"data: {}\n\n")
        quiet.relay._timer.cancel()
        quiet.said.put_nowait(b'data: {"half":')  # the relay writes it as soon as it is its turn
        quiet.relay._last = 0.0
        quiet.relay._tick()
        quiet.relay._timer.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        quiet.said.put_nowait(b"1}\n\n")

    assert b'data: {"half":1}\n\n' in await quiet.run(at_once)


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_nothing_of_ours_stands_in_a_packed_stream(encoding, loop_clock):
    quiet = Quiet(encoding)

    async def wait():
        for _ in range(20):
            await loop_clock.advance(60)

    assert await quiet.run(wait) == b""


async def test_events_that_end_in_the_other_way_are_events():
    quiet = Quiet()

    async def speak():
        await quiet.say(b"data: {}\r\n\r\n")
        before = quiet.shown.count(b"keep-alive")
        await eventually(lambda: quiet.shown.count(b"keep-alive") != before)

    await quiet.run(speak)


async def test_a_response_in_progress_says_so_again():
    """Codex counts the time since the last event; a comment is none."""
    quiet = Quiet(dialect="responses")
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    created = {"type": "response.created", "sequence_number": 0, "response": response}
    added = {"type": "response.output_item.added", "sequence_number": 7, "output_index": 0}
    own = []

    async def speak():
        for event in (created, added):
            told = b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
            own.append(told)
            await quiet.say(told)
            before = quiet.shown.count(b"response.in_progress")
            await eventually(lambda n=before: quiet.shown.count(b"response.in_progress") != n)

    shown = SseParser().feed(await quiet.run(speak))
    again = [json.loads(one.data) for one in shown if one.name == "response.in_progress"]
    assert {one["sequence_number"] for one in again} == {0, 7}
    assert all(one["response"] == response for one in again)
    numbers = [json.loads(one.data)["sequence_number"] for one in shown]
    assert numbers == sorted(numbers)
    assert quiet.watched.fed == b"".join(own)  # nothing of ours is recorded


async def test_before_a_response_has_begun_a_comment_has_to_do():
    quiet = Quiet(dialect="responses")

    async def wait():
        await eventually(lambda: b": keep-alive" in quiet.shown)

    await quiet.run(wait)


FIRST = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
LAST = b"data: [DONE]\n\n"


class Pushed:
    """A relay between a connection that pushes and a client that can be written to at once."""

    def __init__(self):
        self.shown, self.committed, self.slow = [], False, False
        self.connection, self.watched = Pushing(), Watched("chat")
        self.relay = Relay(
            self.send,
            self.watched,
            DIALECTS["chat"],
            self.commit,
            push=self.connection.push,
            write_now=self.write_now,
        )

    def write_now(self, chunk):
        if not self.slow:
            self.shown.append(("at once", chunk))
        return not self.slow

    async def send(self, message):
        self.slow = False
        self.shown.append(("sent", message["body"]))

    async def commit(self):
        self.committed = True
        self.shown.append("committed")

    async def start(self):
        showing = asyncio.ensure_future(self.relay.forward(self.connection.chunks(), stream=True))
        await asyncio.sleep(0)
        return showing

    async def pulled(self):
        await eventually(lambda: self.connection.sink is not None)


async def test_a_chunk_is_forwarded_in_the_callback_in_which_it_came_and_the_end_waits():
    pushed = Pushed()
    showing = await pushed.start()
    assert pushed.connection.receive(FIRST)  # nothing was awaited since
    assert pushed.shown == [("at once", FIRST)]
    assert not pushed.connection.receive(LAST)
    pushed.connection.receive(None)
    await showing
    assert pushed.shown[1:] == ["committed", ("sent", LAST), ("sent", b"")]
    assert pushed.watched.fed == FIRST + LAST


async def test_an_end_that_is_cut_over_pushed_chunks_waits_too():
    pushed = Pushed()
    showing = await pushed.start()
    assert pushed.connection.receive(LAST[:9])
    for cut in (LAST[9:11], LAST[11:]):
        pushed.connection.receive(cut)
    pushed.connection.receive(None)
    await showing
    assert pushed.shown.index("committed") < pushed.shown.index(("sent", LAST[11:]))
    assert pushed.watched.fed == LAST


async def test_a_slow_client_is_waited_for_and_nothing_overtakes():
    pushed = Pushed()
    showing = await pushed.start()
    pushed.slow = True
    assert not pushed.connection.receive(FIRST)
    assert not pushed.connection.receive(FIRST[:20])  # while the first one waits
    await pushed.pulled()
    assert pushed.connection.receive(FIRST[20:])
    assert pushed.shown == [("sent", FIRST), ("sent", FIRST[:20]), ("at once", FIRST[20:])]
    pushed.connection.receive(None)
    await showing
    assert pushed.watched.fed == FIRST * 2


async def test_after_the_end_nothing_is_pushed():
    pushed = Pushed()
    showing = await pushed.start()
    pushed.relay.stop()
    assert not pushed.connection.receive(FIRST)
    showing.cancel()
    await asyncio.gather(showing, return_exceptions=True)
