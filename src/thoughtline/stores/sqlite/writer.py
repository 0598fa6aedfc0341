"""The one thread that writes, many batches to a commit.

Callers of any event loop put batches (or functions that want the connection) into a queue, and the
bell is rung when their loop is through with what it had to do: the thread could not run before, and
what a loop does at once becomes one group. The thread takes what has gathered, writes it in one
immediate transaction, commits, sees that the file it wrote to is still the one at the path, and
only then answers. When something in a group fails, the group is written once more with every batch
in a savepoint of its own, so that only the culprit fails. Whatever happens, the thread goes on: the
next job opens the file again if need be.

Hits are not written as they come: they are collected and written together, now and then.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.sqlite import bulk, rows
from thoughtline.stores.sqlite.feed import Feed
from thoughtline.stores.sqlite.files import File, circumstances, code
from thoughtline.stores.sqlite.sheets import Sheet

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

GROUP = 256
EVENTS = 4096
"""Batches and events after which a transaction takes no more: the first must not wait long."""

_TOUCH = """
UPDATE sessions SET touched = max(touched, hits.column2)
FROM (VALUES {slots}) AS hits WHERE sessions.session = hits.column1
"""


class _Job(Struct):
    """A sheet or a function, who waits for it, and what came of it."""

    work: Sheet | Work[Any]
    future: asyncio.Future[Any]
    outcome: object = None


def _settle(jobs: Sequence[_Job]) -> None:
    """Hand over the outcomes; in the loop of those who wait."""
    for job in jobs:
        if job.future.done():  # cancelled: what was asked for has happened all the same
            continue
        if isinstance(job.outcome, Exception):
            job.future.set_exception(job.outcome)
        else:
            job.future.set_result(job.outcome)


class Writer:
    """The thread, its queue and its connection."""

    def __init__(self, file: File, clock: Clock, feed: Feed, *, touch_every: float) -> None:
        self._file = file
        self._clock = clock
        self._feed = feed
        self._touch_every = int(touch_every * 1e9)
        self._jobs: deque[_Job] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()  # there are jobs, or hits, or it is closing
        self._ringing: set[asyncio.AbstractEventLoop] = set()  # those that are about to
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._hits: dict[str, float] = {}
        self._due = 0  # monotonic time at which the hits are to be written
        self._db: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None

    # -- for event loops ---------------------------------------------------------------------

    def append(self, sheet: Sheet) -> "asyncio.Future[int]":
        """Write a batch, together with others; gives the seq before its first event."""
        return self._submit(sheet)

    def run(self, work: Work[T]) -> "asyncio.Future[T]":
        """Run a function in a transaction of its own; hits are written before."""
        return self._submit(work)

    def _submit(self, work: Sheet | Work[Any]) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._closing:
                raise Unavailable("this store is closed; open it again")
            self._start()
            self._jobs.append(_Job(work, future))
            if loop not in self._ringing:
                self._ringing.add(loop)
                loop.call_soon(self._ring, loop)
        return future

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._ringing.discard(loop)
        if self._bell.empty():  # else it is about to wake, and takes all there is
            self._bell.put(None)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="thoughtline-writer", daemon=True
            )
            self._thread.start()

    def touch(self, sessions: Iterable[str], at: float) -> None:
        """Remember that these sessions were hit."""
        with self._lock:
            waiting = bool(self._hits)
            self._hits.update(dict.fromkeys(sessions, at))
            if self._hits and not waiting and not self._closing:
                self._due = self._clock.mono() + self._touch_every
                self._start()
                self._bell.put(None)

    @property
    def touched(self) -> bool:
        """Whether there are hits that are not written yet."""
        return bool(self._hits)

    async def close(self) -> None:
        """Write what is queued, and end the thread."""
        with self._lock:
            self._closing = True
            thread = self._thread
            if thread:
                self._bell.put(None)
        if thread:
            await asyncio.to_thread(thread.join)

    # -- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            jobs = self._take()
            for group in _groups(jobs):
                self._serve(group)
            done = self._closing and not self._jobs
            if done or self._clock.mono() >= self._due:
                self._write_hits()
            if done:
                break
        self._drop()

    def _take(self) -> list[_Job]:
        """Wait for work (or until hits are due), then take what has gathered."""
        if not self._jobs:
            timeout = max(self._due - self._clock.mono(), 0) / 1e9 if self._hits else None
            with suppress(Empty):
                self._bell.get(timeout=timeout)
        jobs: list[_Job] = []
        events = 0
        while self._jobs and len(jobs) < GROUP and events < EVENTS:
            job = self._jobs.popleft()
            jobs.append(job)
            events += len(job.work.batch.drafts) if isinstance(job.work, Sheet) else 0
        return jobs

    def _serve(self, jobs: Sequence[_Job]) -> None:
        """Do the jobs and answer them, whatever comes."""
        try:
            if len(jobs) == 1 and not isinstance(jobs[0].work, Sheet):
                self._write_hits()
                jobs[0].outcome = self._transact(jobs[0].work)
            else:
                self._append(jobs)
        except Exception as error:  # noqa: BLE001 — the thread must outlive every error
            failure = self._file.explain(error)
            for job in jobs:
                job.outcome = failure
        waiting: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in jobs:
            waiting.setdefault(job.future.get_loop(), []).append(job)
        for loop, those in waiting.items():
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_settle, those)

    def _append(self, jobs: Sequence[_Job]) -> None:
        sheets = [job.work for job in jobs if isinstance(job.work, Sheet)]
        now = self._clock.wall()
        try:
            written = self._transact(lambda db: self._write(db, sheets, now))
            outcomes: list[object] = list(written.answers)
            sessions = written.sessions
        except Exception as error:
            if len(sheets) == 1 or circumstances(error):
                raise
            outcomes, sessions = self._transact(lambda db: self._one_by_one(db, sheets, now))
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.outcome = outcome
        self._feed.ring(sessions)

    def _write(self, db: sqlite3.Connection, sheets: Sequence[Sheet], now: float) -> rows.Written:
        written = rows.write(db, sheets, now)
        if written.first is not None:
            self._feed.announce(written.first)
        return written

    def _one_by_one(
        self, db: sqlite3.Connection, sheets: Sequence[Sheet], now: float
    ) -> tuple[list[object], frozenset[str]]:
        outcomes: list[object] = []
        sessions: frozenset[str] = frozenset()
        for sheet in sheets:
            db.execute("SAVEPOINT batch")
            try:
                written = self._write(db, [sheet], now)
                outcomes += written.answers
                sessions |= written.sessions
            except Exception as error:
                if circumstances(error):
                    raise
                db.execute("ROLLBACK TO batch")
                outcomes.append(self._file.explain(error))
            db.execute("RELEASE batch")
        return outcomes, sessions

    def _write_hits(self) -> None:
        with self._lock:
            hits, self._hits = self._hits, {}
        if not hits:
            return
        try:
            values = list(chain.from_iterable(hits.items()))
            self._transact(lambda db: bulk.execute(db, _TOUCH, "(?, ?)", values))
        except (sqlite3.Error, StoreError):
            with self._lock:
                self._hits = hits | self._hits
                self._due = self._clock.mono() + self._touch_every

    # -- the connection ----------------------------------------------------------------------

    def _transact(self, work: Work[T]) -> T:
        """Run the work in one immediate transaction; returns when it is committed for good."""
        db = self._connection()
        try:
            db.execute("BEGIN IMMEDIATE")
            result = work(db)
            db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if circumstances(error) and code(error) != sqlite3.SQLITE_BUSY:
                self._drop()  # whatever it was, a new connection will not remember it
            raise
        self._same_file()
        return result

    def _connection(self) -> sqlite3.Connection:
        if self._db is not None:
            self._same_file()
            return self._db
        self._db = self._file.for_writing()
        self._inode = self._file.inode()
        return self._db

    def _same_file(self) -> None:
        """SQLite goes on writing to a file that was removed; nobody would find that again."""
        if self._file.inode() != self._inode:
            self._drop()
            raise self._file.gone()

    def _drop(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None


def _groups(jobs: Iterable[_Job]) -> Iterator[list[_Job]]:
    """Neighbouring batches together, each function alone; the order stays."""
    group: list[_Job] = []
    for job in jobs:
        if isinstance(job.work, Sheet):
            group.append(job)
            continue
        if group:
            yield group
        yield [job]
        group = []
    if group:
        yield group
