"""A pool of connections that read, in a few threads beside the writer.

Readers never wait for the writer, nor the writer for them: each sees the file as it was when its
statement began. A connection goes back to the pool when its work is done, and is closed when
something went wrong or when another file is at the path.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from thoughtline.errors import Unavailable
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.file import DatabaseFile

T = TypeVar("T")


class _Lease(NamedTuple):
    """A connection, and the file that it was opened from."""

    db: Connection
    inode: tuple[int, int] | None
    reusable: bool


class ReaderPool:
    """Runs functions with a pooled connection, in its threads."""

    def __init__(self, file: DatabaseFile, count: int) -> None:
        self._file = file
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="thoughtline-reader")
        self._idle: deque[_Lease] = deque()
        self._closed = False
        self.opened = False  # whether the file was opened before

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run a function with a connection, in one of the threads."""
        if self._closed:
            raise Unavailable("this store is closed; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._do, work)

    def _do(self, work: Callable[[Connection], T]) -> T:
        try:
            lease = self._lease()
        except sqlite3.Error as error:
            raise self._file.explain(error) from error
        try:
            lease.db.cipher.renew()
            result = work(lease.db)
        except BaseException as error:
            lease.db.close()
            # No future takes a `StopIteration`: whoever waits for it would wait for ever.
            if isinstance(error, (sqlite3.Error, msgspec.MsgspecError, ValueError, StopIteration)):
                raise self._file.explain(error) from error
            raise
        if lease.reusable:
            self._idle.append(lease)
        else:
            lease.db.close()
        return result

    def _lease(self) -> _Lease:
        inode = self._file.inode()
        stale = False
        with suppress(IndexError):
            while True:
                lease = self._idle.pop()
                if lease.inode == inode:
                    return lease
                lease.db.close()
                stale = True
        if stale:
            raise self._file.gone()
        db, reusable = self._file.for_reading()
        self.opened = True
        return _Lease(db, inode, reusable)

    async def close(self) -> None:
        """Wait for running reads, then close all connections."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        while self._idle:
            self._idle.pop().db.close()
