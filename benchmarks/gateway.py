"""What the gateway costs beside nginx and LiteLLM's proxy: processor time, rate, delay, memory.

All processes on this machine, over loopback, in one run; machines are noisy, so each figure is the
best of a few rounds. Processor time is that of the measured process tree, kernel included.

    python -m benchmarks.gateway            a table
    python -m benchmarks.gateway --docs     the same, written into docs/
"""

import asyncio
import itertools
import json
import statistics
import sys
from collections.abc import Callable

from benchmarks import plots
from benchmarks.loads import Asked, ask, load, request
from benchmarks.replay import history
from benchmarks.stands import Stand, cpu, gateway, litellm, memory, nginx, process

ROUNDS = 3
Figures = dict[str, float]

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


def best(measure: Callable[[], float], rounds: int = ROUNDS) -> float:
    """The lowest of a few."""
    return min(measure() for _ in range(rounds))


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


def small(stand: Stand, count: int) -> Figures:
    """Processor time and rate of requests with a history of one turn, sixteen at a time."""
    asyncio.run(load(stand.port, request(stand.path, SMALL), 1, 1))  # the turn that is replayed
    asked = second_turns(stand.path)
    asyncio.run(load(stand.port, asked, max(16, count // 10), 16))
    rates: list[float] = []

    def once() -> float:
        before = cpu(stand.pid)
        rates.append(asyncio.run(load(stand.port, asked, count, 16))[0])
        return (cpu(stand.pid) - before) / count * 1e6

    used = best(once)
    return {REQUEST: used, RATE: max(rates)}


# -- streams -------------------------------------------------------------------------------------


def streamed(path: str, chunks: int, seconds: float) -> bytes:
    """A request for a stream with this pace."""
    return request(path, SMALL[:-1] + b',"stream":true}', f"x-pace: {chunks}/{seconds}")


def first(port: int, path: str) -> float:
    """Microseconds to the first token, for a single client."""
    asked = streamed(path, 3, 0.001)
    asyncio.run(load(port, asked, 20, 1))
    once = lambda: statistics.median(asyncio.run(load(port, asked, 100, 1))[1])  # noqa: E731
    return best(once) * 1e6


def streams(stand: Stand, count: int = 50, chunks: int = 100) -> Figures:
    """Fifty streams of fifty chunks a second: processor time per chunk, memory per stream."""
    asked = streamed(stand.path, chunks, 0.02)
    asyncio.run(load(stand.port, asked, 10, 10))
    peaks: list[float] = []

    async def run() -> None:
        rest = memory(stand.pid)
        work = asyncio.ensure_future(load(stand.port, asked, count, count))
        await asyncio.sleep(1.0)
        peaks.append(memory(stand.pid) - rest)
        await work

    def once() -> float:
        before = cpu(stand.pid)
        asyncio.run(run())
        return (cpu(stand.pid) - before) / (count * chunks) * 1e6

    return {CHUNK: best(once), STREAM: max(0.0, peaks[0]) / count / 1024}


# -- a long conversation -------------------------------------------------------------------------


def conversation(stand: Stand) -> Figures:
    """The long history, whose 130 thoughts the gateway knows because it saw each of them made."""
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
    asked = request(stand.path, json.dumps({**document, "messages": messages}).encode())

    def once() -> float:
        before = cpu(stand.pid)
        asyncio.run(load(stand.port, asked, 40, 2))
        return (cpu(stand.pid) - before) / 40 * 1e3

    return {LONG: best(once)}


# -- all of it -----------------------------------------------------------------------------------


def measure() -> dict[str, Figures]:
    """Figures by who was measured."""
    found: dict[str, Figures] = {}
    with process(sys.executable, "-m", "benchmarks.upstream") as provider:
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        floor = first(upstream, "/v1/chat/completions")
        with nginx(upstream) as stand:
            if stand:
                added = {FIRST: first(stand.port, stand.path) - floor}
                found["nginx"] = small(stand, 4000) | added | streams(stand)
        with gateway(upstream) as stand:
            added = {FIRST: first(stand.port, stand.path) - floor}
            made = small(stand, 2000) | added | streams(stand) | conversation(stand)
            found["thoughtline"] = made
        with litellm(upstream) as stand:
            if stand:
                added = {FIRST: first(stand.port, stand.path) - floor}
                found["LiteLLM"] = small(stand, 200) | added | streams(stand, 10)
    return found


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    return [
        (f"{who}: {what}" + (f" (bar {BARS[what]:g})" if what in BARS else ""), figure, UNITS[what])
        for who, figures in measure().items()
        for what, figure in figures.items()
    ]


if __name__ == "__main__":
    figures = measure()
    print(plots.table(figures, BARS, UNITS))
    if "--docs" in sys.argv:
        plots.write(figures, BARS, UNITS)
