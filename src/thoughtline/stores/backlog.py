"""Batches that wait for a store that does not answer, written in order when it is back.

Each is saved at once to a file beside the store (`spill`), so that it survives the process. Memory
is bounded: beyond `limit` bytes a saved batch is only in the file, where it is still found. Only
what is neither saved nor fits is lost, and that is said.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from thoughtline.errors import Corrupt, SealError, StoreError, Unavailable
from thoughtline.log.index import IndexEntry
from thoughtline.stores.answer_cache import CacheKey
from thoughtline.stores.base import Batch
from thoughtline.stores.recent_writes import Entries
from thoughtline.stores.saver import SavedBatch, Saver
from thoughtline.stores.waiting import WaitingBatch, describe, next_to_write

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

UNKNOWN = Batch(session="", tenant="", drafts=())
"""A batch that cannot be read."""


class BacklogEvents(Struct, frozen=True, kw_only=True):
    """What is called with the batches of a backlog."""

    write: Callable[[Sequence[tuple[Batch, bool]]], Awaitable[Sequence[StoreError | None]]]
    """Writes batches of several sessions at once, or gives them up.

    The flag says that another process left a batch, and may have written it. Returns for each why
    it has to wait on, if it has to.
    """
    unloaded: Callable[[Batch], None]  # from now on it is only in its file
    lost: Callable[[Batch, str], None]  # it could neither be written nor kept, and why
    caught_up: Callable[[], None]  # all are written


class Backlog:
    """Waiting batches, and the task that writes them."""

    def __init__(
        self,
        events: BacklogEvents,
        *,
        limit: int,
        retry: float,
        spill: Path | None = None,
        keychain: "Keychain | None" = None,
    ) -> None:
        self._events = events
        self._limit = limit
        self._retry = retry
        self._saver = Saver(spill, keychain)
        self._items: dict[int, WaitingBatch] = {}  # by number, in order
        self._to_save: deque[WaitingBatch] = deque()
        self._loaded: deque[WaitingBatch] = deque()  # those in memory, and some that were
        self._unloaded: dict[CacheKey, list[WaitingBatch]] = {}
        self._adopting = asyncio.Lock()
        self._writing = asyncio.Lock()  # batches are being written, or changed
        self._saving = asyncio.Lock()  # a file is being changed
        self._current: Sequence[WaitingBatch] = ()  # they are being written
        # Sessions that hold up nobody else (see `delays`), those first that were tried long ago.
        self._refused: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self.adopted = spill is None  # whether `adopt` was called
        self.size = 0  # bytes in memory
        self.unsaved = ""  # why batches are in memory only

    def __len__(self) -> int:
        return len(self._items)

    # -- adding ----------------------------------------------------------------------------------

    def delays(self, session: str) -> bool:
        """Whether a batch of a session has to wait because others wait.

        What is refused by itself (a tenant's key is lost, a row is damaged) holds up its session.
        """
        if not self._items or session in self._refused:
            return bool(self._items)
        return any(item.session not in self._refused for item in self._items.values())

    async def add(self, batch: Batch, error: StoreError, saved: SavedBatch | None = None) -> None:
        """Add a batch, save it, and start to write when it can be."""
        item, why = describe(batch), str(error)
        self._note_refused(item, error)
        item.batch, item.saved = batch, saved
        self._items[item.number] = item
        self._to_save.append(item)
        self._loaded.append(item)
        self.size += item.size
        self._start(self._retry)
        await self._save(why)

    def _note_refused(self, item: WaitingBatch, error: StoreError | None) -> None:
        if error is None or isinstance(error, Corrupt | SealError):
            self._refused.pop(item.session, None)
        if isinstance(error, Corrupt | SealError):
            self._refused[item.session] = None

    def _start(self, delay: float) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write_all(delay))

    async def hold(self, batch: Batch) -> SavedBatch | None:
        """Save a batch that is still being written; None if it cannot be."""
        async with self._saving:
            try:
                return await self._saver.save(batch)
            except (OSError, ValueError):
                return None

    async def release(self, saved: SavedBatch) -> None:
        """Delete a saved batch: it is written."""
        async with self._saving:
            await self._saver.release([saved])

    async def _save(self, why: str) -> None:
        """Save what is in memory only, then keep within the limit."""
        async with self._saving:
            self.unsaved = ""
            while self._to_save:
                item = self._to_save[0]
                if item.saved is None and item.batch is not None and item.number in self._items:
                    try:
                        item.saved = await self._saver.save(item.batch)
                    except (OSError, ValueError) as error:
                        self.unsaved = str(error)
                        break
                self._to_save.popleft()
            self._keep_within_limit(why)

    def _keep_within_limit(self, why: str) -> None:
        """Take the oldest out of memory, but for those that are being written: they go anyway."""
        rest = sum([item.size for item in self._current if item.batch is not None])
        stay: list[WaitingBatch] = []
        while self._loaded and self.size - rest > self._limit:
            item = self._loaded.popleft()
            if item in self._current:
                stay.append(item)
            else:
                self._make_room(item, why)
        self._loaded.extendleft(reversed(stay))

    def _make_room(self, item: WaitingBatch, why: str) -> None:
        batch = item.batch
        if batch is None or item.number not in self._items:
            return
        self.size -= item.size
        item.batch = None
        if item.saved is not None:
            self._index(item)
            self._events.unloaded(batch)
        else:
            del self._items[item.number]
            self._events.lost(batch, f"too many turns wait for the store: {why}; {self.unsaved}")

    def _index(self, item: WaitingBatch) -> None:
        for key in item.keys:
            self._unloaded.setdefault(key, []).append(item)

    def _unindex(self, item: WaitingBatch) -> None:
        for key in item.keys:
            items = self._unloaded.get(key, [])
            if item in items:
                items.remove(item)
                if not items:
                    del self._unloaded[key]

    async def adopt(self, *, again: bool = False) -> None:
        """Take over what dead processes have left; does nothing the second time.

        `again`: also what those have left that died since.
        """
        async with self._adopting:
            if again or not self.adopted:
                await self._adopt()
                self.adopted = True

    async def _adopt(self) -> None:
        async with self._saving:
            try:
                found, damaged = await self._saver.adopt(describe)
            except OSError as error:
                self._events.lost(UNKNOWN, f"a spill file cannot be opened: {error}")
                return
            if self._saver.unopened:
                self._events.lost(UNKNOWN, f"its spill file stays: {self._saver.unopened}")
            for saved, item in found:
                item.saved, item.adopted = saved, True
                self._index(item)
                self._items[item.number] = item
        for _ in range(damaged):
            self._events.lost(UNKNOWN, "its line in the spill file is cut or damaged")
        if found:
            self._start(0.0)

    # -- finding ---------------------------------------------------------------------------------

    @property
    def unloaded(self) -> bool:
        """Whether some batches are only in their file."""
        return bool(self._unloaded)

    async def find(self, tenant: str, keys: Sequence[bytes]) -> Entries:
        """Return the entries that are only in a file, the last filed last."""
        wanted = {item for key in keys for item in self._unloaded.get((tenant, key), ())}
        found: dict[bytes, tuple[IndexEntry, ...]] = {}
        for item in sorted(wanted, key=lambda item: item.number):
            with suppress(OSError, ValueError):
                batch = await self._load(item)
                for entry in batch.index:
                    for key in set(entry.keys).intersection(keys):
                        found[key] = (*found.get(key, ()), entry)
        return found

    def parents(self, tenant: str) -> dict[str, str]:
        """Return the turns that are only in a file, each with the turn that it continues."""
        parents: dict[str, str] = {}
        for item in self._items.values() if self._unloaded else ():
            if item.tenant == tenant and item.batch is None:
                parents |= item.parents
        return parents

    def held(self, tenant: str) -> list[float]:
        """Return since when batches of a tenant wait."""
        return [item.held for item in self._items.values() if item.tenant == tenant]

    async def _load(self, item: WaitingBatch) -> Batch:
        if item.batch is not None or item.saved is None:
            return item.batch or Batch(session=item.session, tenant=item.tenant, drafts=())
        return await self._saver.load(item.saved)

    # -- writing ---------------------------------------------------------------------------------

    async def _write_all(self, delay: float) -> None:
        while self._items:
            await asyncio.sleep(delay)
            delay = self._retry
            try:
                while self._items:
                    await self._write_first()
            except Unavailable as error:
                await self._save(str(error))
        self._events.caught_up()

    async def _write_first(self) -> None:
        """Write the first batches, those of several sessions at once."""
        async with self._writing:
            self._current = next_to_write(self._items.values(), self._refused)
            try:
                batches = await self._load_all(self._current)
                given = [(batch, item.adopted) for item, batch in batches]
                errors = await self._events.write(given) if given else ()
            finally:
                self._current = ()
            found = list(zip(batches, errors, strict=True))
            for (item, _), error in found:
                self._note_refused(item, error)
            await self._remove([item for (item, _), error in found if error is None])
        for error in errors:
            if error is not None:
                raise Unavailable(str(error)) from error

    async def _load_all(self, items: Sequence[WaitingBatch]) -> list[tuple[WaitingBatch, Batch]]:
        """Return batches; one that cannot be read is lost."""
        found: list[tuple[WaitingBatch, Batch]] = []
        for item in items:
            try:
                found.append((item, await self._load(item)))
            except (OSError, ValueError) as error:
                nothing = Batch(session=item.session, tenant=item.tenant, drafts=())
                self._events.lost(nothing, f"it cannot be read from its file: {error}")
                await self._remove([item])
        return found

    async def _remove(self, items: Sequence[WaitingBatch]) -> None:
        for item in items:
            del self._items[item.number]
            self.size -= item.size if item.batch is not None else 0
            item.batch = None
            self._unindex(item)
        async with self._saving:
            with suppress(OSError):
                await self._saver.release([item.saved for item in items if item.saved is not None])

    # -- deleting --------------------------------------------------------------------------------

    async def change(self, change: Callable[[Batch], Batch | None]) -> None:
        """Replace batches by what `change` returns of each (itself: as it is; None: deleted).

        Raises `Unavailable` when one cannot be read, or erased from its file.
        """
        async with self._writing, self._saving:
            for item in list(self._items.values()):
                try:
                    batch = await self._load(item)
                    other = change(batch)
                    if other is not batch and item.saved is not None:
                        item.saved = await self._saver.replace(item.saved, other)
                except (OSError, ValueError) as error:
                    raise Unavailable(f"a turn in the spill file is not erased: {error}") from error
                if other is not batch:
                    await self._replace(item, other)

    async def _replace(self, item: WaitingBatch, other: Batch | None) -> None:
        self._unindex(item)
        self.size -= item.size if item.batch is not None else 0
        if other is not None:
            new = describe(other)
            item.batch, item.size, item.keys = other, new.size, new.keys
            self.size += item.size
            self._loaded.append(item)
            return
        del self._items[item.number]
        if item.saved is not None:
            await self._saver.release([item.saved])

    # -- closing ---------------------------------------------------------------------------------

    async def close(self, seconds: float) -> None:
        """Try once more to write, then leave what is saved to the next process."""
        why = "the store did not answer"
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._writing:  # nothing is being written
                self._cancel()
            try:
                while self._items:
                    async with asyncio.timeout(seconds):
                        await self._write_first()
            except Unavailable as error:
                why = str(error)
        self._cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._save(why)
        for item in self._items.values():
            if item.saved is None and item.batch is not None:
                self._events.lost(item.batch, why)
        self._items.clear()
        self._saver.close()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
