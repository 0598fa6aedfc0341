"""How many bytecode instructions a request takes: a figure without noise.

Nearly all that a request costs is the interpreter's, spread evenly over its instructions. Their
number is the same on a busy machine, and says where they are. It is a map and not a measure: what C
code does inside of one instruction is not in it, nor what the caches do, so a pass of C functions
in place of a loop has fewer instructions and may take three times as long. Time what you changed.

    python -m benchmarks.opcodes                    a small request, by package and by function
    python -m benchmarks.opcodes chunk --top 20     a chunk of a stream
    python -m benchmarks.opcodes --against DIR      beside the version in DIR
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.growing import GROWTHS, Growth, grow
from benchmarks.loads import load
from benchmarks.measures import second_turns, streamed, warm_up
from benchmarks.stands import Stand, gateway, process

SERVER = Path(__file__).with_name("traced_server.py")
REQUESTS, CHUNKS = 50, 200
SECONDS = 60.0  # for which the server may take to write what it counted


class Function(NamedTuple):
    """Where instructions are: the thread, the file below the package, and the function."""

    thread: str
    file: str
    name: str


class Cost(NamedTuple):
    """What a function takes for a piece of work."""

    opcodes: float
    calls: float


Costs = Mapping[Function, Cost]


def _small(stand: Stand) -> int:
    asyncio.run(load(stand.port, second_turns(stand), REQUESTS, 1))
    return REQUESTS


def _chunk(stand: Stand) -> int:
    """Chunks that come one by one; the start and the end of the stream are shared by many."""
    asyncio.run(load(stand.port, streamed(stand, CHUNKS, 0.005), 2, 1))
    return 2 * CHUNKS


def _growing(stand: Stand) -> int:
    """All requests of a conversation that grows to 82 messages of 100 KB."""
    growth: Growth = GROWTHS[0]
    grow(stand, growth)
    return growth.messages // 2 * growth.conversations


WORK: Mapping[str, Callable[[Stand], int]] = {
    "small": _small,
    "chunk": _chunk,
    "growing": _growing,
}


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


def count(work: str, checkout: Path | None = None) -> Costs:
    """Count what one piece of the work takes."""
    with _traced(checkout) as (stand, counted):
        warm_up(stand)
        WORK[work](stand)
        os.kill(stand.pid, signal.SIGUSR1)
        pieces = WORK[work](stand)
        os.kill(stand.pid, signal.SIGUSR2)
        for _ in range(int(SECONDS * 10)):
            if counted.exists():
                break
            time.sleep(0.1)
        return {
            Function(thread, _below_package(file), name): Cost(opcodes / pieces, calls / pieces)
            for thread, file, name, opcodes, calls in json.loads(counted.read_text())
        }


def _below_package(file: str) -> str:
    before, found, below = file.rpartition("/thoughtline/")
    return below if found else f"{Path(before or file).parent.name}/{Path(file).name}"


def by_package(costs: Costs) -> Counter[str]:
    """Instructions of each package, those of the writer's thread apart."""
    made: Counter[str] = Counter()
    for function, cost in costs.items():
        package = function.file.partition("/")[0]
        made[package if function.thread == "MainThread" else f"{package} (thread)"] += cost.opcodes  # type: ignore[assignment]
    return made


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    return [
        (f"bytecode instructions, {what}", sum(cost.opcodes for cost in count(work).values()), "")
        for work, what in (("small", "small request"), ("chunk", "chunk of a stream"))
    ]


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opcodes")
    parser.add_argument("work", nargs="?", default="small", choices=WORK)
    parser.add_argument("--against", type=Path, metavar="DIR", help="checkout of another version")
    parser.add_argument("--only", default="", metavar="PREFIX", help="functions of these files")
    parser.add_argument("--top", type=int, default=40, help="so many functions")
    asked = parser.parse_args()
    now = count(asked.work)
    before = count(asked.work, asked.against.resolve()) if asked.against else {}
    packages, earlier = by_package(now), by_package(before)
    for name, opcodes in [*packages.most_common(), ("all", sum(packages.values()))]:
        known = earlier[name] if name != "all" else sum(earlier.values())
        print(f"{opcodes:10.0f}  {name:24}" + (f" before: {known:.0f}" if known else ""))
    print()
    found = {one: cost for one, cost in now.items() if one.file.startswith(asked.only)}
    for one, cost in sorted(found.items(), key=lambda item: -item[1].opcodes)[: asked.top]:
        where = "" if one.thread == "MainThread" else f"  [{one.thread}]"
        print(f"{cost.opcodes:10.1f} {cost.calls:6.2f}×  {one.file} {one.name}{where}")


if __name__ == "__main__":
    main()
