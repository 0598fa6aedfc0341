"""What the gateway costs beside nginx and LiteLLM's proxy: processor time, rate, delay, memory.

All processes on this machine, over loopback, in one run. Machines are noisy, from minute to minute
by a factor of two: so they take turns, round by round. A figure is the best of its rounds, a ratio
the median of what the rounds say. Processor time is that of the measured process tree, kernel
included.

    python -m benchmarks.gateway            a table
    python -m benchmarks.gateway --docs     the same, written into docs/
"""

import asyncio
import contextlib
import itertools
import json
import statistics
import sys
from collections.abc import Sequence

from benchmarks import plots
from benchmarks.loads import Asked, ask, load, request
from benchmarks.replay import history
from benchmarks.stands import Stand, cpu, entry, gateway, litellm, nginx, process

ROUNDS = 5
COUNTS = {"nginx": 4000, "thoughtline": 2000, "LiteLLM": 200}
"""Small requests to each of them, in each round."""
STREAMS = {"LiteLLM": 10}
"""Streams at once; the others can take fifty."""

Figures = dict[str, float]
Round = dict[str, Figures]
"""Figures by server."""

DOCUMENT = {
    "model": "deepseek-v4-pro",
    "messages": [
        {"role": "system", "content": "Be brief. " * 40},
        {"role": "user", "content": "Please mend the file a.txt. " * 10},
    ],
    "tools": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
}
SMALL = json.dumps(DOCUMENT).encode()

REQUEST = "processor time per small request"
RATE = "small requests per second"
FIRST = "added time to the first token, median"
CHUNK = "processor time per streamed chunk"
STREAM = "memory per open stream"
LONG = "processor time, 300 messages with 130 thoughts put back"
BARS = {REQUEST: 400.0, FIRST: 1000.0, CHUNK: 70.0, STREAM: 100.0, LONG: 10.0}
UNITS = {REQUEST: "µs", RATE: "1/s", FIRST: "µs", CHUNK: "µs", STREAM: "KB", LONG: "ms"}


# -- small requests ------------------------------------------------------------------------------

_serial = itertools.count(1)


def second_turns(path: str) -> Asked:
    """Second requests of conversations whose first answer was seen: one thought goes back."""
    messages = [
        *DOCUMENT["messages"],
        {"role": "assistant", "content": "All done, the file is mended."},
    ]

    def asked(_: int) -> bytes:
        number = next(_serial)
        more = [*messages, {"role": "user", "content": f"And now the file {number}.txt."}]
        body = json.dumps({**DOCUMENT, "messages": more}).encode()
        return request(path, body, f"x-say: {number}")

    return asked


def small(stand: Stand, asked: Asked, count: int) -> Figures:
    """Processor time and rate of requests with a history of one turn, sixteen at a time."""
    before = cpu(stand.pid)
    rate, _ = asyncio.run(load(stand.port, asked, count, 16))
    return {REQUEST: (cpu(stand.pid) - before) / count * 1e6, RATE: rate}


# -- streams -------------------------------------------------------------------------------------


def streamed(path: str, chunks: int, seconds: float) -> bytes:
    """A request for a stream with this pace."""
    return request(path, SMALL[:-1] + b',"stream":true}', f"x-pace: {chunks}/{seconds}")


def first(port: int, path: str) -> float:
    """Microseconds to the first token, for a single client."""
    return statistics.median(asyncio.run(load(port, streamed(path, 3, 0.001), 100, 1))[1]) * 1e6


def streams(stand: Stand, count: int, chunks: int = 100) -> Figures:
    """Streams of fifty chunks a second: processor time per chunk, memory per stream."""
    grown = 0.0

    async def run() -> None:
        nonlocal grown
        rest = entry(stand.pid)
        asked = streamed(stand.path, chunks, 0.02)
        work = asyncio.ensure_future(load(stand.port, asked, count, count))
        await asyncio.sleep(1.0)
        grown = max(0.0, entry(stand.pid) - rest)
        await work

    before = cpu(stand.pid)
    asyncio.run(run())
    used = (cpu(stand.pid) - before) / (count * chunks) * 1e6
    return {CHUNK: used, STREAM: grown / count / 1024}


# -- a long conversation -------------------------------------------------------------------------


def conversation(stand: Stand) -> bytes:
    """A request with the long history; the gateway has captured its 130 thoughts."""
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


def long(stand: Stand, asked: bytes) -> Figures:
    """Processor time of the long history."""
    before = cpu(stand.pid)
    asyncio.run(load(stand.port, asked, 40, 2))
    return {LONG: (cpu(stand.pid) - before) / 40 * 1e3}


# -- measure ------------------------------------------------------------------------------------


def measure() -> tuple[Round, Figures]:
    """Figures by server, and the ratio of the gateway's cost to nginx's."""
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(process(sys.executable, "-m", "benchmarks.upstream"))
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        servers = {"nginx": nginx, "thoughtline": gateway, "LiteLLM": litellm}
        found = {who: stack.enter_context(start(upstream)) for who, start in servers.items()}
        stands = {who: stand for who, stand in found.items() if stand is not None}
        asked = {who: second_turns(stand.path) for who, stand in stands.items()}
        for who, stand in stands.items():
            first(stand.port, stand.path)
            asyncio.run(load(stand.port, request(stand.path, SMALL), 1, 1))  # what is replayed
            small(stand, asked[who], COUNTS[who] // 10)
        long_history = conversation(stands["thoughtline"])
        rounds: list[Round] = []
        for _ in range(ROUNDS):
            floor = first(upstream, "/v1/chat/completions")
            figures = {who: _round(who, stands[who], asked[who], floor) for who in stands}
            figures["thoughtline"] |= long(stands["thoughtline"], long_history)
            rounds.append(figures)
    return _best(rounds), _ratios(rounds)


def _round(who: str, stand: Stand, asked: Asked, floor: float) -> Figures:
    return {
        **small(stand, asked, COUNTS[who]),
        FIRST: first(stand.port, stand.path) - floor,
        **streams(stand, STREAMS.get(who, 50)),
    }


def _best(rounds: Sequence[Round]) -> Round:
    most = {RATE, STREAM}  # memory that a round took is there for the next
    return {
        who: {
            what: (max if what in most else min)(made[who][what] for made in rounds)
            for what in figures
        }
        for who, figures in rounds[0].items()
    }


def _ratios(rounds: Sequence[Round]) -> Figures:
    """The gateway's cost over nginx's in the same round, where both have it."""
    if "nginx" not in rounds[0]:
        return {}
    return {
        what: statistics.median(made["thoughtline"][what] / made["nginx"][what] for made in rounds)
        for what in (REQUEST, CHUNK)
    }


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    figures, ratios = measure()
    rows = [
        (f"{who}: {what}" + (f" (bar {BARS[what]:g})" if what in BARS else ""), figure, UNITS[what])
        for who, made in figures.items()
        for what, figure in made.items()
    ]
    return [*rows, *((f"thoughtline: {what}", ratio, "× nginx") for what, ratio in ratios.items())]


if __name__ == "__main__":
    measured = plots.Measured(*measure(), BARS, UNITS)
    print(plots.table(measured))
    if "--docs" in sys.argv:
        plots.write(measured)
