"""A cache with write-behind in front of a store.

- `AnswerCache` has the complete answers of look-ups.
- `RecentWrites` has what this process wrote: it is found before it is committed, and while the
  store does not answer. Of a store that other machines share, it keeps nothing that is committed.
  Both are emptied when another process has written to the store: an answer would lack that, or
  bring back what was erased there. Every look-up checks it first.
- `Backlog` has what the store could not take: it waits, also in a file beside the store, and is
  written in order when the store is back. Until then `trouble` says why, and requests go on.
  The next look-up removes from the backlog what other processes have deleted.

`append` returns when the batch is committed, and raises `Unavailable` when it waits. A batch that
takes long is saved beside the store meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Corrupt, SealError, StoreError, Unavailable
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.answer_cache import AnswerCache
from thoughtline.stores.backlog import Backlog, BacklogEvents
from thoughtline.stores.base import (
    Batch,
    EntryFilter,
    Progress,
    Store,
)
from thoughtline.stores.catching_up import CatchUp
from thoughtline.stores.deletions import ERASE, FORGET, PURGE, NeighbourDeletions, left_of
from thoughtline.stores.forwarding import ForwardingStore
from thoughtline.stores.recent_writes import Entries, RecentWrites, merge_entries
from thoughtline.stores.saver import SavedBatch
from thoughtline.stores.timed_lookups import TimedLookUps

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

MAX_RECENT = 2_000
"""Committed turns of this process that are kept for when the store does not answer."""

TIMEOUT = 5.0
"""Seconds within which a look-up is answered, or the store counts as down."""

SAVE_AFTER = 0.5
"""Seconds after which a batch that is not committed yet is saved beside the store."""

HEAVY_PATIENCE = 2
"""How many times as long a batch may take that may be large. It is saved in time all the same: who
waits for its commit waits at least four times as long as `save_after`."""

Save = asyncio.Task[SavedBatch | None]
"""Saves a batch that is still being written; None if it cannot be."""


Known = tuple[int, tuple[int, int]]
"""The number of changes of other processes, and the version of their deletions."""


class LookupCounts(Struct):
    """How look-ups went, since the start."""

    hits: int = 0  # keys that something was found under
    misses: int = 0  # keys that nothing was found under


class WriteObserver(Protocol):
    """Is told of every commit, of every batch that is lost, and of damage, from any thread."""

    def committed(self, seconds: float) -> None: ...
    def dropped(self, batch: Batch, why: str) -> None: ...
    def damaged(self, why: str) -> None: ...


class CachedStore(ForwardingStore):
    """A store with a cache and a backlog in front of it."""

    on_delete: Callable[[], None] = staticmethod(lambda: None)  # something was deleted, here

    def __init__(
        self,
        store: Store,
        *,
        entries: int = 20_000,
        size: int = 256 << 20,
        backlog: int | None = None,
        spill: Path | None = None,
        keychain: "Keychain | None" = None,
        retry: float = 1.0,
        record: Callable[[Batch], Batch] | None = None,
        observer: WriteObserver | None = None,
        timeout: float = TIMEOUT,
        save_after: float = SAVE_AFTER,
        retention: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """Put a cache of `entries` turns and `size` bytes in front of a store.

        `backlog` is how many of these bytes may wait for the store, by default a quarter; `spill`
        is the store's file, beside which what waits is saved, sealed by `keychain` if there is one.
        `retention` is after how many seconds without use a session is not found (0: never).
        """
        super().__init__(store)
        self.retention = retention
        self._clock = clock or SystemClock()
        self._filled = self._clock.mono()  # since when the cache has answers
        self.counts = LookupCounts()
        self.lost = 0  # turns that could neither be written nor kept
        self.corrupt = ""  # what is wrong with the store's file, until the process ends
        self._trouble = ""
        self._known: Known = (0, (0, 0))  # what others have done that the cache knows of
        self._record = record  # returns what of a batch is written at all
        self._observer = observer
        if observer is not None:
            store.damage.tell = observer.damaged
        self._timeout = timeout
        self._look_ups = TimedLookUps(store, timeout, retry=retry)
        self._cache = AnswerCache(entries, size)
        # A machine that cannot ask does not know what another one has deleted.
        self._recent = RecentWrites(0 if store.shared else min(entries, MAX_RECENT), size // 4)
        limit = size // 4 if backlog is None else backlog
        self._backlog = Backlog(
            BacklogEvents(
                write=self._write_waiting,
                unloaded=self._recent.remove,
                lost=self._give_up,
                caught_up=self._caught_up,
            ),
            limit=limit,
            retry=retry,
            spill=spill,
            keychain=keychain,
        )
        self._save_after = save_after if spill else 0.0
        self._late_after = save_after  # seconds after which a batch may count as acknowledged
        self._looked_through: dict[str, Known] = {}  # tenant → what its waiting batches know of
        self._deletions = NeighbourDeletions(store, spill, self._clock)
        self._catch_up = CatchUp(store, self._deletions, self._clock)

    @property
    def retention(self) -> float:
        """Seconds after which a session that nobody used is not found any more; 0: never."""
        return self.store.retention

    @retention.setter
    def retention(self, seconds: float) -> None:
        self.store.retention = seconds

    @property
    def shared(self) -> bool:
        """Whether other machines write to the store as well."""
        return self.store.shared

    @property
    def trouble(self) -> str:
        """Why the store cannot be relied on; empty when it can."""
        return self.corrupt or self._trouble

    @property
    def slow(self) -> str:
        """Why look-ups hardly wait for the store; empty when they do."""
        return self._look_ups.slow

    @property
    def unsaved(self) -> str:
        """Why turns that wait are in memory only; empty when none is."""
        return self._backlog.unsaved if self._backlog else ""

    @property
    def memory(self) -> int:
        """About how many bytes of memory are taken."""
        return self._cache.size + self._recent.size + self._backlog.size

    @property
    def remembered(self) -> int:
        """How many turns with thoughts are in memory."""
        entries = (*self._recent.entries(), *self._cache.entries())
        return len({entry.turn for entry in entries if rules.shown_calls(entry)})

    @property
    def backlog(self) -> int:
        """How many batches wait for the store."""
        return len(self._backlog)

    # -- finding ---------------------------------------------------------------------------------

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        """Return entries from the cache, else from the store; recent writes in any case."""
        if not self._backlog.adopted:
            await self._backlog.adopt()
        version = self._cache.version
        saved = await self._backlog.find(tenant, keys) if self._backlog.unloaded else {}
        found: dict[bytes, Sequence[IndexEntry]] = {}
        missing: Sequence[bytes] = keys
        if self.retention:
            self._expire()
        if certain := self._is_current():
            found, missing = self._cache.find(tenant, keys)
        if missing:
            try:
                await self._look_up(tenant, keys, missing, found, cache=certain)
            except StoreError:
                if not saved:
                    raise
        if saved:
            if version != self._cache.version:  # something was erased
                saved = await self._backlog.find(tenant, keys)
            merge_entries(_not_in(found, saved), found)
        self._recent.merge(tenant, keys, found)
        self.counts.hits += len(found)
        self.counts.misses += len(keys) - len(found)
        return found

    def _expire(self) -> None:
        """Empty the cache before any answer in it is as old as the retention: it may be expired."""
        now = self._clock.mono()
        if now - self._filled > self.retention * 1e9:
            self._filled = now
            self.clear()

    def _is_current(self) -> bool:
        """Empty the cache if another process has written; returns whether that is certain."""
        changes, certain = self.store.changes()
        known = changes, self._deletions.version() if self._waits() else self._known[1]
        if known != self._known:
            self._known = known
            self.clear()
        return certain

    def epoch(self) -> int | None:
        """Return a number that changes when what was found may be found otherwise.

        A store that other machines share has told with the last look-up what they have deleted.
        """
        changes, certain = self.store.changes()
        if self.trouble or not (certain or self.store.shared):
            return None
        return self._cache.version + changes

    def _waits(self) -> bool:
        """Whether something waits here that others may delete.

        Batches that are younger than a save do not count: their clients have no answer yet.
        """
        if self._backlog:
            return True
        since = self._recent.since
        return since is not None and self._clock.wall() - since >= self._late_after

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        """Return how far turns were continued, by what is not committed yet as well."""
        # Before the store is asked: none is left out.
        uncommitted = self._recent.parents(tenant) | self._backlog.parents(tenant)
        found = dict(await self._look_ups.continued(tenant, turns))
        asked = set(turns)
        for turn, parent in uncommitted.items():
            if parent in asked:
                further = 2 if turn in uncommitted.values() else 1
                found[parent] = max(found.get(parent, 0), further)
        return found

    async def _look_up(
        self,
        tenant: str,
        keys: Sequence[bytes],
        missing: Sequence[bytes],
        found: dict[bytes, Sequence[IndexEntry]],
        *,
        cache: bool,
    ) -> None:
        """Add what the store has under the missing keys, and what changed under all meanwhile.

        While the store is down, what it was given lately is added instead.
        """
        with self._cache.reading():
            version, uncommitted = self._now(tenant, keys)
            try:
                found.update(await self._look_ups.find(tenant, missing))
                await self._look_through(tenant)
                if again := self._changed(tenant, keys, version):
                    version, uncommitted = self._now(tenant, keys)
                    answer = await self._look_ups.find(tenant, again)
                    for key in again:
                        found.pop(key, None)
                    found.update(answer)
            except StoreError as error:
                self._note_trouble(error)
                if not self._cache and not self._recent:
                    raise
                found.update(self._recent.committed(tenant, set(missing)))
                return
            if not self._backlog:
                self._trouble = ""
            if version == self._cache.version:
                if cache:
                    self._cache.put(tenant, missing, found)
                merge_entries(uncommitted, found)  # perhaps committed since

    def _now(self, tenant: str, keys: Sequence[bytes]) -> tuple[int, Entries]:
        """Return the cache's version, and what is not committed yet under these keys."""
        return self._cache.version, self._recent.uncommitted(tenant, keys)

    def _changed(self, tenant: str, keys: Sequence[bytes], version: int) -> Sequence[bytes]:
        """Return the keys whose entries may have changed since a look-up began."""
        if version != self._cache.version:  # something was erased
            return keys
        return self._cache.written(tenant, keys)

    def _note_trouble(self, error: StoreError) -> None:
        """Note why the store failed; it may have lost what was committed lately."""
        began, self._trouble = not self._trouble, str(error)
        if began:
            self._recent.restore()
        if isinstance(error, Corrupt) and not self.corrupt:
            self.corrupt = str(error)
            if self._observer is not None:
                self._observer.damaged(self.corrupt)

    # -- writing ---------------------------------------------------------------------------------

    async def append(self, batch: Batch) -> int:
        """Write a batch; it can be found at once, and waits if this raises `Unavailable`."""
        if self._record is not None:
            batch = self._record(batch)
        now = batch.held or self._clock.wall()
        if not self._backlog.adopted:
            await self._backlog.adopt()
        self._begin(batch, now)
        began = time.perf_counter()
        save: list[Save] = []  # one, if it takes long
        try:
            if self._backlog.delays(batch.session):
                raise Unavailable(self.trouble or "the store is catching up")
            late = self._save_later(batch, save, now) if self._save_after else None
            try:
                first = await self.store.append(batch)
            finally:
                if late is not None:
                    late.cancel()
        except (Unavailable, Corrupt, SealError) as error:
            await self._let_wait(replace(batch, held=now), error, save)
            raise Unavailable(str(error)) from error
        except StoreError:
            self._finish(batch)
            self.lost += 1
            await self._release(save)
            raise
        self._committed(batch, began)
        if save:
            await self._release(save)
        return first

    def _save_later(self, batch: Batch, save: list[Save], now: float) -> asyncio.Handle:
        """Save a batch beside the store when writing it takes long, unless that is cancelled."""
        loop = asyncio.get_running_loop()
        patience = HEAVY_PATIENCE if batch.heavy else 1
        return loop.call_later(self._save_after * patience, self._save, batch, save, now)

    def _save(self, batch: Batch, save: list[Save], now: float) -> None:
        held = replace(batch, held=now)
        save.append(asyncio.get_running_loop().create_task(self._backlog.hold(held)))

    async def _let_wait(self, batch: Batch, error: StoreError, save: list[Save]) -> None:
        """Keep a batch that the store did not take."""
        self._note_trouble(error)
        await self._backlog.add(batch, error, await save[0] if save else None)
        self._bound_memory()

    async def _release(self, save: list[Save]) -> None:
        """Delete the batch's spill lines: the store has it."""
        for saving in save:
            if saved := await saving:
                await self._backlog.release(saved)

    def _begin(self, batch: Batch, now: float) -> None:
        """Make the entries of a batch findable before it is written."""
        for one in batch.drafts:
            if one.type == "quarantined":
                self.clear()
        self._recent.add(batch, now)
        self._cache.note_write(batch)

    def _finish(self, batch: Batch) -> None:
        """Move the entries of a batch into the cache: it is committed, or never will be."""
        self._recent.commit(batch)
        self._cache.note_write(batch)
        self._cache.add(batch)
        self._bound_memory()

    def _bound_memory(self) -> None:
        self._cache.bound(self._recent.size + self._backlog.size)

    def _committed(self, batch: Batch, began: float) -> None:
        if self._observer is not None:
            self._observer.committed(time.perf_counter() - began)
        self._finish(batch)

    def _give_up(self, batch: Batch, why: str) -> None:
        self._finish(batch)
        self.lost += 1
        if self._observer is not None:
            self._observer.dropped(batch, why)

    async def _write_waiting(
        self, waiting: Sequence[tuple[Batch, bool]]
    ) -> list[StoreError | None]:
        """Write batches of the backlog; returns for each why it has to wait on, if it has to."""
        began = time.perf_counter()
        try:
            results = await self._catch_up.write(waiting)
        except StoreError as error:
            self._note_trouble(error)
            return [error] * len(waiting)
        found = zip(waiting, results, strict=True)
        return [self._end_wait(batch, result, began) for (batch, _), result in found]

    def _end_wait(
        self, batch: Batch, result: Batch | BaseException, began: float
    ) -> StoreError | None:
        if isinstance(result, Unavailable | Corrupt | SealError):
            self._note_trouble(result)
            return result
        if isinstance(result, StoreError):
            self._give_up(batch, str(result))
        elif isinstance(result, BaseException):
            raise result
        else:
            self._recent.remove(batch)
            self._committed(result, began)
        return None

    async def _look_through(self, tenant: str) -> None:
        """Apply other processes' deletions to the backlog."""
        if not self._waits():
            return
        changes, certain = self.store.changes()
        known = changes, self._deletions.version()
        if self._looked_through.get(tenant) == known and (certain or self.store.shared):
            return
        since = self._recent.since
        waiting = [*([] if since is None else [since]), *self._backlog.held(tenant)]
        deleted = await self._deletions.since(tenant, min(waiting)) if waiting else ()

        def left(batch: Batch) -> Batch | None:
            return left_of(batch, deleted) if batch.tenant == tenant else batch

        def left_entry(entry: IndexEntry, since: float) -> IndexEntry | None:
            batch = Batch(
                session=entry.session, tenant=tenant, drafts=(), index=(entry,), held=since
            )
            other = left_of(batch, deleted)
            return other.index[0] if other is not None else None

        if deleted:
            self._recent.change(tenant, left_entry)
            await self._backlog.change(left)
            self._deleted()
        self._looked_through[tenant] = known

    def _caught_up(self) -> None:
        self._trouble = ""

    # -- deleting --------------------------------------------------------------------------------

    def clear(self) -> None:
        """Empty the cache; what is not committed can still be found."""
        self._cache.clear()
        self._recent.clear()

    def _deleted(self) -> None:
        """Empty the cache, and tell its listeners, who keep what was found in it."""
        self.clear()
        self.store.damage.clear()
        self.on_delete()

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Delete sessions in the store, the cache and the backlog."""
        await self._backlog.adopt(again=untouched_since is None)
        if untouched_since is None and (session is not None or tenant is not None):

            def kept(batch: Batch) -> Batch | None:
                if session in {None, batch.session} and tenant in {None, batch.tenant}:
                    self._recent.remove(batch)
                    return None
                return batch

            await self._deletions.note(PURGE, EntryFilter(session=session, tenant=tenant))
            await self._backlog.change(kept)
        count = await self.store.purge(
            session=session, tenant=tenant, untouched_since=untouched_since, progress=progress
        )
        if count or untouched_since is None:  # a sweep that deleted nothing leaves the cache
            self._deleted()
        return count

    async def forget(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        """Clear thought entries from the store's index, the cache and the backlog."""
        await self._deletions.note(FORGET, entry_filter)
        count = await self._change_waiting(lambda batch: rules.forget_in_batch(batch, entry_filter))
        count += await self.store.forget(entry_filter, progress=progress)
        self._deleted()
        return count

    async def erase(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        """Erase thoughts in the store, the cache and the backlog."""
        await self._deletions.note(ERASE, entry_filter)
        count = await self._change_waiting(lambda batch: rules.erase_in_batch(batch, entry_filter))
        count += await self.store.erase(entry_filter, progress=progress)
        self._deleted()
        return count

    async def _change_waiting(self, change: Callable[[Batch], tuple[Batch, int]]) -> int:
        """Change batches of the backlog; returns how much was changed in them."""
        total = 0

        def changed(batch: Batch) -> Batch:
            nonlocal total
            other, count = change(batch)
            if not count:
                return batch
            total += count
            self._recent.remove(batch)
            self._begin(other, other.held)
            return other

        await self._backlog.adopt(again=True)
        await self._backlog.change(changed)
        return total

    async def reindex(
        self, session: str, entries: Sequence[IndexEntry], *, remove: Collection[str] = ()
    ) -> None:
        """Replace index entries in the store, and empty the cache."""
        await self.store.reindex(session, entries, remove=remove)
        self.clear()

    async def close(self) -> None:
        """Try once more to write the backlog, report what is lost, and close the store."""
        self._look_ups.close()
        await self._backlog.close(self._timeout)
        await self.store.close()


def _not_in(found: Mapping[bytes, Sequence[IndexEntry]], saved: Entries) -> Entries:
    """Return the saved entries of turns that the store does not have: there they may be erased."""
    stored = {entry.turn for entries in found.values() for entry in entries}
    return {
        key: others
        for key, entries in saved.items()
        if (others := tuple([entry for entry in entries if entry.turn not in stored]))
    }
