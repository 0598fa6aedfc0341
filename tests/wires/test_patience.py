"""How long an upstream may take: to be there, to begin its answer, and between two pieces of it."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound, Patience
from thoughtline.wires.http import HttpWire

ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"  # ends with its connection
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


@asynccontextmanager
async def upstream(*pieces):
    """Answers with these pieces; a number is a pause."""
    serving = []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                if isinstance(piece, bytes):
                    writer.write(piece)
                else:
                    await asyncio.sleep(piece)
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


async def fetch(wire, url, **patience):
    outbound = Outbound(method="GET", url=url, headers=[], patience=Patience(**patience))
    async with wire.send(outbound) as inbound:
        return b"".join([chunk async for chunk in inbound.chunks()])


async def test_a_patient_wire_waits():
    async with upstream(0.1, HEAD, 0.1, b"ab", 0.1, b"cd") as (wire, url):
        assert await fetch(wire, url) == b"abcd"


async def test_news_before_an_answer_is_not_its_beginning():
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with upstream(early, 0.5, HEAD, b"abcd") as (wire, url):
        assert await fetch(wire, url, idle=0.2) == b"abcd"


async def test_an_answer_that_does_not_begin():
    async with upstream(5.0, HEAD) as (wire, url):
        began = time.monotonic()
        with pytest.raises(WireError, match="timed out"):
            await fetch(wire, url, first_byte=0.2)
        assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "pieces",
    [(HEAD, 5.0, b"abcd"), (HEAD + b"ab", 5.0, b"cd"), (ENDLESS + b"ab", 5.0, b"cd")],
)
async def test_an_answer_that_stalls(pieces):
    async with upstream(*pieces) as (wire, url):
        began = time.monotonic()
        with pytest.raises(WireError, match="stalled"):
            await fetch(wire, url, first_byte=60.0, idle=0.2)
        assert time.monotonic() - began < 3


async def test_a_long_thought_before_a_lively_answer():
    async with upstream(0.4, HEAD, b"abcd") as (wire, url):
        assert await fetch(wire, url, first_byte=5.0, idle=0.2) == b"abcd"
