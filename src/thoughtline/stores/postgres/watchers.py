"""Who waits for new events: woken by what this process writes; what others write is polled for."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress


class Watcher:
    """Waits for events of one session, or of all of them (None)."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.first: int | None = None  # the first transaction of this process since it came
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake it."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Wait to be woken, or for this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


class Watchers:
    """All subscribers of a store."""

    def __init__(self) -> None:
        self._waiting: set[Watcher] = set()
        self.closed = False

    @contextmanager
    def add(self, session: str | None) -> Iterator[Watcher]:
        """Add a watcher for the length of a `with` block."""
        watcher = Watcher(session)
        self._waiting.add(watcher)
        try:
            yield watcher
        finally:
            self._waiting.discard(watcher)

    def notify(self, sessions: Collection[str], xid: int) -> None:
        """Wake the subscribers of these sessions: a transaction of theirs is committed."""
        for watcher in self._waiting:
            if watcher.first is None or xid < watcher.first:
                watcher.first = xid
            if watcher.session is None or watcher.session in sessions:
                watcher.wake()

    def close(self) -> None:
        """Wake everybody: no more events will come."""
        self.closed = True
        for watcher in self._waiting:
            watcher.wake()
