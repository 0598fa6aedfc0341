"""Writes batches in groups: what waits when a group is written becomes the next one, in one call.

Batches that depend on one another within a group (the same batch twice, one that expects a seq, an
entry filed again) go into different groups, so that the database judges each group at once. A
connection that was lost while a group was written is replaced, and the group is said again: what
was written before is known by its id.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg

from thoughtline.clock import Clock
from thoughtline.errors import Conflict, Damaged, SealError, StoreError, Unavailable
from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import call
from thoughtline.stores.postgres.rows import PackedBatch, entry_values, unpack_memo
from thoughtline.stores.postgres.sealed_rows import entry_names, seal_batch
from thoughtline.stores.postgres.seals import Seals

MAX_BATCHES = 128
MAX_BYTES = 4 << 20
"""What a group holds at most."""

RESENT_NANOSECONDS, RESENT_BYTES = 30_000_000_000, 64 << 20
"""How much of what was written is said again after a failover, at most."""

APPEND = call("append", 5)
_UNFILE = """
DELETE FROM names AS n USING unnest($1::bytea[], $2::bigint[]) AS g (name, filed)
WHERE n.name = g.name AND n.filed = g.filed
"""
_WRITTEN, _OTHER_TENANT, _UNEXPECTED, _DELETED, _NEW = "w", "t", "e", "g", "n"
_OTHER_KEY = "k"


class Overtaken(Conflict):
    """Something of the tenant was deleted since a late batch was looked through: look again."""


class _Pending:
    """A batch that waits to be written, and who waits for it."""

    def __init__(self, packed: PackedBatch) -> None:
        self.packed = packed
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def succeed(self, last: int) -> None:
        if not self.done.done():
            self.done.set_result(last)


def arguments(now: float | None, group: Sequence[PackedBatch]) -> list[Any]:
    """Return what `append` is called with."""
    batches: list[tuple[Any, ...]] = []
    rows: list[tuple[Any, ...]] = []
    entries: list[tuple[Any, ...]] = []
    pointers: list[tuple[Any, ...]] = []
    for n, p in enumerate(group, 1):
        batch = p.batch
        about = p.turns, p.oldest, p.newest, batch.kept, p.epoch, p.key
        batches.append((p.id, p.session, p.tenant, batch.expect, len(batch.drafts), *about))
        rows += [(n, *row) for row in p.rows]
        entries += entry_values(n, p.names, p.entries)
        pointers += [(n, *pointer) for pointer in p.pointers]
    return [now, batches, rows, entries, pointers]


def depends(packed: PackedBatch, others: Sequence[PackedBatch]) -> bool:
    """Whether a batch can only be judged when others of its session are written."""
    ids = {entry[0] for entry in packed.entries}
    for other in others:
        if (
            other.id == packed.id
            or other.tenant != packed.tenant
            or other.batch.expect is not None
            or packed.batch.expect is not None
            or not ids.isdisjoint([entry[0] for entry in other.entries])
            or not ids.isdisjoint([row[5] for row in other.rows])
        ):
            return True
    return False


class GroupWriter:
    """A queue of batches, and the task that writes them."""

    def __init__(
        self,
        connections: Connections,
        seals: Seals,
        clock: Clock,
        now: Callable[[], float | None],
        written: Callable[[Sequence[PackedBatch], int], None],
        *,
        patience: float = 0.0,
    ) -> None:
        """`now` is the time for the database, None for its own; `written` is told of all groups."""
        self._connections = connections
        self._seals = seals
        self._clock = clock
        self._now = now
        self._written = written
        self._patience = patience  # seconds for which a server that restarts is waited for
        self._queue: deque[_Pending] = deque()
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()  # nothing is being written
        self._stale: deque[tuple[list[bytes], list[int]]] = deque()  # names that lead nowhere now
        self._lately: deque[tuple[int, PackedBatch]] = deque()  # what was written, and when
        self._lately_bytes = 0
        self.closed = False

    async def append(self, packed: PackedBatch) -> int:
        """Write a batch; returns the seq before its first event."""
        if self.closed:
            raise Unavailable("this store is closed; open it again")
        pending = _Pending(packed)
        self._queue.append(pending)
        self._start()
        return await pending.done

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write_all())

    def lately(self) -> list[tuple[int, Batch]]:
        """Return what was written in the last half minute, and when, the oldest first."""
        since = self._clock.mono() - RESENT_NANOSECONDS
        return [(at, packed.batch) for at, packed in self._lately if at >= since]

    def _note_lately(self, group: Sequence[PackedBatch]) -> None:
        now = self._clock.mono()
        for packed in group:
            self._lately.append((now, packed))
            self._lately_bytes += packed.size
        while self._lately and (
            self._lately[0][0] < now - RESENT_NANOSECONDS or self._lately_bytes > RESENT_BYTES
        ):
            self._lately_bytes -= self._lately.popleft()[1].size

    async def flush(self) -> None:
        """Wait until everything is written that was queued before."""
        if waiting := [pending.done for pending in self._queue]:
            await asyncio.wait(waiting)
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task})

    async def settled(self) -> None:
        """Wait until the group is written that is being written now."""
        await self._idle.wait()

    async def close(self) -> None:
        """Write what is queued, then take nothing more."""
        self.closed = True
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _write_all(self) -> None:
        while self._queue or self._stale:
            if not self._queue:
                await self.unfile_stale()
                continue
            group = self._next_group()
            self._idle.clear()
            try:
                await self._write(group)
            except StoreError as error:
                await self._write_singly(group, error)
            except BaseException as error:  # who waits is told, whatever it is
                for pending in group:
                    pending.fail(StoreError(f"the batch was not written: {error!r}"))
                raise
            finally:
                self._idle.set()

    def _next_group(self) -> list[_Pending]:
        """Take from the queue what can be judged together."""
        group: list[_Pending] = []
        sessions: dict[bytes, list[PackedBatch]] = {}  # entries of two have nothing in common
        size = 0
        while self._queue and len(group) < MAX_BATCHES and size < MAX_BYTES:
            packed = self._queue[0].packed
            others = sessions.setdefault(packed.session, [])
            if others and depends(packed, others):
                break
            others.append(packed)
            size += packed.size
            group.append(self._queue.popleft())
        return group

    async def _write(self, group: list[_Pending]) -> None:
        """Write a group, without those that may not be written."""
        group.sort(key=lambda pending: pending.packed.session)
        while group:
            packed = [await self._sealed(pending.packed) for pending in group]
            (answer,) = await self._call(packed)
            verdicts, lasts = answer["verdicts"], answer["lasts"]
            if verdicts == _OTHER_KEY * len(group):
                await self._seals.refuse_sealed()
                self._seals.forget(one.tenant for one in packed)
                continue
            if verdicts == _NEW * len(group):
                await self._note_stale(packed, answer)
                self._written(packed, answer["xid_"])
                self._note_lately([pending.packed for pending in group])
                for pending, last in zip(group, lasts, strict=True):
                    pending.succeed(last)
                return
            rest: list[_Pending] = []
            for pending, verdict, last in zip(group, verdicts, lasts, strict=True):
                if verdict == _NEW:
                    rest.append(pending)
                elif verdict == _WRITTEN:
                    pending.succeed(last)
                else:
                    pending.fail(_refusal(pending.packed, verdict, last))
            group[:] = rest

    async def _sealed(self, packed: PackedBatch) -> PackedBatch:
        """Return a batch as it is stored, sealed with the keys that its tenant is known to have."""
        return seal_batch(packed, await self._seals.sealing(packed.tenant))

    async def _call(self, packed: list[PackedBatch]) -> list[asyncpg.Record]:
        # What was written before its answer was lost is known by its id.
        args, size = arguments(self._now(), packed), sum(one.size for one in packed)
        return await self._connections.patiently(
            self._patience, lambda: self._connections.write(APPEND, *args, size=size)
        )

    async def _write_singly(self, group: list[_Pending], error: StoreError) -> None:
        """After an error: one batch may be at fault, and the others are not."""
        if isinstance(error, Unavailable) or len(group) == 1:
            for pending in group:
                pending.fail(error)
            return
        for pending in group:
            try:
                await self._write([pending])
            except StoreError as own:
                pending.fail(own)

    # -- names of entries that were filed again --------------------------------------------------

    async def _note_stale(self, packed: Sequence[PackedBatch], answer: asyncpg.Record) -> None:
        if answer["old_id"]:
            tenants = {entry[0]: p.tenant for p in packed for entry in p.entries}
            await self.note_stale([tenants[id] for id in answer["old_id"]], answer)

    async def note_stale(self, tenants: Sequence[bytes], old: asyncpg.Record) -> None:
        """Note the names of entries as they were before: they are deleted when there is time."""
        seals = await self._seals.of(tenants)
        for tenant, id, filed, memo in zip(
            tenants, old["old_id"], old["old_filed"], old["old_memo"], strict=True
        ):
            with contextlib.suppress(SealError, Damaged):  # names then lead nowhere: `prune_index`
                opened, version = seals[tenant].open_memo(id, memo)
                names = entry_names(seals[tenant], unpack_memo(opened), version=version)
                self._stale.append((names, [filed] * len(names)))

    async def unfile_stale(self) -> None:
        """Delete names that lead nowhere. Look-ups pass them over, so it may fail."""
        while self._stale:
            names, filed = self._stale.popleft()
            with contextlib.suppress(StoreError):
                await self._connections.write(_UNFILE, names, filed)


def _refusal(packed: PackedBatch, verdict: str, last: int) -> StoreError:
    batch = packed.batch
    if verdict == _OTHER_TENANT:
        found = rules.find_conflict(batch, batch.tenant + "?", last)
    elif verdict == _UNEXPECTED:
        found = rules.find_conflict(batch, batch.tenant, last)
    else:
        found = Overtaken()
    return found or Conflict(f"session {batch.session!r} did not take the batch")
