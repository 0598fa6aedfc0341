"""Notes that a session is used: in the background, and again only after a while."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf

from thoughtline.errors import StoreError
from thoughtline.stores.postgres.connections import Connections

MAX_NOTED = 10_000
"""Sessions of which is known when their use was noted."""

_TOUCH = "SELECT touch($1, $2)"


class Hits:
    """Sessions that were used, and the task that writes it."""

    def __init__(
        self, connections: Connections, now: Callable[[], float | None], *, every: float
    ) -> None:
        """`every` is how many seconds a use is not noted again: each note is a write."""
        self._connections = connections
        self._now = now
        self._every = every
        self._noted: dict[bytes, float] = {}  # session → when its use was noted here
        self._sessions: dict[bytes, None] = {}
        self._at: float | None = None  # of the last hit, where time is given
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._sessions) or self._writing.locked()

    def add(self, session: bytes) -> None:
        """Note a use; it is written in the background."""
        now = time.monotonic()
        if now - self._noted.get(session, -inf) < self._every:
            return
        if len(self._noted) >= MAX_NOTED:
            self._noted.clear()
        self._noted[session] = now
        self._sessions[session] = None
        self._at = self._now()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self.try_to_write())

    async def try_to_write(self) -> None:
        """Write what was noted, if that can be: who reads needs no more."""
        with suppress(StoreError):  # the next look-up notes it again
            await self.write()

    async def write(self) -> None:
        """Write what was noted."""
        async with self._writing:
            if not self._sessions:
                return
            sessions, self._sessions = self._sessions, {}
            try:
                await self._connections.write(_TOUCH, list(sessions), self._at)
            except BaseException:
                self._sessions = sessions | self._sessions
                raise

    async def close(self) -> None:
        """Write what was noted, for the last time."""
        if self._task is not None:
            await asyncio.wait({self._task})
        await self.try_to_write()
