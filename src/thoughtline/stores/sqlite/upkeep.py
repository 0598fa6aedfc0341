"""Long work on the file, in slices: deleting, clearing, erasing, and keeping summaries up to date.

A reader finds what the next slice is about, and the writer does it in one short transaction. What
others append in the meantime is written between two slices, so nobody waits for the whole.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.stores.base import EntryFilter, Progress
from thoughtline.stores.sqlite import entries, erasure, purge, summaries, turn_counts
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.fresh_counts import FreshCounts
from thoughtline.stores.sqlite.writer import Work

Run = Callable[[Work[Any]], Awaitable[Any]]
"""Runs a function with a connection, and returns its result."""

CHECKPOINT_EVERY = 16
"""Slices after which the write-ahead log is copied into the file."""

MAX_BEHIND = 500
"""Index entries that are not summarised, after which a reader has them summarised."""


class Upkeep:
    """Does long work with a reader and the writer of a store."""

    def __init__(self, read: Run, write: Run, clock: Clock, fresh: FreshCounts) -> None:
        self._read = read
        self._write_slice = write
        self._slices = 0
        self._clock = clock
        self._fresh = fresh
        self._task: asyncio.Task[None] | None = None

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

    # -- summaries ---------------------------------------------------------------------------

    async def summarise(self) -> None:
        """Summarise everything that is not summarised yet."""
        more = True
        while more:
            more = await self._write(summaries.add_entries)
        await self._count_turns()

    async def _count_turns(self) -> None:
        """Count the turns that are not counted yet: from the file those that are not fresh."""
        more = True
        while more:
            fresh = self._fresh.begin()
            until = turn_counts.MAX_POSITION if fresh is None else fresh
            counted = await self._read(partial(turn_counts.read_slice, until=until))
            if counted.last > counted.after:
                more = await self._add_counts(counted) or fresh is not None
            elif counted.last == fresh:
                more = await self._add_counts(self._fresh.take())
            else:  # somebody has counted beyond what is fresh
                more = fresh is not None
                self._fresh.drop()

    async def _add_counts(self, counted: turn_counts.EventCounts) -> bool:
        now = self._clock.wall()
        return bool(await self._write(partial(turn_counts.add_counts, counted=counted, now=now)))

    def summarise_soon(self) -> None:
        """Begin to summarise in the background, unless that is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._summarise_quietly())

    async def _summarise_quietly(self) -> None:
        with suppress(StoreError):  # the next reader will ask again
            await self.summarise()

    async def close(self) -> None:
        """Stop summarising; the rest is done next time."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


def _checkpoint(db: Connection) -> None:
    """Copy what can be copied of the write-ahead log into the file, without blocking anybody."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def truncate_log(db: Connection) -> bool:
    """Empty the write-ahead log, which has what was overwritten since; whether nobody reads it."""
    ((busy, *_),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return not busy
