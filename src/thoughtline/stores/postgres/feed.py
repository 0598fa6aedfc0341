"""New events as they are written: what this process writes wakes a feed, others are polled for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from thoughtline.errors import Unavailable
from thoughtline.log.events import Event
from thoughtline.stores.postgres import queries
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.writer import GroupWriter


class Watcher:
    """Waits for events of one session, or of all of them (None)."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.first: int | None = None  # the first transaction of this process since it came
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake the watcher."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Wait to be woken, or for this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


class Watchers:
    """All watchers of a store."""

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
        """Wake the watchers of these sessions: a transaction of theirs is committed."""
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


class EventFeed:
    """Reads on when a watcher is woken, and every `poll` seconds what others have written."""

    def __init__(
        self,
        connections: Connections,
        seals: Seals,
        writer: GroupWriter,
        own: Callable[[], tuple[int, int]],
        *,
        poll: float,
    ) -> None:
        """`own` tells the era, and the number of the last transaction of this process."""
        self._connections = connections
        self._seals = seals
        self._writer = writer
        self.watchers = Watchers()
        self._own = own
        self._poll = poll

    async def watch(
        self, session: str | None, after: int, tenant: str | None
    ) -> AsyncIterator[Event]:
        """Yield events as they are written: of one session, or of all of them (None)."""
        if self.watchers.closed:
            raise Unavailable("this store is closed; open it again")
        with self.watchers.add(session) as watcher:
            if session is None:
                after = await self._first_position(watcher)
            elif tenant is not None and await self._is_of_another(session, tenant):
                after = 1 << 31  # somebody else's: there is nothing to see
            while not self.watchers.closed:
                events: list[tuple[Event, str | None, int]] = []
                with suppress(Unavailable):  # a live feed outlasts a short time without a database
                    events = await self._more(session, after)
                for event, owner, position in events:
                    after = position
                    if tenant is None or owner is None or owner == tenant:
                        yield event
                if not events:
                    await watcher.wait(self._poll)

    async def _is_of_another(self, session: str, tenant: str) -> bool:
        return await queries.owner(self._connections, session) not in {None, tenant}

    async def _more(self, session: str | None, after: int) -> list[tuple[Event, str | None, int]]:
        if session is not None:
            events = await queries.read(self._seals, session, max(after, -1), 500)
            return [(event, None, event.seq) for event in events]
        page = await queries.history(self._seals, None, after=after, own=self._own())
        return list(page.events)

    async def _first_position(self, watcher: Watcher) -> int:
        """Return the position after which events are new to a watcher that just came."""
        try:
            end = (await queries.history(self._seals, (), after=0, own=self._own())).position
        except Unavailable:
            if self.watchers.closed:
                return 0
            raise
        await self._writer.settled()  # what it was writing meanwhile is new, too
        if watcher.first is None:
            return end
        return min(end, queries.LogPlace(self._own()[0], watcher.first).number())
