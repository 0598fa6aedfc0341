"""What is measured of a server: requests, streams, a long history; each gives some figures."""

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from functools import cache

from benchmarks.conversations import begin, streamed
from benchmarks.growing import GROWTHS, Growth
from benchmarks.loads import ask, connected, load, load_on, request, unhurried
from benchmarks.replay import history
from benchmarks.stands import Stand, cpu, entry

Figures = dict[str, float]
"""Figures by what they are of."""

REQUEST = "processor time per small request, 16 clients in a hurry"
RATE = "small requests per second"
ONE = "the same, one client in a hurry"
UNHURRIED = "the same, 16 clients that pause"
ALONE = "the same, one client that pauses"
FIRST = "added time to the first token, median"
CHUNK = "processor time per streamed chunk"
STREAM = "memory per open stream"
LONG = "processor time, 300 messages with 130 thoughts put back"


def grown(growth: Growth) -> str:
    """What the figure of a growing conversation is of."""
    return f"processor time at {growth.messages} messages of a growing conversation"


UNITS = {
    REQUEST: "µs",
    ONE: "µs",
    UNHURRIED: "µs",
    ALONE: "µs",
    RATE: "1/s",
    FIRST: "µs",
    CHUNK: "µs",
    STREAM: "KB",
    **{grown(growth): "ms" for growth in GROWTHS},
    LONG: "ms",
}
BARS = {REQUEST: 400.0, FIRST: 500.0, CHUNK: 70.0, STREAM: 20.0, LONG: 2.5}


Measure = Callable[[Stand], Figures]


# -- small requests ------------------------------------------------------------------------------

BATCH = 64
"""Conversations that are begun together: a turn is recent when its conversation goes on."""


def small(stand: Stand) -> Figures:
    """Second requests, sixteen at a time and one at a time, as many as there can be."""
    count = 192 if stand.slow else 1920
    used, seconds = asyncio.run(_second_requests(stand, count, 16))
    used_by_one, _ = asyncio.run(_second_requests(stand, count // 4, 1))
    return {REQUEST: used * 1e6, ONE: used_by_one * 1e6, RATE: 1 / seconds}


def small_unhurried(stand: Stand) -> Figures:
    """The same of clients that do not saturate the server: sixteen, and a single one."""
    count, rate, rate_of_one = (64, 20.0, 20.0) if stand.slow else (640, 300.0, 75.0)
    used, _ = asyncio.run(_second_requests(stand, count, 16, rate))
    used_by_one, _ = asyncio.run(_second_requests(stand, count // 4, 1, rate_of_one))
    return {UNHURRIED: used * 1e6, ALONE: used_by_one * 1e6}


async def _second_requests(
    stand: Stand, count: int, clients: int, rate: float = 0.0
) -> tuple[float, float]:
    """Seconds of processor time, and on the clock, of a second request of a new conversation."""
    used, passed, size = 0.0, 0.0, min(BATCH, count)
    async with connected(stand.port, clients) as connections:
        for _ in range(count // size):
            asked = await begin(stand, connections, size)
            before, start = cpu(stand.pid), time.perf_counter()
            if rate:
                await unhurried(connections, asked, size, rate)
            else:
                await load_on(connections, asked, size)
            used += cpu(stand.pid) - before
            passed += time.perf_counter() - start
    made = count // size * size
    return used / made, passed / made


# -- streams -------------------------------------------------------------------------------------


def first_token(stand: Stand) -> Figures:
    """Microseconds to the first token, for a single client."""
    asked = streamed(stand, 3, 0.001)
    times = asyncio.run(load(stand.port, asked, 20 if stand.slow else 100, 1))[1]
    return {FIRST: statistics.median(times) * 1e6}


def streams(stand: Stand) -> Figures:
    """Streams of fifty chunks a second: processor time per chunk, memory per stream."""
    count, chunks = 10 if stand.slow else 50, 100
    size = 0.0

    async def run() -> None:
        nonlocal size
        rest = entry(stand.pid)
        work = asyncio.ensure_future(load(stand.port, streamed(stand, chunks, 0.02), count, count))
        await asyncio.sleep(1.0)
        size = max(0.0, entry(stand.pid) - rest)
        await work

    before = cpu(stand.pid)
    asyncio.run(run())
    used = (cpu(stand.pid) - before) / (count * chunks) * 1e6
    return {CHUNK: used, STREAM: size / count / 1024}


# -- a long conversation -------------------------------------------------------------------------


@cache
def conversation(stand: Stand) -> bytes:
    """A request with the long history; the server has seen its 130 answers with their thoughts."""
    document = json.loads(history())
    document.pop("stream")
    # Every assistant message becomes the very answer that this upstream gives, so that it is known.
    answer = {"role": "assistant", "content": "All done, the file is mended."}
    messages = []
    for message in document["messages"]:
        if message["role"] == "tool":
            messages.append({"role": "user", "content": message["content"]})
        elif message["role"] == "assistant":
            messages.append(answer)
        else:
            messages.append(message)

    async def teach() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", stand.port, limit=1 << 22)
        for end, message in enumerate(messages):
            if message is answer:
                body = json.dumps({**document, "messages": messages[:end]}).encode()
                await ask(reader, writer, request(stand.path, body))
        writer.close()

    asyncio.run(teach())
    return request(stand.path, json.dumps({**document, "messages": messages}).encode())


def long(stand: Stand) -> Figures:
    """The long history, asked again and again."""
    if stand.slow:
        return {}
    asked = conversation(stand)
    before = cpu(stand.pid)
    asyncio.run(load(stand.port, asked, 40, 2))
    return {LONG: (cpu(stand.pid) - before) / 40 * 1e3}


MEASURES: dict[str, Measure] = {
    "small": small,
    "unhurried": small_unhurried,
    "first": first_token,
    "chunk": streams,
    "long": long,
}
"""Each by its name on the command line."""
