"""How large the product is, and how much of it a request touches: `make lint` prints it.

The figures are exact, also on a busy machine. What a request costs follows from how many different
functions and lines it touches, far more than from any one of them. A figure above its ceiling is an
error. The ceilings are what the project has today: whoever makes it leaner lowers them towards the
target, and nobody raises one without a reason in the commit. Numbers are a sign and not the aim:
nothing is folded together, renamed short or stripped of blank lines to meet one.

    python -m benchmarks.footprint
"""

import ast
import asyncio
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import thoughtline
from benchmarks.checkouts import ROOT
from benchmarks.opcodes import LOOP, Costs, count
from thoughtline.dialects import DIALECTS
from thoughtline.testing import serving

PACKAGE = ROOT / "src" / "thoughtline"
USUAL = 0.75
"""What three of four requests touch is touched by a request; the rest is upkeep and chance."""


class Bar(NamedTuple):
    """How large a figure may be."""

    ceiling: int
    target: int


BARS = {
    "product without simulators: lines": Bar(69_000, 45_000),
    "product without simulators: files": Bar(422, 240),
    "stores/, with its SQL: lines": Bar(15_300, 8_000),
    "port of the stores: members": Bar(31, 14),
    "small request, on the loop: distinct functions": Bar(340, 150),
    "small request, on the loop: distinct lines": Bar(1_830, 600),
    "translated request, on the loop: distinct functions": Bar(600, 400),
    "translated request, on the loop: distinct files": Bar(114, 70),
    "library, three exchanges with tools: bodies written": Bar(3, 3),
    "library, three exchanges with tools: bodies read": Bar(0, 0),
}


def figures() -> dict[str, int]:
    """All figures, in the order of the bars."""
    modules = [
        path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "testing"
    ]
    stores = PACKAGE / "stores"
    small, translated = _usual(count("small")), _usual(count("translated"))
    written, read = asyncio.run(_library())
    found = [
        _lines(modules),
        len(modules),
        _lines([*stores.rglob("*.py"), *stores.rglob("*.sql")]),
        _members(stores / "base.py", "Store"),
        len(small),
        sum(visits >= USUAL for cost in small.values() for visits in cost.visits.values()),
        len(translated),
        len({function.file for function in translated}),
        written,
        read,
    ]
    return dict(zip(BARS, found, strict=True))


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def _members(module: Path, name: str) -> int:
    """The attributes and methods of a class."""
    tree = ast.parse(module.read_text("utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    members = (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign)
    return sum(isinstance(node, members) for node in found.body)


def _usual(costs: Costs) -> Costs:
    """The functions on the loop that a request calls."""
    return {
        function: cost
        for function, cost in costs.items()
        if function.thread == LOOP and cost.calls >= USUAL
    }


async def _library() -> tuple[int, int]:
    """Bodies that a run of the library writes and reads: two exchanges with a call, and one more."""
    counts = {"write": 0, "read": 0}
    chat = type(DIALECTS["chat"])
    originals = {name: getattr(chat, name) for name in counts}

    def counted(name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            counts[name] += 1
            return originals[name](*args, **named)

        return call

    for name in counts:
        setattr(chat, name, counted(name))
    try:
        turns = await _run()
    finally:
        for name, original in originals.items():
            setattr(chat, name, original)
    if turns != 3:
        raise RuntimeError(f"the run of the library had {turns} turns and not three")
    return counts["write"], counts["read"]


async def _run() -> int:
    def read_file(path: str) -> str:
        """Read a text file."""
        return f"{path}: forty-two"

    with serving("deepseek") as sims:
        where = {"base_url": sims.url("deepseek"), "key": "any"}
        provider = thoughtline.Provider("deepseek", model="deepseek-v4-pro", **where)
        async with thoughtline.open("memory://") as log:
            chat = await log.create(provider=provider, tools=[read_file], system="Be brief.")
            await chat.run("What is in a.txt?")
            return len(chat.turns)


def report(found: Mapping[str, int]) -> list[str]:
    """Print all figures, and return those above their ceilings."""
    print(f"{'':56}{'now':>8}{'ceiling':>10}{'target':>10}")
    for name, figure in found.items():
        bar = BARS[name]
        print(f"{name:56}{figure:8,}{bar.ceiling:10,}{bar.target:10,}")
    return [name for name, figure in found.items() if figure > BARS[name].ceiling]


def main() -> None:
    """Print the figures; ends with 1 where one is above its ceiling."""
    if above := report(figures()):
        sys.exit(
            f"above the ceiling: {', '.join(above)}.\nLook for what the change makes superfluous;"
            " `BARS` in benchmarks/footprint.py has the ceilings."
        )


if __name__ == "__main__":
    main()
