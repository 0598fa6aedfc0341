"""Who is waiting for events, and how the writer wakes them.

A bell and no post: what was written is read from the file by the one who was woken, so that a slow
watcher costs nothing and events of this and of other processes take the same way.
`announce` and `ring` are called by the writer's thread, the rest by event loops.
"""

import asyncio
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress


class Ear:
    """One who waits, for one session or for all of them (None)."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.first: int | None = None  # position of the first event written since it listens
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()

    def ring(self) -> None:
        """Wake it, from any thread."""
        with suppress(RuntimeError):  # its loop is closed: nobody is there any more
            self._loop.call_soon_threadsafe(self._bell.set)

    async def wait(self, seconds: float) -> None:
        """Until it rings, or for so long: other processes do not ring."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        self._bell.clear()


class Feed:
    """All who wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ears: set[Ear] = set()
        self.closed = False

    @contextmanager
    def listen(self, session: str | None) -> Iterator[Ear]:
        """Be woken from now on."""
        ear = Ear(session)
        with self._lock:
            self._ears.add(ear)
        try:
            yield ear
        finally:
            with self._lock:
                self._ears.discard(ear)

    def announce(self, first: int) -> None:
        """Events from this position on are about to be committed."""
        with self._lock:
            for ear in self._ears:
                if ear.first is None or first < ear.first:
                    ear.first = first

    def ring(self, sessions: Collection[str]) -> None:
        """They are committed."""
        with self._lock:
            for ear in self._ears:
                if ear.session is None or ear.session in sessions:
                    ear.ring()

    def close(self) -> None:
        """Nothing more will come."""
        with self._lock:
            self.closed = True
            for ear in self._ears:
                ear.ring()
