"""Memory in front of a store: what conversations in use ask for, turn after turn.

A name is answered from memory only when everything filed under it is known: half an answer could
hide that two conversations look alike. So whole answers are kept, also empty ones, and what this
process writes is added to them; oldest out first, hits promoted. What is not committed yet is found
all the same. When the store is down, memory is all there is: requests flow, writes wait in a
backlog and are tried again, and `trouble` says so. What it had may be gone when it is back (a file
that was removed), so what we wrote lately is then found here as well. With several processes on
one store (`shared`), answers of others may be missing here, so every look-up asks the store.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from thoughtline.errors import StoreError, Unavailable
from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.answers import Answers, Key, merged
from thoughtline.stores.base import Batch, Filter, Store
from thoughtline.stores.through import Through


class Counts(Struct):
    """How look-ups went, since the start."""

    hits: int = 0  # names answered with something
    misses: int = 0  # names answered with nothing


class Watcher(Protocol):
    """Who wants to know how writing goes."""

    def committed(self, seconds: float) -> None: ...
    def dropped(self, batch: Batch, why: str) -> None: ...


SPARE = 2_000
"""Turns of our own that are kept for when the store does not answer."""


PATIENCE = 5.0
"""Seconds within which a look-up is answered, or the store counts as down."""

HASTE = 0.05
"""Seconds for the look-ups after one that was not answered, until one is."""

HASTY = 60.0
"""Seconds for which that goes on; then the store is given its time again."""


class HotStore(Through):
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
        sift: Callable[[Batch], Batch] | None = None,
        watcher: Watcher | None = None,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(store)
        self._patience = patience
        self._hasty = 0.0  # until then, by the monotonic clock
        self.counts = Counts()
        self.trouble = ""  # why the store is not answering, if it is not
        self._shared = shared
        self._known = Answers(entries, size)
        self._fresh: dict[Key, tuple[Memory, ...]] = {}  # written by us, not committed yet
        # Written by us, for when the store does not answer: kept cheaply, searched hardly ever.
        self._spare: deque[tuple[str, Memory]] = deque(maxlen=min(entries, SPARE))
        self._rescued: dict[Key, tuple[Memory, ...]] = {}  # of those, filed when the store failed
        self._finding = 0
        self._epoch = 0
        self._dirty: set[Key] = set()  # written while a look-up was under way
        self._backlog: list[Batch] = []
        self._most = backlog
        self._retry = retry
        self._retrying: asyncio.Task[None] | None = None
        self._writing: Batch | None = None  # of the backlog
        self._sift = sift  # what of a batch is written at all
        self._watcher = watcher

    # -- finding ---------------------------------------------------------------------------------

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        """From memory where that is certain, else from the store; what is fresh, always."""
        found, missing = self._known.find(tenant, names)
        if missing:
            found.update(await self._ask(tenant, missing))
        for more in (self._rescued, self._fresh):
            for name in names if more else ():
                if new := more.get((tenant, name)):
                    found[name] = merged(new, found.get(name, ()))
        self.counts.hits += len(found)
        self.counts.misses += len(names) - len(found)
        return found

    async def _ask(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        self._finding += 1
        epoch = self._epoch
        try:
            answer = dict(await self._asked(tenant, names))
            if stale := [name for name in names if (tenant, name) in self._dirty]:
                answer.update(await self._asked(tenant, stale))
        except StoreError as error:
            self._troubled(str(error))
            if not self._known and not self._fresh and not self._spare:
                raise
            return self._own(tenant, set(names))
        else:
            if not self._backlog:
                self.trouble = ""
            if not self._shared and epoch == self._epoch:
                for name in names:
                    if (tenant, name) not in self._dirty:
                        self._known.keep((tenant, name), tuple(answer.get(name, ())))
                self._known.evict()
            return answer
        finally:
            self._finding -= 1
            if not self._finding:
                self._dirty.clear()

    async def _asked(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        """The store's own answer. One that hangs is as good as down: nobody waits for it again."""
        hasty = self._hasty and time.monotonic() < self._hasty
        try:
            async with asyncio.timeout(HASTE if hasty else self._patience):
                answer = await self.store.find(tenant, names)
        except TimeoutError:
            if not hasty:
                self._hasty = time.monotonic() + HASTY
            raise Unavailable(f"the store did not answer within {self._patience:g} s") from None
        self._hasty = 0.0
        return answer

    def _troubled(self, why: str) -> None:
        """The store failed: file what we wrote lately, for it may have lost that."""
        began, self.trouble = not self.trouble, why
        if not began or self._shared:  # others may have it forgotten without our knowing
            return
        self._rescued.clear()
        for tenant, memory in self._spare:
            _file(self._rescued, tenant, memory)

    def _own(self, tenant: str, names: set[bytes]) -> dict[bytes, list[Memory]]:
        """What this process wrote lately under these names, the last first."""
        found: dict[bytes, list[Memory]] = {}
        for whose, memory in reversed(self._spare):
            if whose == tenant:
                for name in names.intersection(memory.names):
                    found[name] = merged([], [*found.get(name, ()), memory])
        return found

    # -- writing ---------------------------------------------------------------------------------

    async def append(self, batch: Batch) -> list[Event]:
        """Findable at once; written when this returns, or waiting when it raises `Unavailable`."""
        if self._sift is not None:
            batch = self._sift(batch)
        self._remember(batch)
        try:
            if self._backlog:  # order matters within a session
                raise Unavailable(self.trouble or "the store is catching up")
            began = time.perf_counter()
            events = await self.store.append(batch)
        except Unavailable as error:
            self._postpone(batch, str(error))
            raise
        except StoreError:
            self._forget(batch)
            raise
        self._committed(batch, began)
        return events

    def _committed(self, batch: Batch, began: float) -> None:
        if self._watcher is not None:
            self._watcher.committed(time.perf_counter() - began)
        self._forget(batch)

    def _remember(self, batch: Batch) -> None:
        for draft in batch.drafts:
            if draft.type == "quarantined":
                self.clear()
        for memory in batch.memories:
            _file(self._fresh, batch.tenant, memory)
        if self._finding:
            self._dirty.update(_keys(batch))

    def _forget(self, batch: Batch) -> None:
        """It is committed (or never will be): no longer fresh, but part of what is known."""
        self._unremember(batch)
        if self._finding:
            self._dirty.update(_keys(batch))
        for memory in batch.memories:
            self._spare.append((batch.tenant, memory))
            self._known.add(batch.tenant, memory)
        self._known.evict()

    def _unremember(self, batch: Batch) -> None:
        for memory in batch.memories:
            for name in memory.names:
                key = (batch.tenant, name)
                held = self._fresh.pop(key, ())
                if len(held) != 1 or held[0] is not memory:  # others have this name, too
                    left = tuple([other for other in held if other.turn != memory.turn])
                    if left:
                        self._fresh[key] = left

    def _postpone(self, batch: Batch, trouble: str) -> None:
        self._troubled(trouble)
        if len(self._backlog) >= self._most:
            self._give_up(self._backlog.pop(0), f"too many turns wait for the store: {trouble}")
        self._backlog.append(batch)
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.ensure_future(self._catch_up())

    async def _catch_up(self) -> None:
        while self._backlog:
            await asyncio.sleep(self._retry)
            with contextlib.suppress(Unavailable):
                while self._backlog:
                    await self._write(self._backlog[0])
        self.trouble = ""

    async def _write(self, batch: Batch) -> None:
        self._writing = batch
        began = time.perf_counter()
        try:
            await self.store.append(batch)
        except Unavailable as error:
            self.trouble = str(error)
            raise
        except StoreError as error:
            self._give_up(batch, str(error))
        else:
            self._committed(batch, began)
        finally:
            self._writing = None
        if self._backlog and self._backlog[0] is batch:  # it may have been given up meanwhile
            del self._backlog[0]

    def _give_up(self, batch: Batch, why: str) -> None:
        self._forget(batch)
        if self._watcher is not None:
            self._watcher.dropped(batch, why)

    # -- the rest --------------------------------------------------------------------------------

    @property
    def remembered(self) -> int:
        """Turns in memory."""
        return self._known.turns

    @property
    def backlog(self) -> int:
        """Batches that wait for the store."""
        return len(self._backlog)

    def clear(self) -> None:
        """Forget all answers; what is not committed stays findable."""
        self._known.clear()
        self._spare.clear()  # a purge or a refusal counts here, too
        self._rescued.clear()
        self._epoch += 1  # answers that are on their way are not kept either

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        """Delete, here and there; what still waits is of sessions in use."""
        if untouched_since is None and (session is not None or tenant is not None):
            self._let_go(
                lambda batch: session in {None, batch.session} and tenant in {None, batch.tenant}
            )
        gone = await super().purge(session=session, tenant=tenant, untouched_since=untouched_since)
        if gone or untouched_since is None:  # a sweep that found nothing leaves memory as it is
            self.clear()
        return gone

    async def forget(self, which: Filter) -> int:
        """Forget, here and there, and what still waits, too."""
        forgotten = 0
        for index, batch in enumerate(self._backlog):
            kept, entries = facts.forgotten(batch, which)
            if entries and batch is not self._writing:
                forgotten += entries
                self._unremember(batch)
                self._backlog[index] = kept
                self._remember(kept)
        forgotten += await self.store.forget(which)
        self.clear()
        return forgotten

    def _let_go(self, doomed: Callable[[Batch], bool]) -> None:
        for batch in [b for b in self._backlog if b is not self._writing and doomed(b)]:
            self._backlog.remove(batch)
            self._unremember(batch)

    async def close(self) -> None:
        """One last try for what waits; what is lost is said; then let go."""
        if self._retrying is not None:
            self._retrying.cancel()
        hangs = False
        for batch in self._backlog:
            try:
                async with asyncio.timeout(0 if hangs else self._patience):
                    await self.store.append(batch)
            except (StoreError, TimeoutError) as error:
                hangs = isinstance(error, TimeoutError)
                if self._watcher is not None:
                    self._watcher.dropped(batch, str(error) or "the store did not answer")
        self._backlog.clear()
        await self.store.close()


def _keys(batch: Batch) -> list[Key]:
    return [(batch.tenant, name) for memory in batch.memories for name in memory.names]


def _file(where: dict[Key, tuple[Memory, ...]], tenant: str, memory: Memory) -> None:
    """Add it under all of its names."""
    for name in memory.names:
        key = (tenant, name)
        held = where.get(key)
        where[key] = (memory,) if held is None else (*held, memory)
