"""How many bytecode instructions a request takes: a figure without noise.

Nearly all that a request costs is the interpreter's, spread evenly over its instructions. Their
number is the same on a busy machine, and says where they are. It is a map and not a measure: what C
code does inside of one instruction is not in it, nor what the caches do, so a pass of C functions
in place of a loop has fewer instructions and may take three times as long. Time what you changed.

    python -m benchmarks.opcodes                    a small request, by package and by function
    python -m benchmarks.opcodes streamed --top 20  a chunk of a stream
    python -m benchmarks.opcodes --against REV      beside a revision, or the checkout in a folder
    python -m benchmarks.opcodes --only engine/     only functions whose file begins so
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.checkouts import checkout_of
from benchmarks.conversations import warm_up
from benchmarks.counted_work import WORK, Prepared, do
from benchmarks.stands import Stand, gateway, process

SERVER = Path(__file__).with_name("traced_server.py")
SECONDS = 60.0  # for which the server may take to write what it counted
LOOP = "MainThread"


class Function(NamedTuple):
    """Where instructions are: the thread, the file below the package, and the function."""

    thread: str
    file: str
    name: str


class Cost(NamedTuple):
    """What a function takes for a piece of work."""

    opcodes: float
    calls: float
    visits: Mapping[str, float]  # by line


Costs = Mapping[Function, Cost]


@contextmanager
def _traced(checkout: Path | None) -> Iterator[tuple[Stand, Path]]:
    """A gateway that counts, and the file to which it writes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        process(sys.executable, "-m", "benchmarks.upstream") as provider,
    ):
        assert provider.stdout
        counted = Path(folder) / "counted.json"
        upstream = int(provider.stdout.readline())
        env = {"OPCODES_FILE": str(counted)}
        with gateway(upstream, checkout=checkout, program=(str(SERVER),), env=env) as stand:
            yield stand, counted


def count(name: str, checkout: Path | None = None) -> Costs:
    """Count what one piece of the work takes."""
    made: Costs = {}
    with _traced(checkout) as (stand, counted):

        async def counting(work: Prepared, pieces: int) -> None:
            nonlocal made
            os.kill(stand.pid, signal.SIGUSR1)
            await asyncio.to_thread(_appears, counted.with_suffix(".begun"))
            await work()
            os.kill(stand.pid, signal.SIGUSR2)
            made = _costs(await asyncio.to_thread(_appears, counted), pieces)

        warm_up(stand)
        do(stand, name, counting, 2)  # the first time is slower
    return made


def _appears(path: Path) -> str:
    """The text of a file that the server writes, which is gone then."""
    for _ in range(int(SECONDS * 100)):
        if path.exists():
            text = path.read_text()
            path.unlink()
            return text
        time.sleep(0.01)
    raise TimeoutError(f"the gateway does not write {path.name}")


def _costs(rows: str, pieces: int) -> Costs:
    made: Counter[Function] = Counter()
    calls: Counter[Function] = Counter()
    visits: dict[Function, Counter[str]] = {}
    for thread, file, name, opcodes, called, lines in json.loads(rows):
        function = Function(thread, _below_package(file), name)
        made[function] += opcodes
        calls[function] += called
        visits.setdefault(function, Counter()).update(lines)
    return {
        function: Cost(
            opcodes / pieces,
            calls[function] / pieces,
            {line: count / pieces for line, count in visits[function].items()},
        )
        for function, opcodes in made.items()
    }


def _below_package(file: str) -> str:
    before, found, below = file.rpartition("/thoughtline/")
    return below if found else f"{Path(before or file).parent.name}/{Path(file).name}"


def by_package(costs: Costs) -> Counter[str]:
    """Instructions of each package, those of the writer's thread apart."""
    made: Counter[str] = Counter()
    for function, cost in costs.items():
        package = function.file.partition("/")[0]
        made[package if function.thread == LOOP else f"{package} (thread)"] += cost.opcodes  # type: ignore[assignment]
    return made


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    return [
        (
            f"bytecode instructions: {work.piece}",
            sum(cost.opcodes for cost in count(name).values()),
            "",
        )
        for name, work in WORK.items()
    ]


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opcodes")
    parser.add_argument("work", nargs="?", default="small", choices=WORK)
    parser.add_argument("--against", metavar="REV", help="a git revision, or a checkout's folder")
    parser.add_argument("--only", default="", metavar="PREFIX", help="functions of these files")
    parser.add_argument("--top", type=int, default=40, help="so many functions")
    asked = parser.parse_args()
    now, before = count(asked.work), {}
    if asked.against:
        with checkout_of(asked.against) as folder:
            before = count(asked.work, folder)
    packages, earlier = by_package(now), by_package(before)
    for name, opcodes in [*packages.most_common(), ("all", sum(packages.values()))]:
        known = earlier[name] if name != "all" else sum(earlier.values())
        print(f"{opcodes:10.0f}  {name:24}" + (f" before: {known:.0f}" if known else ""))
    print()
    found = {one: cost for one, cost in now.items() if one.file.startswith(asked.only)}
    for one, cost in sorted(found.items(), key=lambda item: -item[1].opcodes)[: asked.top]:
        where = "" if one.thread == LOOP else f"  [{one.thread}]"
        print(f"{cost.opcodes:10.1f} {cost.calls:6.2f}×  {one.file} {one.name}{where}")


if __name__ == "__main__":
    main()
