"""Two servers that take turns in short rounds: how much more one costs than the other.

A machine changes its pace from second to second, by far more than a few per cent, and two starts
of one program differ by a few as well: where its memory lies. So a round is short, the order changes
with each, both are started several times, and what counts is the mean of what the starts say, each
by the median of its rounds. The error of that mean stands beside it.
"""

import asyncio
import statistics
from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks.conversations import begin, warm_up
from benchmarks.gateway import Start, stands
from benchmarks.loads import connected, load, load_on
from benchmarks.measures import conversation
from benchmarks.stands import Stand, cpu

STARTS, ROUNDS = 6, 24
SMALL_REQUESTS, LONG_REQUESTS = 120, 8
"""Requests of a round."""
SMALL, LONG = "small request", "300 messages with 130 thoughts put back"


class Pair(NamedTuple):
    """What two servers need for a request, in microseconds of CPU, and their ratio."""

    plain: float
    other: float
    ratio: float
    error: float  # of the ratio: standard error of the mean


def compare(servers: Mapping[str, Start], starts: int = STARTS) -> dict[str, Pair]:
    """Compare the second server with the first."""
    found: dict[str, list[tuple[float, float, float]]] = {SMALL: [], LONG: []}
    for _ in range(starts):
        with stands(servers) as (_, started):
            both = list(started.values())
            assert len(both) == 2
            for stand in both:
                warm_up(stand)
            for what, ask in ((SMALL, _small), (LONG, _long)):
                found[what].append(_take_turns(both, ask))
    return {what: _pair(made) for what, made in found.items()}


def _pair(made: list[tuple[float, float, float]]) -> Pair:
    plain, other, ratios = zip(*made, strict=True)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0.0
    return Pair(statistics.median(plain), statistics.median(other), statistics.mean(ratios), error)


Ask = Callable[[Stand], float]
"""Asks a server, and returns the seconds of processor time for a request."""


def _small(stand: Stand) -> float:
    async def ask() -> float:
        async with connected(stand.port, 16) as connections:
            asked = await begin(stand, connections, SMALL_REQUESTS)
            before = cpu(stand.pid)
            await load_on(connections, asked, SMALL_REQUESTS)
            return (cpu(stand.pid) - before) / SMALL_REQUESTS

    return asyncio.run(ask())


def _long(stand: Stand) -> float:
    asked, before = conversation(stand), cpu(stand.pid)
    asyncio.run(load(stand.port, asked, LONG_REQUESTS, 2))
    return (cpu(stand.pid) - before) / LONG_REQUESTS


def _take_turns(both: list[Stand], ask: Ask) -> tuple[float, float, float]:
    """Return the medians of both, and of their ratio in the same round."""
    costs: list[list[float]] = [[], []]
    for number in range(ROUNDS + 2):
        for which in (0, 1) if number % 2 else (1, 0):
            cost = ask(both[which])
            if number > 1:  # the first ones only warm up
                costs[which].append(cost * 1e6)
    ratios = [other / plain for plain, other in zip(*costs, strict=True)]
    plain, other = (statistics.median(one) for one in costs)
    return plain, other, statistics.median(ratios)
