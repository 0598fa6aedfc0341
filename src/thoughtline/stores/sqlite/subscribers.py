"""Who waits for new events, and how the writer wakes them.

A subscriber is only woken: it reads the new events from the file itself. So a slow one costs
nothing, and events of this process and of others take the same path. `announce` and `notify` are
called by the writer's thread, the other methods by event loops.
"""

import asyncio
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress


class Subscriber:
    """Waits for events of one session, or of all of them (None)."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.first: int | None = None  # position of the first event written since it subscribed
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake the watcher, from any thread."""
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self, seconds: float) -> None:
        """Wait to be woken, or for this long: other processes do not wake it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


class Subscribers:
    """All subscribers of a store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting: set[Subscriber] = set()
        self.closed = False

    @contextmanager
    def subscribe(self, session: str | None) -> Iterator[Subscriber]:
        """Add a subscriber for the length of a `with` block."""
        subscriber = Subscriber(session)
        with self._lock:
            self.waiting.add(subscriber)
        try:
            yield subscriber
        finally:
            with self._lock:
                self.waiting.discard(subscriber)

    def announce(self, first: int) -> None:
        """Note that events from this position on are about to be committed."""
        with self._lock:
            for subscriber in self.waiting:
                if subscriber.first is None or first < subscriber.first:
                    subscriber.first = first

    def notify(self, sessions: Collection[str]) -> None:
        """Wake the subscribers of these sessions: their events are committed."""
        with self._lock:
            for subscriber in self.waiting:
                if subscriber.session is None or subscriber.session in sessions:
                    subscriber.wake()

    def close(self) -> None:
        """Wake everybody: no more events will come."""
        with self._lock:
            self.closed = True
            for subscriber in self.waiting:
                subscriber.wake()
