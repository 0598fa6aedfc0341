"""A store in front of another one: what it does not do itself is passed on."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from thoughtline.log.events import Event
from thoughtline.log.turn_counts import TurnCounts
from thoughtline.stores.base import (
    ALL_ENTRIES,
    ANY_SESSION,
    EntryFilter,
    EventPage,
    FiledEntry,
    SessionCursor,
    SessionListing,
    SessionQuery,
    SessionSummary,
    Store,
    StoreStats,
    ThoughtEntry,
)
from thoughtline.stores.damage import DamagedSessions
from thoughtline.stores.deletions import NotedDeletion


class ForwardingStore:
    """The methods of a store that read past a cache, or have nothing to do with one."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def touch(self, sessions: Collection[str]) -> None:
        self.store.touch(sessions)

    def changes(self) -> tuple[int, bool]:
        return self.store.changes()

    @property
    def learned(self) -> int:
        return self.store.learned

    @property
    def damage(self) -> DamagedSessions:
        return self.store.damage

    async def lease(self, job: str, seconds: float) -> bool:
        return await self.store.lease(job, seconds)

    async def show_running(self, node: str, turns: bytes | None) -> bool:
        return await self.store.show_running(node, turns)

    async def look_at_running(self, node: str) -> Mapping[str, bytes]:
        return await self.store.look_at_running(node)

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        return await self.store.read(session, after=after, limit=limit)

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        return self.store.watch(session, after=after, tenant=tenant)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        return await self.store.sessions(tenant=tenant, limit=limit, before=before)

    async def search(
        self,
        query: SessionQuery = ANY_SESSION,
        *,
        limit: int = 50,
        after: SessionCursor | None = None,
    ) -> SessionListing:
        return await self.store.search(query, limit=limit, after=after)

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> EventPage:
        return await self.store.history(types, since=since, after=after, limit=limit)

    async def entries(
        self,
        entry_filter: EntryFilter = ALL_ENTRIES,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[ThoughtEntry]:
        return await self.store.entries(
            entry_filter, limit=limit, after=after, offset=offset, thoughts=thoughts
        )

    async def deleted_since(self, tenant: str, moment: float) -> Sequence[NotedDeletion]:
        return await self.store.deleted_since(tenant, moment)

    async def index(self, session: str) -> list[FiledEntry]:
        return await self.store.index(session)

    async def prune_index(self, *, dry_run: bool = False) -> int:
        return await self.store.prune_index(dry_run=dry_run)

    async def count_calls(self, call: str) -> Mapping[str, int]:
        return await self.store.count_calls(call)

    async def stats(self, *, tenant: str | None = None, sessions: bool = True) -> StoreStats:
        return await self.store.stats(tenant=tenant, sessions=sessions)

    async def turn_counts(self, *, seconds: int, since: float) -> list[TurnCounts]:
        return await self.store.turn_counts(seconds=seconds, since=since)
