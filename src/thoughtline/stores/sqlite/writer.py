"""The thread that writes, many batches to a commit.

Callers of any event loop put batches (or functions that want the connection) into a queue. The
thread is woken when their loop has run its ready callbacks, so that what a loop does at once is one
group. It writes what has gathered in one immediate transaction, commits, checks that the file at
the path is still the one it wrote to, and only then answers. When something in a group fails, the
group is written once more with every batch in a savepoint of its own, so that only the culprit
fails. The thread survives every error: the next job opens the file again if necessary.

Hits are not written as they come: they are collected and written together, every `touch_every`, and
so are the counts of turns, every `ADD_EVERY`.

The writer also knows whether another process has written (`changes`): SQLite's `data_version` of
its connection changes by the commits of others and not by its own, and this process has no others.
It need not be asked while the WAL index says that nobody has committed since it was.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import rows, statements, turn_counts
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.file import DatabaseFile, code, is_file_trouble
from thoughtline.stores.sqlite.inserts import InsertBatch, pack_batch
from thoughtline.stores.sqlite.just_written import JustWritten
from thoughtline.stores.sqlite.subscribers import Subscribers
from thoughtline.stores.sqlite.wal_index import WalIndex
from thoughtline.stores.turn_counting import ADD_EVERY, CountRow, TurnCounting

T = TypeVar("T")
Work = Callable[[Connection], T]

MAX_BATCHES = 256
MAX_EVENTS = 4096
"""Most batches and events of one transaction, so that the first one does not wait long."""

_TOUCH = """
UPDATE sessions SET touched = max(touched, hits.column2)
FROM (VALUES {slots}) AS hits WHERE sessions.session = hits.column1
"""


class _Job(Struct):
    """A batch or a function, the future of the caller, and the result."""

    work: InsertBatch | Batch | Work[Any]  # a batch that is not packed yet is heavy
    future: asyncio.Future[Any]
    result: object = None


def _set_results(jobs: Sequence[_Job]) -> None:
    """Set the results of the futures; runs in their loop."""
    for job in jobs:
        if job.future.done():  # cancelled: the work is done all the same
            continue
        if isinstance(job.result, Exception):
            job.future.set_exception(job.result)
        else:
            job.future.set_result(job.result)


class Writer:
    """The writer's thread, its queue and its connection."""

    def __init__(
        self, file: DatabaseFile, clock: Clock, subscribers: Subscribers, *, touch_every: float
    ) -> None:
        self._file = file
        self._clock = clock
        self._subscribers = subscribers
        self._touch_every = int(touch_every * 1e9)
        self._jobs: deque[_Job] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()  # there are jobs or hits, or it is closing
        self._waking: set[asyncio.AbstractEventLoop] = (
            set()
        )  # loops that are about to wake the thread
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._hits: dict[str, float] = {}
        self._hits_due = 0  # monotonic time at which the hits are to be written
        self.counting = TurnCounting()
        self._counts_due = 0
        self._db: Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._in_use = threading.Lock()  # the connection is used, by the thread or by `changes`
        self._exclusive = False  # the thread holds the file's write lock: nobody else commits
        self._failed_db: Connection | None = None  # still sees what others write
        self._data_version = 0  # SQLite's, of the connection
        self._wal_index: WalIndex | None = None
        self._header: bytes | None = None  # of the WAL index, when that was the version
        self._changes = 0
        self.just_written = JustWritten()

    # -- for event loops ---------------------------------------------------------------------

    def append(self, batch: InsertBatch | Batch) -> "asyncio.Future[int]":
        """Write a batch, together with others; returns the seq before its first event.

        One that is heavy is packed here, where the event loop does not wait for it.
        """
        return self._submit(batch)

    def run(self, work: Work[T]) -> "asyncio.Future[T]":
        """Run a function in a transaction of its own; collected hits are written before."""
        return self._submit(work)

    def _submit(self, work: InsertBatch | Batch | Work[Any]) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._closing:
                raise Unavailable("this store is closed; open it again")
            if self._thread is None:
                self._start()
            self._jobs.append(_Job(work, future))
            if loop not in self._waking:
                self._waking.add(loop)
                loop.call_soon(self._wake_thread, loop)
        return future

    def _wake_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waking.discard(loop)
        if self._wake.empty():  # else the thread is being woken and takes all jobs
            self._wake.put(None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="thoughtline-writer", daemon=True)
        self._thread.start()

    def touch(self, sessions: Iterable[str], at: float) -> None:
        """Note that these sessions were hit."""
        with self._lock:
            waiting = bool(self._hits)
            self._hits.update(dict.fromkeys(sessions, at))
            if self._hits and not waiting and not self._closing:
                self._hits_due = self._clock.mono() + self._touch_every
                if self._thread is None:
                    self._start()
                self._wake.put(None)

    @property
    def hits(self) -> frozenset[str]:
        """Sessions that were hit, and whose hits are not written yet."""
        with self._lock:
            return frozenset(self._hits)

    @property
    def touched(self) -> bool:
        """Whether there are hits that are not written yet."""
        return bool(self._hits)

    def changes(self) -> tuple[int, bool]:
        """Return a number that rises when another process has written, and whether it is certain.

        It is not while the file was never open, and while its own transaction begins or ends.
        """
        if self._exclusive or self._unmoved():
            return self._changes, True
        if not self._in_use.acquire(blocking=False):
            return self._changes, False
        try:
            certain = self._count_change()
        finally:
            self._in_use.release()
        return self._changes, certain

    def _unmoved(self) -> bool:
        """Whether it is certain that nobody has committed since changes were counted."""
        index, header = self._wal_index, self._header
        return index is not None and index.reads(header)

    def _count_change(self) -> bool:
        """Count a change that others made; returns whether that can be told."""
        db, index = self._db or self._failed_db, self._wal_index
        if db is None:
            return False
        header = index.header() if index else None  # before: what is committed now is counted again
        try:
            (version,) = db.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return False
        if version != self._data_version:
            self._data_version = version
            self._changes += 1
        self._header = header
        return True

    async def close(self) -> None:
        """Write what is queued, and end the thread."""
        with self._lock:
            self._closing = True
            thread = self._thread
            if thread:
                self._wake.put(None)
        if thread:
            await asyncio.to_thread(thread.join)

    # -- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing or self._jobs:
            self._serve_next()
        self._write_noted()
        with self._in_use:
            self._disconnect()
            self._close_failed()
            self._wal_index = None

    def _serve_next(self) -> None:
        """Wait for jobs and do them; nothing holds them when this returns."""
        timeout = None
        if due := self._due():
            now = self._clock.mono()
            if now >= due:
                self._write_noted()
            timeout = max(due - now, 0) / 1e9
        if not self._jobs:
            try:
                self._wake.get(timeout=timeout)
            except Empty:
                return
        if jobs := self._take():
            self._serve(jobs)

    def _due(self) -> int:
        """Return when hits or counts are to be written; 0: there are none."""
        due = [self._hits_due] if self._hits else []
        return min([*due, self._counts_due] if self.counting else due, default=0)

    def _take(self) -> list[_Job]:
        """Take the batches that are queued next to one another, or one function."""
        jobs: list[_Job] = []
        events = 0
        while self._jobs and len(jobs) < MAX_BATCHES and events < MAX_EVENTS:
            job = self._jobs[0]
            if isinstance(job.work, Batch):
                job.work = _packed(job.work)
            if not isinstance(job.work, InsertBatch):
                return jobs or [self._jobs.popleft()]
            events += len(job.work.batch.drafts)
            jobs.append(self._jobs.popleft())
        return jobs

    def _serve(self, jobs: Sequence[_Job]) -> None:
        """Do the jobs and set their results, or the error."""
        written: Sequence[InsertBatch] = ()
        work = jobs[0].work
        try:
            if isinstance(work, InsertBatch):
                written = self._append(jobs)
            elif not isinstance(work, Batch):  # those are packed when they are taken
                jobs[0].result = self._do(work)
        except Exception as error:  # noqa: BLE001 — the thread must outlive every error
            failure = self._file.explain(error)
            for job in jobs:
                job.result = failure
        waiting: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in jobs:
            waiting.setdefault(job.future.get_loop(), []).append(job)
        for loop, done in waiting.items():
            try:
                loop.call_soon_threadsafe(_set_results, done)
            except RuntimeError:  # that loop is closed: nobody waits
                continue
        if written:
            self._count(written)

    def _count(self, written: Sequence[InsertBatch]) -> None:
        """Count what was written, when those who wait for it have their answer."""
        if not self.counting:
            self._counts_due = self._clock.mono() + int(ADD_EVERY * 1e9)
        for insert in written:
            self.counting.add(insert.batch.session, insert.batch.drafts)

    def _do(self, work: Work[Any]) -> object:
        """Run a function, in a transaction of its own."""
        self._write_noted()
        self.just_written.clear()
        return self._transact(work)

    def _append(self, jobs: Sequence[_Job]) -> Sequence[InsertBatch]:
        """Write the batches of a group; returns those that were not there yet."""
        inserts = [job.work for job in jobs if isinstance(job.work, InsertBatch)]
        now = self._clock.wall()
        try:
            # The changes are those before the commit: what others commit right after it ends it.
            written, changes = self._transact(
                lambda db: (self._write(db, inserts, now), self._changes)
            )
        except Exception as error:
            if len(inserts) == 1 or is_file_trouble(error):
                raise
            self.just_written.clear()
            results, appended = self._transact(lambda db: self._one_by_one(db, inserts, now))
            self._finish(jobs, results, appended)
            return appended
        if written.hits:
            self.touch(written.hits, now)
        if written.names is not None:
            self.just_written.add(written.appended, changes, written.names, written.quarantined)
        self._finish(jobs, written.results, written.appended)
        return written.appended

    def _finish(
        self, jobs: Sequence[_Job], results: Sequence[object], appended: Sequence[InsertBatch]
    ) -> None:
        for job, result in zip(jobs, results, strict=True):
            job.result = result
        if self._subscribers.waiting:
            self._subscribers.notify({insert.batch.session for insert in appended})

    def _write(
        self, db: Connection, batches: Sequence[InsertBatch], now: float
    ) -> rows.WriteResult:
        written = rows.write(db, batches, now, now - self._touch_every / 1e9)
        if self._subscribers.waiting and written.first is not None:
            self._subscribers.announce(written.first)
        return written

    def _one_by_one(
        self, db: Connection, batches: Sequence[InsertBatch], now: float
    ) -> tuple[list[object], list[InsertBatch]]:
        results: list[object] = []
        appended: list[InsertBatch] = []
        for batch in batches:
            db.execute("SAVEPOINT batch")
            try:
                written = self._write(db, [batch], now)
                results += written.results
                appended += written.appended
                self.touch(written.hits, now)
            except Exception as error:
                if is_file_trouble(error):
                    raise
                db.execute("ROLLBACK TO batch")
                db.cipher.renew()
                results.append(self._file.explain(error))
            db.execute("RELEASE batch")
        return results, appended

    def _write_noted(self) -> None:
        """Write hits and counts together, if that can be: otherwise they are written later."""
        with self._lock:
            hits, self._hits = self._hits, {}
        if not hits and not self.counting:
            return
        values = list(chain.from_iterable(hits.items()))
        now, counts = self._clock.wall(), list[CountRow]()

        def write(db: Connection) -> None:
            statements.execute(db, _TOUCH, "(?, ?)", values)
            counts.extend(turn_counts.take(db, self.counting, now))
            turn_counts.add(db, counts, now)

        try:
            self._transact(write)
        except (sqlite3.Error, StoreError):
            self.counting.give_back(counts)
            with self._lock:
                self._hits = hits | self._hits
            self._hits_due = self._clock.mono() + self._touch_every
            self._counts_due = self._clock.mono() + int(ADD_EVERY * 1e9)

    # -- the connection ----------------------------------------------------------------------

    def _transact(self, work: Work[T]) -> T:
        """Run the work in one immediate transaction; returns when it is committed."""
        with self._in_use:
            db = self._connection()
            try:
                db.execute("BEGIN IMMEDIATE")
                if not self._unmoved():
                    self._count_change()
                self._exclusive = True
                db.cipher.renew()
                result = work(db)
                self._exclusive = False  # before the lock is released
                db.execute("COMMIT")
                self._count_change()
            except BaseException as error:
                self._exclusive = False
                with suppress(sqlite3.Error):
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                if is_file_trouble(error) and code(error) != sqlite3.SQLITE_BUSY:
                    self._disconnect()
                raise
            self._check_same_file()
        return result

    def _connection(self) -> Connection:
        if self._db is not None:
            self._check_same_file()
            return self._db
        existed = self._file.inode()
        db = self._file.for_writing()
        (version,) = db.execute("PRAGMA data_version").fetchone()
        replaced = existed not in {None, self._inode}
        if self._inode is not None and (replaced or not self._count_change()):
            self._changes += 1  # others may have written while it was not open
        self._close_failed()
        self._db, self._data_version, self._inode = db, version, self._file.inode()
        self._wal_index, self._header = WalIndex(self._file.path), None
        return db

    def _check_same_file(self) -> None:
        """Raise when the file was removed or replaced: SQLite would still write to the old one."""
        if self._file.inode() != self._inode:
            self._disconnect()
            raise self._file.gone()

    def _disconnect(self) -> None:
        """Give the connection up: the next job opens a new one."""
        if self._db is not None:
            self._close_failed()
            self._failed_db, self._db = self._db, None
            self._header = None

    def _close_failed(self) -> None:
        if self._failed_db is not None:
            with suppress(sqlite3.Error):
                self._failed_db.close()
        self._failed_db = None


def _packed(batch: Batch) -> InsertBatch | Work[Any]:
    """Pack a heavy batch; where that fails, the error is the result of its job."""
    try:
        return pack_batch(batch)
    except Exception as error:  # noqa: BLE001 — the thread must outlive every error
        failed = error

    def fail(_: Connection) -> None:
        raise failed

    return fail
