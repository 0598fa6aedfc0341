"""Clients for a benchmark: raw sockets, keep-alive, one request after the other on each."""

import asyncio
import random
import time
from collections.abc import Callable

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


async def load(port: int, asked: Asked, count: int, clients: int) -> tuple[float, list[float]]:
    """Requests per second, and times to the first byte."""
    firsts: list[float] = []
    numbers = iter(range(count))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        for number in numbers:
            text = asked if isinstance(asked, bytes) else asked(number)
            firsts.append(await ask(reader, writer, text))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return count / (time.perf_counter() - start), firsts


async def unhurried(port: int, asked: Asked, count: int, clients: int, rate: float) -> None:
    """The same by clients that pause between requests: so many requests a second by all of them."""
    pauses = random.Random(7)
    numbers = iter(range(count))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        await asyncio.sleep(pauses.random() * clients / rate)
        for number in numbers:
            text = asked if isinstance(asked, bytes) else asked(number)
            start = time.perf_counter()
            await ask(reader, writer, text)
            pause = pauses.uniform(0.5, 1.5) * clients / rate
            await asyncio.sleep(pause - (time.perf_counter() - start))
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
