"""Counts what became of thoughts, from the starts and ends of turns, per interval of time.

Counts have names: `turns`, those of tokens (`input_tokens` and so on), those of `decisions.tally`,
and the same with `new_` before them, in which an output that many requests repeat counts once.
Stores keep them for two lengths of interval: `FINE` for the last days, `COARSE` for a season.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from thoughtline.errors import Unreadable
from thoughtline.log.decisions import tally
from thoughtline.log.events import Event, TurnEnded, TurnStarted, decode
from thoughtline.log.parts import Origin
from thoughtline.log.usage import Usage, usage_of

TYPES = ("turn_started", "turn_ended")
"""Types of the events that are counted."""

FINE, COARSE = 300, 3 * 3600
"""Seconds of the intervals that are kept."""

KEPT = {FINE: 3 * 86_400, COARSE: 92 * 86_400}
"""Seconds for which the intervals of each length are kept."""

NEW = "new_"
"""Begins the names of counts of decisions that the request before did not make already."""
LONG_PROMPT = 128_000
"""Tokens of a prompt from which a turn counts as `long_turns`: some providers charge more."""
SIMULATED = "sim:"
"""Begins the endpoints of simulated models."""
FAILED = ("failed", "capped", "aborted")
"""Outcomes whose turns are counted, each as `OUTCOME_turns`."""
_TOKENS = ("input", "output", "reasoning", "cached", "cache_write")

FindStart = Callable[[Event], TurnStarted | None]
"""Finds the start of a turn, for the event of its end."""


class TurnCounts(Struct, frozen=True, kw_only=True):
    """The counts of one interval, for one provider and model."""

    at: float  # when the interval began
    provider: str
    model: str
    counts: Mapping[str, int]


def kept_length(seconds: int) -> int:
    """Return the length of the intervals that are kept, from which these are added up."""
    return COARSE if seconds % COARSE == 0 else FINE


def add_up(kept: Iterable[TurnCounts], seconds: int) -> list[TurnCounts]:
    """Return the counts of longer intervals."""
    sums: dict[tuple[int, str, str], dict[str, int]] = {}
    for one in kept:
        key = (int(one.at) // seconds * seconds, one.provider, one.model)
        total = sums.setdefault(key, {})
        for name, count in one.counts.items():
            total[name] = total.get(name, 0) + count
    return [
        TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
        for (at, provider, model), counts in sorted(sums.items())
    ]


CountKey = tuple[int, int, str, str]
"""Length and beginning of the interval, provider, model."""


def started_counts(body: TurnStarted) -> dict[str, int]:
    """Return how many decisions of each kind a turn began with, all of them and the new ones."""
    new = tally(body.replay)
    counts = dict(body.tally) if body.repeated else dict(new)
    return counts | {NEW + name: count for name, count in new.items()}


def ended_counts(body: TurnEnded, usage: Usage | None, endpoint: str = "") -> dict[str, int]:
    """Return the tokens of a turn, how it ended if it is not complete, and if nobody charges it."""
    counts = {f"{body.outcome}_turns": 1} if body.outcome in FAILED else {}
    if endpoint.startswith(SIMULATED):
        counts["simulated_turns"] = 1
    if usage is None:
        return counts
    tokens = {f"{name}_tokens": getattr(usage, name) for name in _TOKENS}
    counts |= {name: count for name, count in tokens.items() if count}
    return counts | ({"long_turns": 1} if (usage.input or 0) > LONG_PROMPT else {})


class TurnCounter:
    """Adds up the counts of events."""

    def __init__(self, find_start: FindStart) -> None:
        self.counts: dict[CountKey, Counter[str]] = {}
        self._find_start = find_start
        self._started: dict[tuple[str, str], Origin] = {}  # turn → where it was sent

    def add(self, event: Event) -> None:
        """Count an event; one that cannot be read counts nothing."""
        body = body_of(event)
        if isinstance(body, TurnStarted):
            target = self._started[event.session, event.id] = body.target or Origin()
            self._count(event.at, target, {"turns": 1, **started_counts(body)})
        elif isinstance(body, TurnEnded):
            target = self._target(event, body)
            usage = usage_of(body.usage, version=event.version, dialect=target.dialect)
            if counts := ended_counts(body, usage, target.endpoint):
                self._count(event.at, target, counts)

    def drop_expired(self, now: float) -> None:
        """Drop the counts of intervals that are not kept any longer."""
        for key in [key for key in self.counts if key[1] + key[0] < now - KEPT[key[0]]]:
            del self.counts[key]

    def _target(self, event: Event, ended: TurnEnded) -> Origin:
        if known := self._started.pop((event.session, event.parent), None):
            return known
        started = self._find_start(event)
        return (started.target if started else None) or Origin(model=ended.model)

    def _count(self, at: float, target: Origin, more: Mapping[str, int]) -> None:
        for seconds in KEPT:
            key = (seconds, int(at // seconds) * seconds, target.provider, target.model)
            counts = self.counts.get(key)
            if counts is None:
                counts = self.counts[key] = Counter()
            for name, count in more.items():
                counts[name] += count


def body_of(event: Event) -> TurnStarted | TurnEnded | None:
    """Return the start or the end of a turn; None where it is something else, or damaged."""
    try:
        body = decode(event.type, event.version, event.data)
    except Unreadable:
        return None
    return body if isinstance(body, TurnStarted | TurnEnded) else None
