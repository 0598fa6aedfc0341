"""Counts what became of thoughts, from the starts and ends of turns, per interval of time.

Counts have names: `turns`, those of tokens (`input_tokens` and so on), those of `decisions.tally`,
and the same with `new_` before them, in which an output that many requests repeat counts once.
Stores keep them for two lengths of interval: `FINE` for the last days, `COARSE` for a season.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from thoughtline.errors import Unreadable
from thoughtline.log.decisions import DecisionKind, example, kind_of, new_decisions, tally
from thoughtline.log.events import VERSIONS, Draft, Event, Outcome, TurnEnded, TurnStarted, decode
from thoughtline.log.parts import Origin
from thoughtline.log.usage import Usage, usage_of

TYPES = ("turn_started", "turn_ended")
"""Types of the events that are counted."""

FINE, COARSE = 300, 3 * 3600
"""Seconds of the intervals that are kept."""

KEPT = {FINE: 3 * 86_400, COARSE: 92 * 86_400}
"""Seconds for which the intervals of each length are kept."""

_LATEST = 2.0**53
"""Times beyond this are none."""

NEW = "new_"
"""Begins the names of counts of decisions that the request before did not make already."""
LONG_PROMPT = 128_000
"""Tokens of a prompt from which a turn counts as `long_turns`: some providers charge more."""
SIMULATED = "sim:"
"""Begins the endpoints of simulated models."""
FAILED = ("failed", "capped", "aborted")
"""Outcomes whose turns are counted, each as `OUTCOME_turns`."""
_COMPLETED = Outcome.COMPLETED
_NOWHERE = Origin()
_NEWEST_START, _NEWEST_END = (VERSIONS[type] for type in TYPES)
_started = msgspec.json.Decoder(TurnStarted)
_ended = msgspec.json.Decoder(TurnEnded)
UNREADABLE = (Unreadable, msgspec.MsgspecError, ValueError, LookupError, TypeError, RecursionError)

FindStart = Callable[[str, str], TurnStarted | None]
"""Finds the start of a turn by its session and its id."""


class TurnCounts(Struct, frozen=True, kw_only=True):
    """The counts of one interval, for one provider and model."""

    at: float  # when the interval began
    provider: str
    model: str
    counts: Mapping[str, int]


def kept_length(seconds: int) -> int:
    """Return the length of the intervals that are kept, from which these are added up."""
    return COARSE if seconds % COARSE == 0 else FINE


def from_rows(rows: Iterable[tuple[int, str, str, str, int]]) -> list[TurnCounts]:
    """Return the counts of rows with beginning, provider, model, name and count."""
    sums: dict[tuple[int, str, str], dict[str, int]] = {}
    for at, provider, model, name, count in rows:
        sums.setdefault((at, provider, model), {})[name] = count
    return [
        TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
        for (at, provider, model), counts in sorted(sums.items())
    ]


CountKey = tuple[int, int, str, str]
"""Length and beginning of the interval, provider, model."""


@lru_cache(maxsize=1024)
def _counted_names(kind: DecisionKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names under which a decision of a kind counts, and those of a new one besides."""
    names = tuple(tally((example(kind),)))
    return names, tuple([NEW + name for name in names])


def started_counts(body: TurnStarted, parent: str) -> dict[str, int]:
    """Return how many decisions of each kind a turn began with, all of them and the new ones."""
    counts = dict(body.tally) if body.repeated else tally(body.replay)
    new = tally(new_decisions(body.replay, parent))
    return counts | {NEW + name: count for name, count in new.items()}


def ended_counts(body: TurnEnded, usage: Usage | None, endpoint: str = "") -> dict[str, int]:
    """Return the tokens of a turn, how it ended if it is not complete, and if nobody charges it."""
    counts = {f"{body.outcome}_turns": 1} if body.outcome in FAILED else {}
    if endpoint.startswith(SIMULATED):
        counts["simulated_turns"] = 1
    return counts if usage is None else counts | token_counts(usage)


def token_counts(usage: Usage) -> dict[str, int]:
    """Return the tokens of a turn, and whether its prompt was long; no zeros."""
    counts: defaultdict[str, int] = defaultdict(int)
    _add_tokens(counts, usage)
    return dict(counts)


def _add_tokens(counts: defaultdict[str, int], usage: Usage) -> None:
    if usage.input:
        counts["input_tokens"] += usage.input
        if usage.input > LONG_PROMPT:
            counts["long_turns"] += 1
    if usage.output:
        counts["output_tokens"] += usage.output
    if usage.reasoning:
        counts["reasoning_tokens"] += usage.reasoning
    if usage.cached:
        counts["cached_tokens"] += usage.cached
    if usage.cache_write:
        counts["cache_write_tokens"] += usage.cache_write


def _no_counts() -> defaultdict[tuple[int, str, str], defaultdict[str, int]]:
    return defaultdict(lambda: defaultdict(int))


class TurnCounter:
    """Adds up the counts of starts and ends of turns.

    They are added up per interval of the shorter length, and from that for the longer one: as they
    are counted for every turn, this is written for speed, and says the same as `started_counts`
    and `ended_counts`.
    """

    def __init__(self, find_start: FindStart) -> None:
        self._find_start = find_start
        self._started: dict[tuple[str, str], Origin] = {}  # turn → where it was sent
        self._counts: dict[CountKey, dict[str, int]] = {}
        self._new = _no_counts()  # is not in `_counts` yet
        self._begin = self._end = 0  # of the last interval

    @property
    def counts(self) -> Mapping[CountKey, dict[str, int]]:
        """What was counted, for both lengths of interval."""
        for (at, provider, model), new in self._new.items():
            for seconds in KEPT:
                key = (seconds, at // seconds * seconds, provider, model)
                counts = self._counts.setdefault(key, {})
                for name, count in new.items():
                    counts[name] = counts.get(name, 0) + count
        self._new = _no_counts()
        return self._counts

    @property
    def intervals(self) -> int:
        """How many counts there are that nobody has asked for."""
        return len(self._new)

    @property
    def running(self) -> int:
        """How many turns have begun, and not ended."""
        return len(self._started)

    def knows(self, turn: tuple[str, str]) -> bool:
        """Whether the start of a turn was counted, and not its end."""
        return turn in self._started

    def forget_running(self) -> None:
        """Forget where turns were sent that have not ended."""
        self._started.clear()

    def take(self) -> Mapping[CountKey, dict[str, int]]:
        """Return what was counted, and begin again at nothing; turns go on that have not ended."""
        counts, self._counts = self.counts, {}
        return counts

    def add(self, session: str, one: Event | Draft) -> None:
        """Count an event of a session; one that cannot be read counts nothing."""
        if one.type == "turn_started":
            self._add_start((session, one.id), one)
        elif one.type == "turn_ended":
            self._add_end((session, one.parent), one)

    def _add_start(self, turn: tuple[str, str], one: Event | Draft) -> None:
        body = _read_start(one.version, one.data)
        if body is None:
            return
        target = self._started[turn] = body.target or _NOWHERE
        counts = self._counts_of(one.at, target)
        if body.repeated:
            for name, count in {"turns": 1, **started_counts(body, one.parent)}.items():
                counts[name] += count
            return
        counts["turns"] += 1
        for made in body.replay:
            for name in _counted_names(kind_of(made))[0]:
                counts[name] += 1
        for made in new_decisions(body.replay, one.parent):
            for name in _counted_names(kind_of(made))[1]:
                counts[name] += 1

    def _add_end(self, turn: tuple[str, str], one: Event | Draft) -> None:
        body = _read_end(one.version, one.data)
        if body is None:
            return
        target = self._started.pop(turn, None)
        if target is None:
            started = self._find_start(*turn)
            target = (started.target if started else None) or Origin(model=body.model)
        usage = body.usage
        if one.version < _NEWEST_END:
            usage = usage_of(usage, version=one.version, dialect=target.dialect)
        if body.outcome is _COMPLETED and not target.endpoint.startswith(SIMULATED):
            if usage is not None and any(astuple(usage)):
                _add_tokens(self._counts_of(one.at, target), usage)
        elif more := ended_counts(body, usage, target.endpoint):
            counts = self._counts_of(one.at, target)
            for name, count in more.items():
                counts[name] += count

    def _counts_of(self, at: float, target: Origin) -> defaultdict[str, int]:
        if not self._begin <= at < self._end:
            at = at if 0 <= at < _LATEST else 0.0  # of no interval that anybody asks for
            self._begin = int(at // FINE) * FINE
            self._end = self._begin + FINE
        return self._new[self._begin, target.provider, target.model]


def _read_start(version: int, data: str) -> TurnStarted | None:
    try:
        if version == _NEWEST_START:
            return _started.decode(data)
        body = decode("turn_started", version, data)
    except UNREADABLE:
        return None
    return body if isinstance(body, TurnStarted) else None


def _read_end(version: int, data: str) -> TurnEnded | None:
    try:
        if version == _NEWEST_END:
            return _ended.decode(data)
        body = decode("turn_ended", version, data)
    except UNREADABLE:
        return None
    return body if isinstance(body, TurnEnded) else None


def body_of(event: Event | Draft) -> TurnStarted | TurnEnded | None:
    """Return the start or the end of a turn; None where it is something else, or damaged."""
    if event.type == "turn_started":
        return _read_start(event.version, event.data)
    return _read_end(event.version, event.data) if event.type == "turn_ended" else None
