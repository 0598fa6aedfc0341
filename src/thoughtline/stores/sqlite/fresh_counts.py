"""The counts of what this process has just written: for them, no file has to be read.

Who writes a row knows what is in it, and need not find, open and decode it a moment later. So the
writer's thread counts a group when it has answered those who wait for it. The counts hold for the
rows between two positions, all of them written here: where another process has written in between,
or the start of a turn is only in the file, they begin again, and `turn_counts` reads the rest.
"""

import threading
from collections.abc import Iterable

from thoughtline.log.events import TurnStarted
from thoughtline.log.turn_counts import TurnCounter
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite.inserts import InsertBatch
from thoughtline.stores.sqlite.turn_counts import EventCounts

MAX_RUNNING = 10_000
"""Turns without an end whose starts are remembered."""
MAX_INTERVALS = 1_000
"""Intervals, each for one provider and model, that are held."""


class _StartElsewhereError(Exception):
    """The start of a turn is not known here."""


def _find_start(*_: object) -> TurnStarted | None:
    raise _StartElsewhereError


class FreshCounts:
    """Counts what is written, once somebody has asked for it.

    The writer's thread adds, event loops take.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counter = TurnCounter(_find_start)
        self._wanted = False
        self._after = self._last = -1  # what is counted is between these positions

    def add(self, inserts: Iterable[InsertBatch], first: int, last: int) -> None:
        """Count what a transaction has written: all events of these positions."""
        if not self._wanted:
            return
        with self._lock:
            if first != self._last + 1:  # others have written meanwhile
                self._begin(first - 1)
            try:
                for insert in inserts:
                    self._count(insert.batch)
            except Exception:  # noqa: BLE001 — then it is counted from the file, or fails there
                self._begin(last)
            if self._counter.intervals > MAX_INTERVALS:
                self._begin(last)
            if self._counter.running > MAX_RUNNING:
                self._counter.forget_running()
            self._last = last

    def begin(self) -> int | None:
        """Begin to count, if that has not begun; return the position after which it is counted."""
        with self._lock:
            self._wanted = True
            return self._after if self._last > self._after else None

    def take(self) -> EventCounts:
        """Return what is counted; what is written from now on is counted next time."""
        with self._lock:
            taken = EventCounts(self._after, self._last, self._counter.take(), more=False)
            self._after = self._last
            return taken

    def drop(self) -> None:
        """Forget what is counted: it is counted otherwise."""
        with self._lock:
            self._begin(self._last)

    def _count(self, batch: Batch) -> None:
        session = batch.session
        for one in batch.drafts:
            if one.type == "turn_started":
                self._counter.add_start(
                    (session, one.id), one.parent, one.at, one.version, one.data
                )
            elif one.type == "turn_ended":
                self._counter.add_end((session, one.parent), 0, one.at, one.version, one.data)

    def _begin(self, after: int) -> None:
        self._counter.take()
        self._after = self._last = after
