"""Retention: which events of a turn are written, and when unused sessions are deleted.

`store.record` decides what is written: `sessions` writes everything; `thoughts` leaves out
messages, calls and results, and writes the thoughts, their bookkeeping and the hashes they are
found by; `off` holds that much in memory and writes nothing to disk.

`store.retention` slides: a session that is continued, or found again, stays. So does one that a
person made by library or command line, until they delete it. Where nothing is written to disk,
memory is the limit, and the older half is deleted when it is reached.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.gateway.telemetry import Log
from thoughtline.stores.base import Batch, Progress, Store

SPOKEN = frozenset(
    {"user_message", "assistant_message", "tool_call", "tool_result", "permission_decision"}
)
"""Types of events that hold what was said; replay does not read them."""
MIN_INTERVAL, MAX_INTERVAL = 60.0, 3600.0
"""Seconds between two sweeps."""

LOG_EVERY = 5.0
"""Seconds between two log lines about a sweep that takes long."""

BatchFilter = Callable[[Batch], Batch]


def record_filter(record: str) -> BatchFilter | None:
    """What the `store.record` setting leaves of a batch; None: all of it."""
    return None if record == "sessions" else thoughts_only


def thoughts_only(batch: Batch) -> Batch:
    """The batch without the events that hold what was said."""
    if not any(draft.type in SPOKEN for draft in batch.drafts):
        return batch
    return replace(batch, drafts=tuple(d for d in batch.drafts if d.type not in SPOKEN))


class Sweep:
    """Deletes sessions that nobody has used for the retention period, at intervals.

    A sweep that fails is logged, and tried again at the next interval.
    """

    def __init__(
        self,
        store: Store,
        *,
        retention: float,
        clock: Clock,
        log: Log,
        memory_limit: tuple[int, int] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._retention = retention  # seconds; 0: for ever
        self._clock = clock
        self._log = log
        self._memory_limit = memory_limit  # entries and characters, where nothing is on disk
        self._sleep = sleep

    @property
    def interval(self) -> float:
        """Seconds between two sweeps."""
        if self._memory_limit is not None:
            return MIN_INTERVAL
        return min(max(self._retention / 100, MIN_INTERVAL), MAX_INTERVAL)

    async def run(self) -> None:
        """Sweep until cancelled; at once, then at intervals."""
        while self._retention > 0 or self._memory_limit is not None:
            await self.once()
            await self._sleep(self.interval)

    async def once(self) -> int:
        """Sweep once; returns how many sessions were deleted."""
        deleted = 0
        try:
            if not await self._store.lease("sweep", self.interval):
                return 0  # another node does it
            if self._retention > 0:
                since = self._clock.wall() - self._retention
                deleted += await self._store.purge(untouched_since=since, progress=self._progress())
            if self._memory_limit is not None:
                deleted += await self._shrink(*self._memory_limit)
        except StoreError as error:
            self._log.warning("sweep", reason=str(error))
        if deleted:
            self._log.info("sweep", sessions=deleted)
        return deleted

    def _progress(self) -> Progress:
        """Log how far a long sweep is, from time to time."""
        told = self._clock.mono()

        def progress(done: int, total: int) -> None:
            nonlocal told
            if self._clock.mono() - told > LOG_EVERY * 1e9:
                told = self._clock.mono()
                self._log.info("sweeping", done=done, total=total)

        return progress

    async def _shrink(self, max_entries: int, max_chars: int) -> int:
        """Delete the older half of the sessions until the store is within its limits."""
        deleted = 0
        while True:
            stats = await self._store.stats()
            if stats.entries <= max_entries and stats.chars <= max_chars:
                return deleted
            listed = await self._store.sessions(limit=stats.sessions)
            middle = listed[(len(listed) - 1) // 2].touched if listed else 0.0
            removed = await self._store.purge(untouched_since=middle)
            if not removed:
                return deleted
            deleted += removed
