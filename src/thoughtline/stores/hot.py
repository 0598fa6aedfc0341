"""Memory in front of a store: what conversations in use ask for, turn after turn.

A name is answered from memory only when everything filed under it is known: half an answer could
hide that two conversations look alike. So whole answers are kept, also empty ones, and what this
process writes is added to them; oldest out first, hits promoted. What is not committed yet is found
all the same. When the store is down, memory is all there is: requests flow, writes wait in a
backlog and are tried again, and `trouble` says so. With several processes on one store (`shared`),
answers of others may be missing here, so every look-up asks the store.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct

from thoughtline.errors import StoreError, Unavailable
from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores.base import Batch, Stats, Store, Summary

Key = tuple[str, bytes]
OVERHEAD = 512
"""Bytes that a memory costs beside its thoughts."""


class Counts(Struct):
    """How look-ups went, since the start or the last reset."""

    hits: int = 0  # names answered with something
    misses: int = 0  # names answered with nothing
    replays: int = 0  # thoughts that went back


class HotStore:
    """A store with memory in front of it."""

    def __init__(
        self,
        store: Store,
        *,
        entries: int = 20_000,
        size: int = 256 << 20,
        shared: bool = False,
        backlog: int = 1_000,
        retry: float = 1.0,
    ) -> None:
        self.store = store
        self.counts = Counts()
        self.trouble = ""  # why the store is not answering, if it is not
        self._limits = (entries, size)
        self._shared = shared
        self._known: OrderedDict[Key, tuple[Memory, ...]] = OrderedDict()
        self._held: dict[str, int] = {}  # turn → how many answers hold it
        self._size = 0
        self._fresh: dict[Key, list[Memory]] = {}  # written by us, not committed yet
        self._finding = 0
        self._epoch = 0
        self._dirty: set[Key] = set()  # written while a look-up was under way
        self._backlog: list[Batch] = []
        self._most = backlog
        self._retry = retry
        self._retrying: asyncio.Task[None] | None = None

    # -- finding ---------------------------------------------------------------------------------

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        """From memory where that is certain, else from the store; what is fresh, always."""
        found: dict[bytes, Sequence[Memory]] = {}
        missing: list[bytes] = []
        for name in names:
            known = None if self._shared else self._known.get((tenant, name))
            if known is None:
                missing.append(name)
            else:
                self._known.move_to_end((tenant, name))
                if known:
                    found[name] = known
        if missing:
            found.update(await self._ask(tenant, missing))
        if self._fresh:
            for name in names:
                if new := self._fresh.get((tenant, name)):
                    found[name] = _merged(new, found.get(name, ()))
        self.counts.hits += len(found)
        self.counts.misses += len(names) - len(found)
        return found

    async def _ask(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        self._finding += 1
        epoch = self._epoch
        try:
            answer = dict(await self.store.find(tenant, names))
            if stale := [name for name in names if (tenant, name) in self._dirty]:
                answer.update(await self.store.find(tenant, stale))
        except StoreError as error:
            self.trouble = str(error)
            if not self._known and not self._fresh:
                raise
            return {}
        else:
            if not self._shared and epoch == self._epoch:
                for name in names:
                    if (tenant, name) not in self._dirty:
                        self._keep((tenant, name), tuple(answer.get(name, ())))
                self._evict()
            return answer
        finally:
            self._finding -= 1
            if not self._finding:
                self._dirty.clear()

    def _keep(self, key: Key, memories: tuple[Memory, ...]) -> None:
        self._drop(key)
        self._known[key] = memories
        for memory in memories:
            count = self._held.get(memory.turn, 0)
            self._held[memory.turn] = count + 1
            self._size += 0 if count else _weight(memory)

    def _drop(self, key: Key) -> None:
        for memory in self._known.pop(key, ()):
            count = self._held[memory.turn] - 1
            if count:
                self._held[memory.turn] = count
            else:
                del self._held[memory.turn]
                self._size -= _weight(memory)

    def _evict(self) -> None:
        entries, size = self._limits
        while self._known and (
            len(self._held) > entries or self._size > size or len(self._known) > entries * 8
        ):
            self._drop(next(iter(self._known)))

    # -- writing ---------------------------------------------------------------------------------

    async def append(self, batch: Batch) -> list[Event]:
        """Findable at once; written when this returns, or waiting when it raises `Unavailable`."""
        self._remember(batch)
        try:
            if self._backlog:  # order matters within a session
                raise Unavailable(self.trouble or "the store is catching up")
            events = await self.store.append(batch)
        except Unavailable as error:
            self._postpone(batch, str(error))
            raise
        except StoreError:
            self._forget(batch)
            raise
        self._forget(batch)
        return events

    def _remember(self, batch: Batch) -> None:
        if any(draft.type == "quarantined" for draft in batch.drafts):
            self.clear()
        for memory in batch.memories:
            for name in memory.names:
                key = (batch.tenant, name)
                self._fresh.setdefault(key, []).append(memory)
                if self._finding:
                    self._dirty.add(key)

    def _forget(self, batch: Batch) -> None:
        """It is committed (or never will be): no longer fresh, but part of what is known."""
        for memory in batch.memories:
            for name in memory.names:
                key = (batch.tenant, name)
                if self._finding:
                    self._dirty.add(key)
                left = [m for m in self._fresh.get(key, ()) if m.turn != memory.turn]
                if left:
                    self._fresh[key] = left
                else:
                    self._fresh.pop(key, None)
                if key in self._known:
                    self._keep(key, tuple(_merged([memory], self._known[key])))
        self._evict()

    def _postpone(self, batch: Batch, trouble: str) -> None:
        self.trouble = trouble
        if len(self._backlog) >= self._most:
            lost = self._backlog.pop(0)
            self._forget(lost)
        self._backlog.append(batch)
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.ensure_future(self._catch_up())

    async def _catch_up(self) -> None:
        while self._backlog:
            await asyncio.sleep(self._retry)
            with contextlib.suppress(Unavailable):
                while self._backlog:
                    await self._write(self._backlog[0])
                    self._backlog.pop(0)
        self.trouble = ""

    async def _write(self, batch: Batch) -> None:
        try:
            await self.store.append(batch)
        except Unavailable as error:
            self.trouble = str(error)
            raise
        except StoreError as error:
            self.trouble = str(error)
        self._forget(batch)

    # -- the rest --------------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        """Turns in memory."""
        return len(self._held)

    @property
    def backlog(self) -> int:
        """Batches that wait for the store."""
        return len(self._backlog)

    def clear(self) -> None:
        """Forget all answers; what is not committed stays findable."""
        self._known.clear()
        self._held.clear()
        self._size = 0
        self._epoch += 1  # answers that are on their way are not kept either

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        """As the store has it."""
        return await self.store.read(session, after=after, limit=limit)

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        """As the store sees it."""
        return self.store.watch(session, after=after, tenant=tenant)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[Summary]:
        """As the store has them."""
        return await self.store.sessions(tenant=tenant, limit=limit, before=before)

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        """Delete, here and there."""
        gone = await self.store.purge(
            session=session, tenant=tenant, untouched_since=untouched_since
        )
        self.clear()
        return gone

    async def stats(self, *, tenant: str | None = None) -> Stats:
        """What the store holds."""
        return await self.store.stats(tenant=tenant)

    async def close(self) -> None:
        """One last try for what waits; then let go."""
        if self._retrying is not None:
            self._retrying.cancel()
        for batch in self._backlog:
            with contextlib.suppress(StoreError):
                await self.store.append(batch)
        self._backlog.clear()
        await self.store.close()


def _merged(new: Sequence[Memory], old: Sequence[Memory]) -> list[Memory]:
    turns = {memory.turn for memory in new}
    return [*reversed(new), *(memory for memory in old if memory.turn not in turns)]


def _weight(memory: Memory) -> int:
    return OVERHEAD + sum(len(thought.raw) + len(thought.text) for thought in memory.thoughts)
