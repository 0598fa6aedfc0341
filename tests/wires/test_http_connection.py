"""How long an upstream may take: to be there, to begin its answer, and between two pieces of it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound, WireTimeouts
from thoughtline.wires.http import HttpWire
from thoughtline.wires.http_connection import LARGE_READ, MAX_BUFFERED, HttpConnection
from wires.http_servers import taken

ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"  # ends with its connection
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


@asynccontextmanager
async def upstream(*pieces, clock=None):
    """Answers with these pieces; a number is how many seconds pass by the clock of the loop."""
    serving = []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                if isinstance(piece, bytes):
                    writer.write(piece)
                else:
                    await taken(writer)
                    await clock.advance(piece)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wire = HttpWire()
    try:
        yield wire, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        await wire.close()
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def fetch(wire, url, **timeouts):
    outbound = Outbound(method="GET", url=url, headers=[], timeouts=WireTimeouts(**timeouts))
    async with wire.send(outbound) as inbound:
        return b"".join([chunk async for chunk in inbound.chunks()])


async def test_a_patient_wire_waits(loop_clock):
    pieces = (0.1, HEAD, 0.1, b"ab", 0.1, b"cd")
    async with upstream(*pieces, clock=loop_clock) as (wire, url):
        assert await fetch(wire, url) == b"abcd"


async def test_news_before_an_answer_is_not_its_beginning(loop_clock):
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with upstream(early, 0.5, HEAD, b"abcd", clock=loop_clock) as (wire, url):
        assert await fetch(wire, url, idle=0.2) == b"abcd"


async def test_an_answer_that_does_not_begin(loop_clock):
    async with upstream(0.3, HEAD, clock=loop_clock) as (wire, url):
        with pytest.raises(WireError, match="timed out"):
            await fetch(wire, url, first_byte=0.2)


@pytest.mark.parametrize(
    "pieces",
    [(HEAD, 0.3, b"abcd"), (HEAD + b"ab", 0.3, b"cd"), (ENDLESS + b"ab", 0.3, b"cd")],
)
async def test_an_answer_that_stalls(pieces, loop_clock):
    async with upstream(*pieces, clock=loop_clock) as (wire, url):
        with pytest.raises(WireError, match="stalled"):
            await fetch(wire, url, first_byte=60.0, idle=0.2)


async def test_a_long_thought_before_a_lively_answer(loop_clock):
    async with upstream(0.4, HEAD, b"abcd", clock=loop_clock) as (wire, url):
        assert await fetch(wire, url, first_byte=5.0, idle=0.2) == b"abcd"


class _Hose:
    """A server whose answer has trailers without end; counts what it could send."""

    def __init__(self, piece):
        self.piece, self.sent = piece, 0

    async def __call__(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-a: b")
        try:
            while self.sent < 64 << 20:
                writer.write(self.piece)
                await writer.drain()
                self.sent += len(self.piece)
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.mark.parametrize("piece", [b"\r\nx-b: c" * 1000, b"a" * 10_000])
async def test_trailers_without_end_break_the_answer_off(piece):
    hose = _Hose(piece)
    server = await asyncio.start_server(hose, "127.0.0.1", 0)
    wire = HttpWire()
    try:
        with pytest.raises(WireError, match="trailers"):
            await fetch(wire, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    finally:
        await wire.close()
        server.close()
    assert hose.sent < 32 << 20


async def test_trailers_with_an_end_are_no_trouble(loop_clock):
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = (chunked, b"1\r\nx\r\n0\r\n", 0.05, b"x-a: b\r\n\r\n")
    async with upstream(*pieces, clock=loop_clock) as (wire, url):
        assert await fetch(wire, url) == b"x"


@pytest.mark.parametrize("status", [600, 799, 999])
async def test_a_status_of_an_upstreams_own_is_its_status(status):
    head = HEAD.replace(b"200 OK", b"%d Odd" % status)
    async with (
        upstream(head, b"abcd") as (wire, url),
        wire.send(Outbound(method="GET", url=url, headers=[])) as inbound,
    ):
        assert inbound.status == status


async def test_an_upstream_that_sends_fast_does_not_have_the_loop_for_itself():
    """uvloop reads a socket up to 32 times before anybody else has a turn."""
    reading = []

    class Transport(asyncio.Transport):
        def pause_reading(self):
            reading.append(False)

        def resume_reading(self):
            reading.append(True)

        def is_closing(self):
            return False

        def write(self, data):
            pass

    connection = HttpConnection(asyncio.get_running_loop())
    connection.connection_made(Transport())
    timeouts = WireTimeouts()
    asking = asyncio.ensure_future(connection.request(b"", b"", timeouts, head_only=False))
    await asyncio.sleep(0)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n"
    connection.data_received(head + b"x" * 1000)
    assert reading == []
    await asking
    for _ in range(2):
        connection.data_received(b"x" * LARGE_READ)
    assert reading == [False]
    await asyncio.sleep(0)
    assert reading == [False, True]
    for _ in range(1 + MAX_BUFFERED // LARGE_READ):
        connection.data_received(b"x" * LARGE_READ)
    await asyncio.sleep(0)
    assert reading[-1] is False, "what nobody reads is not read on"
    connection.connection_lost(None)
