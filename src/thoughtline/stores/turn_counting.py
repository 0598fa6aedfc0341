"""What became of thoughts per interval, counted by the process that writes it.

Who writes a batch knows what is in it, and counts it in memory; the sums are added to the store's
own a few seconds later, and before somebody here reads them. So an append writes nothing for them,
and what a process that is killed had not added is missing in a chart.
"""

from collections.abc import Iterable, Mapping, Sequence

from thoughtline.log.events import Draft, TurnStarted
from thoughtline.log.turn_counts import KEPT, TurnCounter

ADD_EVERY = 10.0
"""Seconds after which what was counted is added to the store."""
MAX_RUNNING = 10_000
"""Turns without an end whose starts are remembered."""

TurnPlace = tuple[str, str]
"""The session and the id of a turn."""
CountRow = tuple[int, int, str, str, str, int]
"""Length and beginning of an interval, provider, model, name and count."""


class TurnCounting:
    """The counts of what was written, until they are in the store."""

    def __init__(self) -> None:
        self._counter = TurnCounter(lambda session, turn: self._starts.get((session, turn)))
        self._starts: Mapping[TurnPlace, TurnStarted] = {}
        self._late: list[tuple[str, Draft]] = []  # ends of turns that began elsewhere, or long ago
        self._left: list[CountRow] = []  # could not be added

    def __bool__(self) -> bool:
        return bool(self._left or self._late or self._counter.intervals)

    def add(self, session: str, drafts: Iterable[Draft]) -> None:
        """Count what was written."""
        for one in drafts:
            if one.type == "turn_ended" and not self._counter.knows((session, one.parent)):
                self._late.append((session, one))
            else:
                self._counter.add(session, one)
        if self._counter.running > MAX_RUNNING:
            self._counter.forget_running()

    @property
    def unknown(self) -> set[TurnPlace]:
        """The turns whose start is asked for: it says where they were sent."""
        return {(session, one.parent) for session, one in self._late}

    def take(self, starts: Mapping[TurnPlace, TurnStarted], now: float) -> list[CountRow]:
        """Return what is to be added, given the starts that could be found."""
        self._starts, late, self._late = starts, self._late, []
        for session, one in late:
            self._counter.add(session, one)
        self._starts = {}
        rows, self._left = self._left, []
        for key, counts in self._counter.take().items():
            seconds, at, *_ = key
            if at + seconds >= now - KEPT[seconds]:
                rows += [(*key, name, count) for name, count in counts.items()]
        return rows

    def give_back(self, rows: Sequence[CountRow]) -> None:
        """Take back what could not be added."""
        self._left += rows
