"""What is measured of a server: requests, streams, a long history; each gives some figures."""

import asyncio
import itertools
import json
import statistics
from collections.abc import Callable
from functools import cache

from benchmarks.growing import GROWTHS, Growth
from benchmarks.loads import Asked, ask, load, request, unhurried
from benchmarks.replay import history
from benchmarks.stands import Stand, cpu, entry

Figures = dict[str, float]
"""Figures by what they are of."""

DOCUMENT = {
    "model": "deepseek-v4-pro",
    "messages": [
        {"role": "system", "content": "Be brief. " * 40},
        {"role": "user", "content": "Please mend the file a.txt. " * 10},
    ],
    "tools": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
}
SMALL = json.dumps(DOCUMENT).encode()

REQUEST = "processor time per small request, 16 clients in a hurry"
RATE = "small requests per second"
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

_serial = itertools.count(1)


def second_turns(stand: Stand) -> Asked:
    """Second requests of conversations whose first answer was seen: one thought goes back."""
    messages = [
        *DOCUMENT["messages"],
        {"role": "assistant", "content": "All done, the file is mended."},
    ]

    def asked(_: int) -> bytes:
        number = next(_serial)
        more = [*messages, {"role": "user", "content": f"And now the file {number}.txt."}]
        body = json.dumps({**DOCUMENT, "messages": more}).encode()
        return request(stand.path, body, *stand.headers)

    return asked


def small(stand: Stand) -> Figures:
    """Requests with a history of one turn, sixteen at a time, as many as there can be."""
    count = 200 if stand.slow else 2000
    before = cpu(stand.pid)
    rate, _ = asyncio.run(load(stand.port, second_turns(stand), count, 16))
    return {REQUEST: (cpu(stand.pid) - before) / count * 1e6, RATE: rate}


def small_unhurried(stand: Stand) -> Figures:
    """The same of clients that do not saturate the server: sixteen, and a single one."""
    return {
        UNHURRIED: _paused(stand, *((60, 16, 20.0) if stand.slow else (600, 16, 300.0))),
        ALONE: _paused(stand, *((30, 1, 20.0) if stand.slow else (150, 1, 75.0))),
    }


def _paused(stand: Stand, count: int, clients: int, rate: float) -> float:
    before = cpu(stand.pid)
    asyncio.run(unhurried(stand.port, second_turns(stand), count, clients, rate))
    return (cpu(stand.pid) - before) / count * 1e6


def warm_up(stand: Stand) -> None:
    """Let a server see what is replayed, and do its work for a while."""
    asked = request(stand.path, SMALL, *stand.headers)
    asyncio.run(load(stand.port, asked, 1, 1))
    asyncio.run(load(stand.port, second_turns(stand), 20 if stand.slow else 300, 16))


# -- streams -------------------------------------------------------------------------------------


def streamed(stand: Stand, chunks: int, seconds: float) -> bytes:
    """A request for a stream with this pace."""
    body = SMALL[:-1] + b',"stream":true}'
    return request(stand.path, body, f"x-pace: {chunks}/{seconds}", *stand.headers)


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
