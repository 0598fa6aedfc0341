"""What was deleted lately, for batches that wait in another process meanwhile.

A deletion does not reach them: they are in that process's memory, or in its spill file. So it is
noted in a file beside the store, for its owner alone, and the writer of a batch that had to wait
takes out of it what was deleted since. A store that several machines share notes it by itself.

When it is done, that is an event in a session of its own: who shows what was read before, in any
process, reads it again.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.errors import StoreError, Unavailable
from thoughtline.log.events import DeletionDone, draft
from thoughtline.stores import rules
from thoughtline.stores.base import INTERNAL_PREFIX, Batch, EntryFilter, Store

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows: nothing waits in a file there)
    fcntl = None  # type: ignore[assignment]

PURGE, FORGET, ERASE = "purge", "forget", "erase"
SESSION = f"{INTERNAL_PREFIX}deletions"
MAX_TOLD = 1_000
"""Deletions after which the session that tells of them begins again."""
KEPT = 30 * 86_400.0
"""Seconds for which a deletion is remembered: longer than any batch should wait."""


class NotedDeletion(Struct, frozen=True, array_like=True):
    """What was deleted: whole sessions, or thoughts that match a filter."""

    kind: str
    which: EntryFilter  # of a purge only its session and tenant
    at: float = 0.0

    def applied(self, batch: Batch) -> Batch | None:
        """Return what is left of a batch; None: nothing."""
        which = self.which
        if self.kind == FORGET:
            return rules.forget_in_batch(batch, which)[0]
        if self.kind == ERASE:
            return rules.erase_in_batch(batch, which)[0]
        meant = which.session in {None, batch.session} and which.tenant in {None, batch.tenant}
        return None if meant else batch


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(NotedDeletion).decode


class DeletionFile:
    """The deletions of all processes that have one store, in a file beside it."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}-deletions")

    def note(self, deletion: NotedDeletion) -> None:
        """Write a deletion down, and forget those of long ago; raises `OSError`."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(fd, "r+b") as file:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_EX)
            recent = [one for one in _read(file.read()) if one.at >= deletion.at - KEPT]
            file.seek(0)
            file.write(b"".join(_encode(one) + b"\n" for one in (*recent, deletion)))
            file.truncate()

    def version(self) -> tuple[int, int]:
        """Return what changes with every deletion."""
        try:
            found = self._path.stat()
        except OSError:  # there was none yet, or reading them will say what is wrong
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def since(self, moment: float) -> list[NotedDeletion]:
        """Return what was deleted since then, in order; raises `OSError`."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        return [deletion for deletion in _read(data) if deletion.at >= moment]


class NeighbourDeletions:
    """What other processes have deleted, on this machine and on others."""

    def __init__(self, store: Store, place: Path | None, clock: Clock) -> None:
        """`place` is the file of a store that only this machine has."""
        self._store = store
        self._clock = clock
        self._file = DeletionFile(place) if place and not store.shared else None

    def version(self) -> tuple[int, int]:
        """Return what changes when a process of this machine deletes something, found or not."""
        return self._file.version() if self._file is not None else (0, 0)

    async def note(self, kind: str, which: EntryFilter) -> None:
        """Tell processes in which batches wait; raises `Unavailable`. A shared store does it."""
        if self._file is None:
            return
        try:
            deletion = NotedDeletion(kind, which, self._clock.wall())
            await asyncio.to_thread(self._file.note, deletion)
        except OSError as error:
            raise Unavailable(f"the deletion cannot be noted beside the store: {error}") from error

    async def since(self, tenant: str, moment: float) -> Sequence[NotedDeletion]:
        """Return what was deleted since then; of a tenant, where the store is shared."""
        if self._store.shared:
            return await self._store.deleted_since(tenant, moment)
        return await self.noted_since(moment)

    async def noted_since(self, moment: float) -> Sequence[NotedDeletion]:
        """Return what processes of this machine have deleted since then."""
        if self._file is None:
            return []
        try:
            return await asyncio.to_thread(self._file.since, moment)
        except OSError as error:
            raise Unavailable(f"what was deleted meanwhile cannot be read: {error}") from error


async def tell_deletion(store: Store, clock: Clock, kind: str, which: EntryFilter) -> None:
    """Tell all who show what is in a store that something of it is gone; fails silently."""
    done = DeletionDone(kind=kind, session=which.session or "")
    made = draft(done, id=clock.new_id(), parent="", at=clock.wall())
    batch = Batch(session=SESSION, tenant="", drafts=(made,))
    with suppress(StoreError):
        if await store.append(batch) >= MAX_TOLD:
            await store.purge(session=SESSION)
            await store.append(batch)


def left_of(batch: Batch, deletions: Sequence[NotedDeletion]) -> Batch | None:
    """Return what is left of a batch after what was deleted since it waits; None: nothing."""
    return all_applied(batch, [one for one in deletions if one.at >= batch.held])


def all_applied(batch: Batch, deletions: Sequence[NotedDeletion]) -> Batch | None:
    """Return what is left of a batch after these deletions; None: nothing."""
    left: Batch | None = batch
    for deletion in deletions:
        if left is not None:
            left = deletion.applied(left)
    return left


def _read(data: bytes) -> list[NotedDeletion]:
    """Return the deletions that can be read: a line may be cut."""
    found: list[NotedDeletion] = []
    for line in data.splitlines():
        with suppress(msgspec.MsgspecError):
            found.append(_decode(line))
    return found
