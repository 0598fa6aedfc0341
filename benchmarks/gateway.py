"""What the gateway costs beside nginx, a bare Python protocol and its peers.

All processes on this machine, over loopback, in one run. Machines are noisy, from minute to minute
by a factor of two: so they take turns, round by round, and figures and ratios are medians of what
the rounds say. Processor time is that of the measured process tree, kernel included.

    python -m benchmarks.gateway                    a table
    python -m benchmarks.gateway --docs             the same, written into docs/
    python -m benchmarks.gateway --against REV      this version and another one take turns
    python -m benchmarks.gateway growing small      only these, --rounds 3: so often
"""

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from benchmarks import plots
from benchmarks.checkouts import checkout_of
from benchmarks.conversations import warm_up
from benchmarks.growing import GROWTHS, Curve, grow
from benchmarks.measures import (
    BARS,
    FIRST,
    MEASURES,
    STREAM,
    UNITS,
    Figures,
    first_token,
    grown,
)
from benchmarks.stands import Stand, bare, build, gateway, litellm, nginx, portkey, process

ROUNDS = 5
NOW, BEFORE, NGINX, BARE = "thoughtline", "before", "nginx", "bare Python"
PEERS = {"LiteLLM": litellm, "Portkey": portkey}
GROWING = "growing"
_TIMES = ("µs", "ms")

Round = dict[str, Figures]
"""Figures by server."""
Start = Callable[[int], AbstractContextManager[Stand | None]]


class Measured(NamedTuple):
    """What all rounds say."""

    rounds: Sequence[Round]
    curves: Mapping[str, Sequence[Curve]]  # of the longest conversation, by server

    @property
    def figures(self) -> Round:
        """The median of each figure."""
        return {
            who: {
                what: _typical(what, [made[who][what] for made in self.rounds if what in made[who]])
                for what in {what: None for made in self.rounds for what in made[who]}
            }
            for who in self.rounds[0]
        }

    def ratios(self, who: str, to: str) -> Figures:
        """The median ratio of each figure to another server's in the same round."""
        first = self.rounds[0]
        if who not in first or to not in first:
            return {}
        return {
            what: statistics.median(made[who][what] / made[to][what] for made in self.rounds)
            for what in first[who]
            if UNITS[what] in _TIMES and all(made[to].get(what) for made in self.rounds)
        }

    @property
    def curve(self) -> Mapping[str, Curve]:
        """The median of each point."""
        return {
            who: {at: statistics.median(one[at] for one in curves) for at in curves[0]}
            for who, curves in self.curves.items()
            if curves
        }


def _typical(what: str, values: Sequence[float]) -> float:
    """The median; memory that a round took is there for the next."""
    return max(values) if what == STREAM else statistics.median(values)


@contextlib.contextmanager
def stands(servers: Mapping[str, Start]) -> Iterator[tuple[int, dict[str, Stand]]]:
    """The stand-in's port, and those of the servers that are installed."""
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(process(sys.executable, "-m", "benchmarks.upstream"))
        assert provider.stdout
        upstream = int(provider.stdout.readline())
        started = {who: stack.enter_context(start(upstream)) for who, start in servers.items()}
        yield upstream, {who: stand for who, stand in started.items() if stand is not None}


def measure(
    servers: Mapping[str, Start], names: Sequence[str] = (), rounds: int = ROUNDS
) -> Measured:
    """Let the servers take turns."""
    made: list[Round] = []
    curves: dict[str, list[Curve]] = {}
    names = names or [*MEASURES, GROWING]
    with stands(servers) as (upstream, found):
        for stand in found.values():
            warm_up(stand)
        direct = Stand(upstream, 0, "/v1/chat/completions")
        for number in range(rounds):
            figures: Round = {who: {} for who in found}
            floor = first_token(direct)[FIRST]
            for name in names:
                for who in _in_turn(found, number):
                    stand, own = found[who], curves.setdefault(who, [])
                    take = partial(_grow, curves=own) if name == GROWING else MEASURES[name]
                    try:
                        figures[who] |= take(stand)
                    except (RuntimeError, OSError, EOFError) as error:  # a peer may not manage
                        if not stand.slow:
                            raise
                        print(f"{who}, {name}: {error!r:.300}", file=sys.stderr)
            for one in figures.values():
                if FIRST in one:
                    one[FIRST] -= floor
            made.append(figures)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return Measured(made, curves)


def _grow(stand: Stand, curves: list[Curve]) -> Figures:
    """Figures at the ends of growing conversations; the longest one's curve is kept."""
    made: Figures = {}
    for growth in GROWTHS[:1] if stand.slow else GROWTHS:
        curve = grow(stand, growth)
        made[grown(growth)] = curve[growth.messages] * 1e3
        if growth is GROWTHS[-1]:
            curves.append(curve)
    return made


def _in_turn(found: Mapping[str, Stand], number: int) -> list[str]:
    """The servers; every other round they come in the other order."""
    return list(found) if number % 2 == 0 else list(reversed(found))


def run() -> list[tuple[str, float, str]]:
    """Figures for `make bench`."""
    measured = measure({NGINX: nginx, BARE: bare, NOW: gateway, **PEERS})
    rows = [
        (f"{who}: {what}" + (f" (bar {BARS[what]:g})" if what in BARS else ""), figure, UNITS[what])
        for who, made in measured.figures.items()
        for what, figure in made.items()
    ]
    ratios = measured.ratios(NOW, NGINX)
    return [*rows, *((f"{NOW}: {what}", ratio, "× nginx") for what, ratio in ratios.items())]


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway")
    parser.add_argument("names", nargs="*", choices=[*MEASURES, GROWING, []], metavar="MEASURE")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--against", metavar="REV", help="a git revision, or a checkout's folder")
    parser.add_argument("--docs", action="store_true", help="write the figures into docs/")
    asked = parser.parse_args()
    if asked.against:
        with checkout_of(asked.against) as folder:
            before = partial(gateway, checkout=folder)
            servers: dict[str, Start] = {NGINX: nginx, BEFORE: before, NOW: gateway}
            measured = measure(servers, asked.names, asked.rounds)
        figures = measured.figures
        columns = {
            "now / before": measured.ratios(NOW, BEFORE),
            "before, × nginx": measured.ratios(BEFORE, NGINX),
            "now, × nginx": measured.ratios(NOW, NGINX),
        }
        print(f"{build()}\n\n{plots.table(figures, columns, UNITS)}")
        print(plots.points(measured.curve))
        return
    measured = measure({NGINX: nginx, BARE: bare, NOW: gateway, **PEERS}, asked.names, asked.rounds)
    columns = {
        "we, × nginx": measured.ratios(NOW, NGINX),
        "we, × bare Python": measured.ratios(NOW, BARE),
    }
    table = plots.table(measured.figures, columns, UNITS, BARS)
    print(f"{build()}\n\n{table}")
    print(plots.points(measured.curve))
    if asked.docs:
        plots.write(table, measured.figures, BARS, UNITS, measured.curve)


if __name__ == "__main__":
    main()
