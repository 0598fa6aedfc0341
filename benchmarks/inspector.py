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
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from weakref import WeakSet

from benchmarks.conversations import first_request
from benchmarks.loads import ask, load, request
from benchmarks.stands import cpu, gateway, process

PAGES = 20
REST = 10.0
CALM = 1.2
"""Seconds that a page waits before it asks again (`sessions.js`)."""
ROUNDS = 3
COUNT = 500
_ROWS = b"GET /api/sessions?limit=25 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


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


class _List:
    """The list of a page: a while after something happened it asks for its first rows again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._asking: asyncio.Task[None] | None = None
        self._line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def happened(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        await asyncio.sleep(CALM)
        self._line = self._line or await asyncio.open_connection("127.0.0.1", self._port)
        await ask(*self._line, _ROWS)

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
        if self._line is not None:
            self._line[1].close()


@contextlib.asynccontextmanager
async def pages(port: int, count: int, *, lists: bool = False) -> AsyncIterator[None]:
    """So many open feeds, read as they come; with `lists`, of pages that show the list."""
    readers: list[asyncio.Task[None]] = []

    async def follow() -> None:
        shown = _List(port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/feed HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        try:
            while said := await reader.read(65536):
                if lists and b"\nevent: " in said:
                    shown.happened()
        finally:
            shown.close()
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


async def working(port: int, pid: int, asked: Callable[[int], bytes]) -> float:
    """Microseconds of CPU per request, one after the other on several connections."""
    before = busy(pid)
    await load(port, asked, COUNT, 4)
    return (busy(pid) - before) / COUNT * 1e6


async def trickling(
    port: int, pid: int, asked: Callable[[int], bytes], every: float = 0.2
) -> float:
    """Share of a core with a request every so often."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    before, start = busy(pid), time.perf_counter()
    while time.perf_counter() - start < REST:
        await ask(reader, writer, asked(0))
        await asyncio.sleep(every)
    writer.close()
    return (busy(pid) - before) / (time.perf_counter() - start) * 100


async def measured(port: int, pid: int, path: str) -> list[tuple[str, float, str]]:
    """Closed and open, in turns."""

    def asked(_: int) -> bytes:
        return request(path, first_request())

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
    figures["closed slow"] = [await trickling(port, pid, asked, 2.0)]
    async with pages(port, PAGES, lists=True):
        figures["open slow"] = [await trickling(port, pid, asked, 2.0)]
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
        ("share of a core, a request every 2 s, no page open", least["closed slow"], "%"),
        (f"share of a core, a request every 2 s, {PAGES} lists (bar 1)", least["open slow"], "%"),
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
