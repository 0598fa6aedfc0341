"""Long work on the file, in slices: deleting, clearing, erasing.

A reader finds what the next slice is about, and the writer does it in one short transaction. What
others append in the meantime is written between two slices, so nobody waits for the whole.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from thoughtline.stores.base import EntryFilter, Progress
from thoughtline.stores.sqlite import entries, erasure, purge
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.writer import Work

Run = Callable[[Work[Any]], Awaitable[Any]]
"""Runs a function with a connection, and returns its result."""

CHECKPOINT_EVERY = 16
"""Slices after which the write-ahead log is copied into the file."""


class Upkeep:
    """Does long work with a reader and the writer of a store."""

    def __init__(self, read: Run, write: Run) -> None:
        self._read = read
        self._write_slice = write
        self._slices = 0

    async def _write(self, work: Work[Any]) -> Any:
        """Do a slice. Every few slices a reader copies the log into the file.

        Else it grows until the writer has to do that within a commit, and appends wait for it.
        """
        result = await self._write_slice(work)
        self._slices += 1
        if self._slices % CHECKPOINT_EVERY == 0:
            await self._read(_checkpoint)
        return result

    # -- deleting ----------------------------------------------------------------------------

    async def purge(self, conditions: purge.PurgeFilter, progress: Progress | None) -> int:
        """Delete the sessions that match; returns how many."""
        for number in await self._read(purge.left_over):
            await self._take_apart(number)
        left = await self._read(partial(purge.list_sessions, conditions=conditions))
        total = sum(session.events for session in left)
        count = done = 0
        while left:  # repeat until nothing changes: an origin can go once its forks are gone
            removed: set[int] = set()
            for some in purge.slices(left):
                gone = await self._write(
                    partial(purge.remove, sessions=some, conditions=conditions)
                )
                for session in some:
                    if session.number in gone and session.long:
                        await self._take_apart(session.number)
                removed |= gone
                done += sum(session.events for session in some if session.number in gone)
                if progress is not None:
                    progress(done, total)
            if not removed:
                break
            count += len(removed)
            left = [session for session in left if session.number not in removed]
        return count

    async def _take_apart(self, number: int) -> None:
        while await self._write(partial(purge.remove_part, number=number)):
            pass

    async def forget(self, entry_filter: EntryFilter, progress: Progress | None) -> int:
        """Clear thought entries from the index; returns how many."""
        total = await self._read(partial(entries.count, entry_filter=entry_filter))
        last, count, done = entries.MAX_NUMBER, 0, 0
        while numbers := await self._read(
            partial(entries.next_matches, entry_filter=entry_filter, last=last)
        ):
            count += await self._write(
                partial(entries.forget, numbers=numbers, entry_filter=entry_filter)
            )
            last, done = numbers[-1] - 1, done + len(numbers)
            if progress is not None:
                progress(done, max(total, done))
        return count

    async def erase(self, entry_filter: EntryFilter, progress: Progress | None) -> int:
        """Erase thoughts from the log; returns how many."""
        position, count, more = 0, 0, True
        while more:
            page = await self._read(
                partial(erasure.read_page, entry_filter=entry_filter, after=position)
            )
            if page.rows:
                count += await self._write(partial(erasure.erase, page=page))
            position, more = page.position, page.more
            if progress is not None:
                progress(position if more else page.newest, page.newest)
        return count


def _checkpoint(db: Connection) -> None:
    """Copy what can be copied of the write-ahead log into the file, without blocking anybody."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def truncate_log(db: Connection) -> bool:
    """Empty the write-ahead log, which has what was overwritten since; whether nobody reads it."""
    ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy
