"""The store port over one SQLite file: which thread does what. SQL is in the other modules.

Durability. When `append` returns, its batch is committed to the file's write-ahead log:

- it survives the death of the process (`kill -9`, a crash, an out-of-memory kill), always;
- with `synchronous="full"` it also survives a power cut or a crash of the operating system, if the
  disk flushes when it says so;
- with `synchronous="normal"`, the default, a power cut may take the newest commits since the log
  was last flushed, from the end backwards, each batch as a whole. What remains is a consistent file
  that ends a little earlier; it is never damaged by that.

`close` writes what is queued and flushes the log into the file. See docs/reference/durability.md.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Unavailable
from thoughtline.log.events import Event
from thoughtline.log.index import IndexEntry
from thoughtline.log.turn_counts import TurnCounts
from thoughtline.stores import rules
from thoughtline.stores.base import (
    ALL_ENTRIES,
    ANY_SESSION,
    Batch,
    EntryFilter,
    EventPage,
    FiledEntry,
    Progress,
    SessionCursor,
    SessionListing,
    SessionQuery,
    SessionSummary,
    StoreStats,
    ThoughtEntry,
)
from thoughtline.stores.deletions import NotedDeletion
from thoughtline.stores.sqlite import entries as entry_queries
from thoughtline.stores.sqlite import key_tables, queries, session_index, upkeep
from thoughtline.stores.sqlite import purge as purges
from thoughtline.stores.sqlite import search as searches
from thoughtline.stores.sqlite import turn_counts as counts
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.inserts import insert_batch
from thoughtline.stores.sqlite.migrations import NotMigrated
from thoughtline.stores.sqlite.readers import ReaderPool
from thoughtline.stores.sqlite.subscribers import Subscriber, Subscribers
from thoughtline.stores.sqlite.upkeep import Upkeep
from thoughtline.stores.sqlite.wal_index import unmap_deleted
from thoughtline.stores.sqlite.writer import Work, Writer

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain
    from thoughtline.stores.sqlite.vault import SqliteVault

T = TypeVar("T")


def _no_work(_: object) -> None:
    """Do nothing: the writer opens the file and writes hits before it runs this."""


class SqliteStore:
    """A store in one file, shared by all processes of one machine that open it.

    The first call opens the file; when that fails, the next call tries again.
    """

    retention = 0.0
    trouble = ""
    learned = -1
    shared = False
    _file_type = DatabaseFile
    _writer_type = Writer
    _readers_type = ReaderPool

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        synchronous: str = "normal",
        timeout: float = 5.0,  # seconds to wait for another process's lock
        readers: int = 2,
        poll: float = 0.25,  # seconds after which `watch` looks for other processes' events
        touch_every: float = 60.0,  # seconds for which hits are collected, then written
        keychain: "Keychain | None" = None,  # what seals the content of the file
    ) -> None:
        self._clock = clock or SystemClock()
        self._poll = poll
        self._subscribers = Subscribers()
        self._keychain = keychain
        self._file = self._file_type(
            Path(path), timeout=timeout, synchronous=synchronous, keychain=keychain
        )
        self.damage = self._file.damage
        self._writer = self._writer_type(
            self._file, self._clock, self._subscribers, touch_every=touch_every
        )
        self._readers = self._readers_type(self._file, readers)
        self._upkeep = Upkeep(self._read, self._writer.run)

    async def append(self, batch: Batch) -> int:
        if batch.heavy:
            rules.check_batch(batch)
            return await self._writer.append(batch) + 1
        try:
            rows = insert_batch(batch)
        except Exception as error:
            raise self._file.explain(error) from error
        return await self._writer.append(rows) + 1

    async def _read(self, work: Work[T]) -> T:
        try:
            return await self._readers.run(work)
        except NotMigrated:
            if self._readers.opened and self._file.inode() is None:
                raise self._file.gone() from None  # a reader does not create the file again
            await self._writer.run(_no_work)
            return await self._readers.run(work)

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        return await self._read(partial(queries.read, session=session, after=after, limit=limit))

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        if not keys:
            return {}
        changes, certain = self._writer.changes()
        found: dict[bytes, Sequence[IndexEntry]] = {}
        missing = keys
        if certain:
            found, missing = self._writer.just_written.find(tenant, keys, changes)
        if missing:
            found |= await self._read(partial(queries.find, tenant=tenant, keys=missing))
        return await self._without_expired(found) if self.retention else found

    def touch(self, sessions: Collection[str]) -> None:
        self._writer.touch(sessions, self._clock.wall())

    async def _without_expired(
        self, found: dict[bytes, Sequence[IndexEntry]]
    ) -> dict[bytes, Sequence[IndexEntry]]:
        """Leave out the entries of sessions that only the next sweep will delete.

        A session is used at least as long as its turns: of most, nothing has to be looked up.
        """
        since = self._clock.wall() - self.retention
        old = {entry.session for filed in found.values() for entry in filed if entry.at < since}
        old -= self._writer.hits
        if not old:
            return found
        gone = await self._read(partial(queries.expired, sessions=sorted(old), since=since))
        left: dict[bytes, Sequence[IndexEntry]]
        left = {key: [e for e in filed if e.session not in gone] for key, filed in found.items()}
        return {key: filed for key, filed in left.items() if filed}

    def changes(self) -> tuple[int, bool]:
        return self._writer.changes()

    def epoch(self) -> int | None:
        return None

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        if not turns:
            return {}
        return await self._read(partial(queries.continued, tenant=tenant, turns=turns))

    async def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        if self._subscribers.closed:
            raise Unavailable("this store is closed; open it again")
        with self._subscribers.subscribe(session) as subscriber:
            if session is None:
                after = await self._first_position(subscriber)
            while not self._subscribers.closed:
                page = await self._page(session, after)
                for row in page.events:
                    after = row.position if session is None else row.event.seq
                    if tenant in {None, row.tenant}:
                        yield row.event
                if not page.more:
                    await subscriber.wait(self._poll)

    async def _first_position(self, subscriber: Subscriber) -> int:
        """Return the position after which events are new to a subscriber that just came."""
        try:
            position = await self._read(queries.position)
        except Unavailable:
            if self._subscribers.closed:  # closed meanwhile: no events will come
                return 0
            raise
        return position if subscriber.first is None else min(position, subscriber.first - 1)

    async def _page(self, session: str | None, after: int) -> queries.EventRows:
        try:
            if session is None:
                return await self._read(partial(queries.demands_all, after=after))
            return await self._read(partial(queries.of_session, session=session, after=after))
        except Unavailable:  # a live feed outlasts a short time without the file
            return queries.EventRows([], more=False)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        await self._write_hits()
        return await self._read(
            partial(queries.sessions, tenant=tenant, limit=limit, before=before)
        )

    async def search(
        self,
        query: SessionQuery = ANY_SESSION,
        *,
        limit: int = 50,
        after: SessionCursor | None = None,
    ) -> SessionListing:
        await self._write_hits()
        return await self._read(partial(searches.search, query=query, limit=limit, after=after))

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> EventPage:
        return await self._read(
            partial(queries.history, types=types, since=since, after=after, limit=limit)
        )

    async def _write_hits(self) -> None:
        if self._writer.touched:
            await self._write_noted()

    async def _write_noted(self) -> None:
        with suppress(Unavailable):  # a listing with hits of a minute ago is better than none
            await self._writer.run(_no_work)

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        if session is None and tenant is None and untouched_since is None:
            return 0
        conditions = purges.PurgeFilter(
            session=session, tenant=tenant, untouched_since=untouched_since
        )
        if self._keychain is not None and conditions.whole_tenant is not None:
            return await self._delete_tenant(conditions, conditions.whole_tenant, progress)
        return await self._upkeep.purge(conditions, progress)

    async def _delete_tenant(
        self, conditions: purges.PurgeFilter, tenant: str, progress: Progress | None
    ) -> int:
        """Delete the keys of a tenant, and then what was sealed with them."""
        await self._writer.run(partial(key_tables.drop_tenant, tenant=tenant))
        await self._read(upkeep.truncate_log)
        try:
            return await self._upkeep.purge(conditions, progress)
        finally:
            await self._writer.run(partial(key_tables.release_tenant, tenant=tenant))

    async def entries(
        self,
        entry_filter: EntryFilter = ALL_ENTRIES,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[ThoughtEntry]:
        await self._write_hits()
        return await self._read(
            partial(
                entry_queries.list_entries,
                entry_filter=entry_filter,
                limit=limit,
                after=after,
                offset=offset,
                thoughts=thoughts,
            )
        )

    async def forget(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        await self._writer.run(_no_work)  # what was queued before is written, and can be read
        return await self._upkeep.forget(entry_filter, progress)

    async def erase(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        await self._writer.run(_no_work)
        return await self._upkeep.erase(entry_filter, progress)

    async def deleted_since(self, tenant: str, moment: float) -> Sequence[NotedDeletion]:
        return ()

    async def count_calls(self, call: str) -> Mapping[str, int]:
        return await self._read(partial(entry_queries.count_calls, call=call))

    async def index(self, session: str) -> list[FiledEntry]:
        return await self._read(partial(session_index.read_entries, session=session))

    async def reindex(
        self, session: str, entries: Sequence[IndexEntry], *, remove: Collection[str] = ()
    ) -> None:
        for start in range(0, max(len(entries), 1), session_index.CHUNK):
            chunk = entries[start : start + session_index.CHUNK]
            stale = () if start else tuple(remove)
            await self._writer.run(
                partial(session_index.replace_entries, session=session, entries=chunk, remove=stale)
            )

    async def prune_index(self, *, dry_run: bool = False) -> int:
        count = await self._read(session_index.count_orphans)
        while count and not dry_run and await self._writer.run(session_index.delete_orphans):
            pass
        return count

    async def stats(self, *, tenant: str | None = None, sessions: bool = True) -> StoreStats:
        return await self._read(partial(entry_queries.stats, tenant=tenant, sessions=sessions))

    async def turn_counts(self, *, seconds: int, since: float) -> list[TurnCounts]:
        await self._write_noted()
        return await self._read(partial(counts.turn_counts, seconds=seconds, since=since))

    @property
    def vault(self) -> "SqliteVault":
        """The keys of the file, for administration."""
        from thoughtline.stores.sqlite.vault import SqliteVault

        return SqliteVault(self._read, self._writer.run, self._keychain)

    async def lease(self, job: str, seconds: float) -> bool:
        return True

    async def show_running(self, node: str, turns: bytes | None) -> bool:
        return False  # no other node sees it

    async def look_at_running(self, node: str) -> Mapping[str, bytes]:
        return {}

    async def close(self) -> None:
        self._subscribers.close()
        await self._writer.close()
        await self._readers.close()
        unmap_deleted()
