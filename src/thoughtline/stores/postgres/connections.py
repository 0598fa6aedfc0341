"""The connections of a process to the database: one to write, three to read, none that listens.

No more are opened than are used at once.
Every statement stands alone: no transaction stays open, nothing is set for a session. So a pool in
between that hands out connections per transaction (pgbouncer) does no harm. A connection that
failed is replaced when it is next needed, after a pause while the server does not answer.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from thoughtline.errors import SecretMismatch, Unavailable
from thoughtline.stores.postgres.address import Address
from thoughtline.stores.postgres.failures import explain

READERS = 3
TIMEOUT = 10.0
"""Seconds that a statement may take; a server that is frozen does not end it by itself."""

SLOW_TIMEOUT = 3600.0
"""Seconds that a statement may take that looks at all there is."""

SLOWEST_LINE = 1 << 20
"""Bytes per second that a server takes at least, of a statement with much in it."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts to connect: at first, and at most."""

Greet = Callable[[asyncpg.Connection], Awaitable[None]]
"""Looks at a new connection before it is used; raises `StoreError` for a wrong database."""


T = TypeVar("T")


def _now() -> float:
    """Return the time by which this loop's timers go."""
    return asyncio.get_running_loop().time()


class _Pause:
    """When to try to connect again: after a time that doubles, with jitter."""

    def __init__(self) -> None:
        self._until = 0.0
        self._seconds = 0.0

    def failed(self) -> None:
        self._seconds = min(max(self._seconds * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self._until = _now() + self._seconds * random.uniform(0.5, 1.0)  # noqa: S311

    def worked(self) -> None:
        self._seconds = self._until = 0.0

    async def wait(self) -> None:
        if (left := self._until - _now()) > 0:
            await asyncio.sleep(left)


class _Slot:
    """A place for one connection."""

    def __init__(self) -> None:
        self.connection: asyncpg.Connection | None = None
        self.began = 0.0  # since when it runs a statement; 0: it runs none
        self.limit = 0.0  # seconds that this may take

    def is_late(self) -> bool:
        """Whether it runs a statement for too long."""
        return self.began > 0.0 and _now() - self.began > self.limit


class Connections:
    """Runs statements, each on a connection that is free."""

    def __init__(self, address: Address, greet: Greet, *, timeout: float = TIMEOUT) -> None:
        self._address = address
        self._greet = greet
        self._timeout = timeout
        self._pause = _Pause()
        self._writer = _Slot()
        self._writing = asyncio.Lock()
        self._free = [_Slot() for _ in range(READERS)]
        self._waiting: deque[asyncio.Future[_Slot]] = deque()
        self._slowly = asyncio.Lock()
        self._slots = [self._writer, *self._free]
        self._watchdog: asyncio.TimerHandle | None = None
        self.closed = False

    async def read(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        """Run a statement on one of the connections for reading."""
        slot = await self._take()
        try:
            return await self._run(slot, statement, args, self._timeout)
        finally:
            self._give_back(slot)

    async def slowly(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        """Run a statement that may look at all there is; one at a time, others go on beside it."""
        async with self._slowly:
            slot = await self._take()
            try:
                return await self._run(slot, statement, args, SLOW_TIMEOUT)
            finally:
                self._give_back(slot)

    async def write(self, statement: str, *args: Any, size: int = 0) -> list[asyncpg.Record]:
        """Run a statement on the connection for writing; what is large has more time for it."""
        async with self._writing:
            return await self._run(
                self._writer, statement, args, self._timeout + size / SLOWEST_LINE
            )

    async def patiently(self, seconds: float, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that may be done twice, for so long until a server answers.

        A server that restarts is back in seconds; going on without it is worse than waiting.
        """
        until = _now() + seconds
        while True:
            try:
                return await work()
            except SecretMismatch:
                raise
            except Unavailable:
                if self.closed or _now() >= until:
                    raise
                await asyncio.sleep(FIRST_PAUSE)  # and the pause before connecting, which grows

    async def _take(self) -> _Slot:
        if self._free:
            return self._free.pop()
        waiting: asyncio.Future[_Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._give_back(waiting.result())
            raise

    def _give_back(self, slot: _Slot) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(slot)
                return
        self._free.append(slot)

    async def _run(
        self, slot: _Slot, statement: str, args: tuple[Any, ...], limit: float
    ) -> list[asyncpg.Record]:
        if self.closed:
            raise Unavailable("this store is closed; open it again")
        connection = slot.connection
        try:
            if connection is None or connection.is_closed():
                connection = slot.connection = self._idle_one() or await self._open()
                if self.closed:  # meanwhile
                    self._drop(slot)
                    raise Unavailable("this store is closed; open it again")
            slot.began, slot.limit = _now(), limit
            if self._watchdog is None:
                self._watch()
            found: list[asyncpg.Record]
            if self._address.prepared:
                found = await connection.fetch(statement, *args)
            else:  # in a transaction: or the next step may meet another server
                async with connection.transaction():
                    found = await connection.fetch(statement, *args)
            slot.began = 0.0
            return found
        except BaseException as error:
            late = slot.is_late()
            slot.began = 0.0
            failure = explain(TimeoutError() if late else error, self._address)
            if failure is None or isinstance(failure, Unavailable):
                self._drop(slot)  # what it is in the middle of is not known
            if failure is None:
                raise
            raise failure from error

    def _idle_one(self) -> asyncpg.Connection | None:
        """Take a connection from where it is not used: a server may have none left to give."""
        for slot in self._slots:
            connection = slot.connection
            if connection is not None and not slot.began and not connection.is_closed():
                slot.connection = None
                return connection
        return None

    def _watch(self) -> None:
        """Cut connections that run a statement for too long; a frozen server does not end it."""
        self._watchdog = None
        busy = [slot for slot in self._slots if slot.began]
        for slot in busy:
            if slot.connection is not None and slot.is_late():
                slot.connection.terminate()
        if busy:
            loop = asyncio.get_running_loop()
            self._watchdog = loop.call_later(min(self._timeout / 5, 1.0), self._watch)

    async def _open(self) -> asyncpg.Connection:
        """Connect. Who stops waiting leaves no half-open connection behind."""
        opening = asyncio.ensure_future(self._connect())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_discard)
            raise

    async def _connect(self) -> asyncpg.Connection:
        await self._pause.wait()
        try:
            connection = await self._address.connect()
            try:
                await self._greet(connection)
            except BaseException:
                connection.terminate()
                raise
        except Exception:
            self._pause.failed()
            raise
        self._pause.worked()
        return connection

    @asynccontextmanager
    async def briefly(self, connection: asyncpg.Connection) -> AsyncIterator[None]:
        """Look at a connection in one transaction, and cut it where no answer comes in time."""
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._timeout, connection.terminate)
        try:
            async with connection.transaction():
                yield
        except Exception as error:
            if loop.time() >= limit.when():
                raise TimeoutError from error
            raise
        finally:
            limit.cancel()

    def _drop(self, slot: _Slot) -> None:
        if slot.connection is not None:
            slot.connection.terminate()
            slot.connection = None

    async def close(self) -> None:
        """Close all connections."""
        self.closed = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        for slot in self._slots:
            connection, slot.connection = slot.connection, None
            if connection is not None and not connection.is_closed():
                try:
                    await connection.close(timeout=1.0)
                except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    connection.terminate()


def _discard(opening: asyncio.Task[asyncpg.Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().terminate()
