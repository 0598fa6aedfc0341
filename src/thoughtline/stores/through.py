"""A store in front of another one: whatever it does not do itself passes through."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from thoughtline.events import Event
from thoughtline.memories import Memory
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
    Store,
    Summary,
)


class Through:
    """Does what the store behind it does."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def append(self, batch: Batch) -> list[Event]:
        return await self.store.append(batch)

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        return await self.store.read(session, after=after, limit=limit)

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        return await self.store.find(tenant, names)

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        return self.store.watch(session, after=after, tenant=tenant)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[Summary]:
        return await self.store.sessions(tenant=tenant, limit=limit, before=before)

    async def search(
        self, which: Query = ANY, *, limit: int = 50, after: Cursor | None = None
    ) -> Listing:
        return await self.store.search(which, limit=limit, after=after)

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> Chapter:
        return await self.store.history(types, since=since, after=after, limit=limit)

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        return await self.store.purge(
            session=session, tenant=tenant, untouched_since=untouched_since
        )

    async def entries(
        self,
        which: Filter = EVERYTHING,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[Entry]:
        return await self.store.entries(
            which, limit=limit, after=after, offset=offset, thoughts=thoughts
        )

    async def forget(self, which: Filter) -> int:
        return await self.store.forget(which)

    async def stats(self, *, tenant: str | None = None) -> Stats:
        return await self.store.stats(tenant=tenant)

    async def close(self) -> None:
        await self.store.close()
