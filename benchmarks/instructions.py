"""How many machine instructions a request takes, as valgrind counts them.

Their number hardly depends on how busy a machine is: a change of one per cent is seen where processor
time moves by a half. Counted is user mode, the interpreter and all C code in it, and not the kernel.
Each figure is the median of several windows, so that upkeep, which falls into some of them, is left
out. Beside the loop's thread there is SQLite's.

    python -m benchmarks.instructions                       every piece of work
    python -m benchmarks.instructions small translated      only these
    python -m benchmarks.instructions --against REV         beside a git revision, in turns
"""

import argparse
import asyncio
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.checkouts import checkout_of
from benchmarks.conversations import warm_up
from benchmarks.counted_work import WORK, Prepared, do
from benchmarks.stands import Stand, build, gateway, process

WINDOWS = 7
NOW, BEFORE = "now", "before"
_THREAD = re.compile(r"^thread: (\d+)$", re.MULTILINE)
_TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)


class Instructions(NamedTuple):
    """Instructions for one piece of work."""

    loop: float
    others: float  # of all other threads

    @property
    def total(self) -> float:
        """Those of all threads."""
        return self.loop + self.others


Figures = Mapping[str, Mapping[str, Instructions]]
"""By piece of work, then by version."""


class Callgrind:
    """A gateway that runs in valgrind."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand = stand
        self._folder = folder
        self.windows: list[Instructions] = []
        self._control("-i", "on")

    def do(self, name: str) -> None:
        """Do a piece of work once, and count what it takes."""
        do(self.stand, name, self._count)

    async def _count(self, work: Prepared, pieces: int) -> None:
        await asyncio.to_thread(self._control, "-z")
        await work()
        await asyncio.to_thread(self._control, "-d")
        by_thread = await asyncio.to_thread(self._dumped)
        loop = by_thread.pop(1)
        self.windows.append(Instructions(loop / pieces, sum(by_thread.values()) / pieces))

    def _control(self, *words: str) -> None:
        subprocess.run(
            ["callgrind_control", *words, str(self.stand.pid)],  # noqa: S607
            check=True,
            capture_output=True,
            timeout=120,
        )

    def _dumped(self) -> dict[int, int]:
        """Instructions by thread, the first of which is the loop's."""
        found = {}
        for path in self._folder.glob("counted.*"):
            text = path.read_text(errors="replace")
            thread, total = _THREAD.search(text), _TOTAL.search(text)
            if thread and total:
                found[int(thread[1])] = int(total[1])
            path.unlink()
        return found


@contextlib.contextmanager
def _counted(upstream: int, checkout: Path | None) -> Iterator[Callgrind]:
    with tempfile.TemporaryDirectory() as folder:
        under = (
            "valgrind",
            "--tool=callgrind",
            "--separate-threads=yes",
            "--instr-atstart=no",
            f"--callgrind-out-file={folder}/counted",
        )
        # Sets and dicts of text have the same order in each run.
        env = {"PYTHONHASHSEED": "0"}
        with gateway(upstream, checkout=checkout, under=under, env=env) as stand:
            warm_up(stand)
            yield Callgrind(stand, Path(folder))


def measure(names: Sequence[str], checkout: Path | None = None, windows: int = WINDOWS) -> Figures:
    """Count what pieces of work take, of this version and of another one, in turns."""
    figures: dict[str, dict[str, Instructions]] = {}
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(process(sys.executable, "-m", "benchmarks.upstream"))
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        versions = {NOW: stack.enter_context(_counted(upstream, None))}
        if checkout:
            versions[BEFORE] = stack.enter_context(_counted(upstream, checkout))
        for name in names:
            for number in range(windows + 1):
                for version in versions.values():
                    version.do(name)
                    if not number:  # the first time is another one
                        version.windows.clear()
            figures[name] = {who: _median(version.windows) for who, version in versions.items()}
    return figures


def _median(windows: Sequence[Instructions]) -> Instructions:
    return Instructions(*(statistics.median(column) for column in zip(*windows, strict=True)))


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    if not shutil.which("valgrind"):
        return []
    return [
        (f"instructions: {WORK[name].piece}", made[NOW].total / 1e3, "thousand")
        for name, made in measure(list(WORK)).items()
    ]


def main() -> None:
    """Count what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions")
    parser.add_argument("names", nargs="*", choices=[*WORK, []], metavar="WORK")
    parser.add_argument("--windows", type=int, default=WINDOWS, help="how often each is counted")
    parser.add_argument("--against", metavar="REV", help="a git revision, or a checkout's folder")
    asked = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("This counts with valgrind, which is not installed. Debian: apt install valgrind")
    other = checkout_of(asked.against) if asked.against else contextlib.nullcontext()
    with other as checkout:
        figures = measure(asked.names or list(WORK), checkout, asked.windows)
    print(f"thousands of instructions, median of {asked.windows} windows; {build()}\n")
    print(f"{'':64}{'loop':>9}{'others':>9}{'all':>9}  {'now / before' if other else ''}")
    for name, made in figures.items():
        for who, one in made.items():
            label = f"{name}: {WORK[name].piece}" if who == NOW else f"  {who}, {asked.against}"
            ratio = f"{made[NOW].total / one.total:8.3f}" if who == BEFORE else ""
            print(f"{label:64}{_thousands(one.loop, one.others, one.total)}  {ratio}")


def _thousands(*counts: float) -> str:
    return "".join(f"{count / 1e3:9,.1f}" for count in counts)


if __name__ == "__main__":
    main()
