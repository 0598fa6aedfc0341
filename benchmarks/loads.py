"""Clients for a benchmark: raw sockets, keep-alive, one request after the other on each."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Asked = bytes | Callable[[int], bytes]
"""A request as it stands on the wire; or one for each number, where no two are alike."""


def request(path: str, body: bytes, *headers: str) -> bytes:
    """A POST, ready to be written."""
    lines = [
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        "authorization: Bearer k",
        "content-type: application/json",
    ]
    return "\r\n".join([*lines, f"content-length: {len(body)}", *headers, "", ""]).encode() + body


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes) -> float:
    """One request, to the end of its answer; seconds until the first byte of the body."""
    start = time.perf_counter()
    writer.write(asked)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    lower = head.lower()
    if b"content-length:" in lower:
        size = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(1)
        first = time.perf_counter() - start
        await reader.readexactly(size - 1)
        return first
    line = await reader.readline()
    first = time.perf_counter() - start
    while size := int(line.strip(), 16):
        await reader.readexactly(size + 2)
        line = await reader.readline()
    await reader.readline()
    return first


@asynccontextmanager
async def connected(port: int, clients: int) -> AsyncIterator[list[Connection]]:
    """So many open connections."""
    made = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 22) for _ in range(clients)]
    try:
        yield made
    finally:
        for _, writer in made:
            writer.close()


async def load(port: int, asked: Asked, count: int, clients: int) -> tuple[float, list[float]]:
    """Requests per second, and times to the first byte."""
    async with connected(port, clients) as connections:
        return await load_on(connections, asked, count)


async def load_on(
    connections: Sequence[Connection], asked: Asked, count: int
) -> tuple[float, list[float]]:
    """The same of clients that are connected."""
    firsts: list[float] = []
    numbers = iter(range(count))

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in numbers:
            text = asked if isinstance(asked, bytes) else asked(number)
            firsts.append(await ask(reader, writer, text))

    start = time.perf_counter()
    await asyncio.gather(*(client(*connection) for connection in connections))
    return count / (time.perf_counter() - start), firsts


async def unhurried(
    connections: Sequence[Connection], asked: Asked, count: int, rate: float
) -> None:
    """The same by clients that pause between requests: so many requests a second by all of them."""
    pauses = random.Random(7)
    numbers = iter(range(count))
    average = len(connections) / rate

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(pauses.random() * average)
        for number in numbers:
            text = asked if isinstance(asked, bytes) else asked(number)
            start = time.perf_counter()
            await ask(reader, writer, text)
            pause = pauses.uniform(0.5, 1.5) * average
            await asyncio.sleep(pause - (time.perf_counter() - start))

    await asyncio.gather(*(client(*connection) for connection in connections))
