"""What the inspector costs the gateway: nothing while it is closed, little while 20 pages are open.

Closed and open rounds take turns within one run, on the same gateway, because machines are noisy.
The one thing that a request does for the inspector's sake, whether anybody looks or not, is to be
put into a set; that is measured by itself.
"""

import asyncio
import contextlib
import sys
import time
import timeit
from collections.abc import AsyncIterator
from pathlib import Path
from weakref import WeakSet

from benchmarks.gateway import SMALL, ask, cpu, gateway, load, process, request

PAGES = 20
REST = 10.0
ROUNDS = 3
COUNT = 500


def busy(pid: int) -> float:
    """Seconds of CPU of a process so far; by the scheduler's own clock where there is one."""
    total = 0.0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return cpu(pid)
    return total


class _Exchange:
    """Something that can be put into the set."""

    __slots__ = ("__weakref__",)


def hook() -> float:
    """Microseconds for one exchange to be put into the set, and to vanish from it."""
    running: WeakSet[_Exchange] = WeakSet()
    others = [_Exchange() for _ in range(50)]
    running.update(others)
    number = 100_000
    with_it = min(timeit.repeat(lambda: running.add(_Exchange()), number=number, repeat=5))
    without = min(timeit.repeat(_Exchange, number=number, repeat=5))
    return (with_it - without) / number * 1e6


@contextlib.asynccontextmanager
async def pages(port: int, count: int) -> AsyncIterator[None]:
    """So many open feeds, read as they come."""
    readers: list[asyncio.Task[None]] = []

    async def follow() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/feed HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        try:
            while await reader.read(65536):
                pass
        finally:
            writer.close()

    for _ in range(count):
        readers.append(asyncio.ensure_future(follow()))
    await asyncio.sleep(1.0)
    try:
        yield
    finally:
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        await asyncio.sleep(0.5)


async def resting(pid: int) -> float:
    """Share of a core while nothing is asked for."""
    before, start = busy(pid), time.perf_counter()
    await asyncio.sleep(REST)
    return (busy(pid) - before) / (time.perf_counter() - start) * 100


async def working(port: int, pid: int, asked: bytes) -> float:
    """Microseconds of CPU per request, one after the other on several connections."""
    before = busy(pid)
    await load(port, asked, COUNT, 4)
    return (busy(pid) - before) / COUNT * 1e6


async def trickling(port: int, pid: int, asked: bytes) -> float:
    """Share of a core with five requests a second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    before, start = busy(pid), time.perf_counter()
    while time.perf_counter() - start < REST:
        await ask(reader, writer, asked)
        await asyncio.sleep(0.2)
    writer.close()
    return (busy(pid) - before) / (time.perf_counter() - start) * 100


async def measured(port: int, pid: int, path: str) -> list[tuple[str, float, str]]:
    """Closed and open, in turns."""
    asked = request(path, SMALL)
    await load(port, asked, 200, 4)  # warm
    figures: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        figures.setdefault("closed work", []).append(await working(port, pid, asked))
        async with pages(port, PAGES):
            figures.setdefault("open work", []).append(await working(port, pid, asked))
    figures["closed rest"] = [await resting(pid)]
    figures["closed trickle"] = [await trickling(port, pid, asked)]
    async with pages(port, PAGES):
        figures["open rest"] = [await resting(pid)]
        figures["open trickle"] = [await trickling(port, pid, asked)]
    figures["after"] = [await resting(pid)]
    least = {name: min(values) for name, values in figures.items()}
    cost = hook()
    return [
        ("what a request does for the inspector, looked at or not", cost, "µs"),
        ("  … of the CPU of a small request", cost / least["closed work"] * 100, "%"),
        ("CPU per request, no page open", least["closed work"], "µs"),
        (f"CPU per request, {PAGES} pages open, as fast as it goes", least["open work"], "µs"),
        ("share of a core at rest, no page open", least["closed rest"], "%"),
        (f"share of a core at rest, {PAGES} pages open (bar 1)", least["open rest"], "%"),
        ("share of a core at rest, pages closed again", least["after"], "%"),
        ("share of a core, 5 requests a second, no page open", least["closed trickle"], "%"),
        (f"share of a core, 5 requests a second, {PAGES} pages open", least["open trickle"], "%"),
    ]


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    with process(sys.executable, "-m", "benchmarks.upstream") as provider:
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        with gateway(upstream) as (port, pid, path):
            return asyncio.run(measured(port, pid, path))


if __name__ == "__main__":
    for label, figure, unit in run():
        print(f"{label:75} {figure:12,.3f} {unit}")
