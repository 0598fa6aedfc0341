"""The sweep: what nobody has used for a while is deleted, now and then, beside the walk.

Retention slides: a conversation that is gone on with, or found again, stays. Where nothing is
written to a disk (`store.record = "off"`), memory is the limit, and the oldest half goes when it
is reached. A sweep that fails is reported and tried again at the next turn.
"""

import asyncio
from collections.abc import Awaitable, Callable

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.stores.base import Store
from thoughtline.telemetry import Log

SHORTEST, LONGEST = 60.0, 3600.0
"""Seconds between two sweeps, at least and at most."""


class Sweep:
    """Deletes what is too old."""

    def __init__(
        self,
        store: Store,
        *,
        retention: float,
        clock: Clock,
        log: Log,
        room: tuple[int, int] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._retention = retention  # seconds; 0: for ever
        self._clock = clock
        self._log = log
        self._room = room  # entries and characters, where memory is all there is
        self._sleep = sleep

    @property
    def interval(self) -> float:
        """Seconds between two sweeps."""
        if self._room is not None:
            return SHORTEST
        return min(max(self._retention / 100, SHORTEST), LONGEST)

    async def run(self) -> None:
        """Sweep until cancelled; at once, then at intervals."""
        while self._retention > 0 or self._room is not None:
            await self.once()
            await self._sleep(self.interval)

    async def once(self) -> int:
        """One sweep; how many sessions were deleted."""
        gone = 0
        try:
            if self._retention > 0:
                since = self._clock.wall() - self._retention
                gone += await self._store.purge(untouched_since=since)
            if self._room is not None:
                gone += await self._make_room(*self._room)
        except StoreError as error:
            self._log.warning("sweep", why=str(error))
        if gone:
            self._log.info("sweep", sessions=gone)
        return gone

    async def _make_room(self, entries: int, chars: int) -> int:
        gone = 0
        while True:
            stats = await self._store.stats()
            if stats.entries <= entries and stats.chars <= chars:
                return gone
            listed = await self._store.sessions(limit=stats.sessions)
            middle = listed[(len(listed) - 1) // 2].touched if listed else 0.0
            removed = await self._store.purge(untouched_since=middle)
            if not removed:
                return gone
            gone += removed
