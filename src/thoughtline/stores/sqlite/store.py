"""The port's methods over one file. Which thread does what is decided here, SQL is elsewhere.

Durability. When `append` returns, its batch is committed to the file's write-ahead log:

- it survives the death of the process (`kill -9`, a crash, an out-of-memory kill), always;
- with `synchronous="full"` it also survives a power cut or a crash of the operating system, as far
  as the disk tells the truth about flushing;
- with `synchronous="normal"`, the default, a power cut may take the last moments before it: the
  newest commits since the log was last flushed, from the end backwards, each batch whole. What
  is left is a consistent file that ends a little earlier. It is never damaged by that.

`close` writes what is queued and flushes the log into the file. See docs/reference/durability.md.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Unavailable
from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.base import (
    ANY,
    EVERYTHING,
    Batch,
    Chapter,
    Cursor,
    Entry,
    Filter,
    Listing,
    Query,
    Stats,
    Summary,
)
from thoughtline.stores.sqlite import forgetting, purging, queries, searching
from thoughtline.stores.sqlite.feed import Ear, Feed
from thoughtline.stores.sqlite.files import File
from thoughtline.stores.sqlite.migrations import Absent
from thoughtline.stores.sqlite.readers import Readers
from thoughtline.stores.sqlite.sheets import sheet
from thoughtline.stores.sqlite.writer import Work, Writer

T = TypeVar("T")


def _nothing(_: object) -> None:
    """For the sake of what comes with it: the file is opened, hits are written."""


class SqliteStore:
    """A store in one file, shared by all processes of one machine that open it.

    Nothing is opened here: the first call does that, and when it fails, the next one tries again.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        synchronous: str = "normal",
        timeout: float = 5.0,  # seconds to wait for another process's lock
        readers: int = 2,
        poll: float = 0.25,  # seconds after which a watcher looks for other processes' events
        touch_every: float = 60.0,  # seconds for which hits are collected, then written
    ) -> None:
        self._clock = clock or SystemClock()
        self._poll = poll
        self._feed = Feed()
        self._file = File(Path(path), timeout=timeout, synchronous=synchronous)
        self._writer = Writer(self._file, self._clock, self._feed, touch_every=touch_every)
        self._readers = Readers(self._file, readers)

    async def append(self, batch: Batch) -> list[Event]:
        try:
            made = sheet(batch)
        except Exception as error:
            raise self._file.explain(error) from error
        return facts.number(batch, await self._writer.append(made))

    async def _read(self, work: Work[T]) -> T:
        try:
            return await self._readers.run(work)
        except Absent:
            if self._readers.opened and self._file.inode() is None:
                raise self._file.gone() from None  # a reader does not replace a file that is gone
            await self._writer.run(_nothing)
            return await self._readers.run(work)

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        return await self._read(partial(queries.read, session=session, after=after, limit=limit))

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        if not names:
            return {}
        found = await self._read(partial(queries.find, tenant=tenant, names=names))
        hit = {memory.session for memories in found.values() for memory in memories}
        if hit:
            self._writer.touch(hit, self._clock.wall())
        return found

    async def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        if self._feed.closed:
            raise Unavailable("this store is closed; open it again")
        with self._feed.listen(session) as ear:
            if session is None:
                after = await self._now(ear)
            while not self._feed.closed:
                page = await self._page(session, after)
                for row in page:
                    after = row.position if session is None else row.event.seq
                    if tenant in {None, row.tenant}:
                        yield row.event
                if len(page) < queries.PAGE:
                    await ear.wait(self._poll)

    async def _now(self, ear: Ear) -> int:
        """The position after which events are new to somebody who just came."""
        try:
            position = await self._read(queries.position)
        except Unavailable:
            if self._feed.closed:  # meanwhile: then there is nothing to come
                return 0
            raise
        return position if ear.first is None else min(position, ear.first - 1)

    async def _page(self, session: str | None, after: int) -> list[queries.Row]:
        try:
            if session is None:
                return await self._read(partial(queries.of_all, after=after))
            return await self._read(
                partial(queries.of_session, session=session, after=after, limit=queries.PAGE)
            )
        except Unavailable:  # a live feed outlasts a moment without the file
            return []

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[Summary]:
        await self._write_hits()
        return await self._read(
            partial(queries.sessions, tenant=tenant, limit=limit, before=before)
        )

    async def search(
        self, which: Query = ANY, *, limit: int = 50, after: Cursor | None = None
    ) -> Listing:
        await self._write_hits()
        return await self._read(partial(searching.search, which=which, limit=limit, after=after))

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> Chapter:
        return await self._read(
            partial(queries.history, types=types, since=since, after=after, limit=limit)
        )

    async def _write_hits(self) -> None:
        if self._writer.touched:
            try:
                await self._writer.run(_nothing)
            except Unavailable:  # a listing that is a minute late is better than none
                return

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        if session is None and tenant is None and untouched_since is None:
            return 0
        which = purging.Which(session=session, tenant=tenant, untouched_since=untouched_since)
        left = await self._read(partial(purging.listed, which=which))
        count = 0
        while left:  # again, until nothing changes: an origin can go once its forks are gone
            removed: set[int] = set()
            for start in range(0, len(left), purging.CHUNK):
                chunk = left[start : start + purging.CHUNK]
                removed |= await self._writer.run(
                    partial(purging.remove, numbers=chunk, which=which)
                )
            if not removed:
                break
            count += len(removed)
            left = [number for number in left if number not in removed]
        return count

    async def entries(
        self,
        which: Filter = EVERYTHING,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[Entry]:
        await self._write_hits()
        return await self._read(
            partial(
                forgetting.listed,
                which=which,
                limit=limit,
                after=after,
                offset=offset,
                thoughts=thoughts,
            )
        )

    async def forget(self, which: Filter) -> int:
        await self._writer.run(_nothing)  # what was handed over before is written, and can be seen
        numbers = await self._read(partial(forgetting.matched, which=which))
        count = 0
        for start in range(0, len(numbers), forgetting.CHUNK):
            chunk = numbers[start : start + forgetting.CHUNK]
            count += await self._writer.run(partial(forgetting.forget, numbers=chunk, which=which))
        return count

    async def stats(self, *, tenant: str | None = None) -> Stats:
        return await self._read(partial(queries.stats, tenant=tenant))

    async def close(self) -> None:
        self._feed.close()
        await self._writer.close()
        await self._readers.close()
