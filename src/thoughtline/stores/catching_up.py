"""Writes queued batches to the store, minus anything deleted since they were queued.

Batches of several sessions are given at once, so that a store writes them in one transaction.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.stores.base import Batch, Store
from thoughtline.stores.deletions import ERASE, PURGE, NeighbourDeletions, NotedDeletion, left_of


class _Written(NamedTuple):
    """When batches were written, and what was known to be deleted."""

    since: float  # when the first of them began to wait
    known: int  # how many deletions since then they are without
    ended: float


class CatchUp:
    """Writes batches that had to wait."""

    def __init__(self, store: Store, deletions: NeighbourDeletions, clock: Clock) -> None:
        self._store = store
        self._deletions = deletions
        self._clock = clock
        self._unchecked: _Written | None = None

    async def write(self, waiting: Sequence[tuple[Batch, bool]]) -> list[Batch | BaseException]:
        """Write batches, each with whether another process left it and may have written it.

        Returns what is written of each, or why it is not. Raises `StoreError` when it is not
        certain what was deleted: all are to be written again.
        """
        await self._delete_what_came_in_between()  # the last time that failed
        since = min([batch.held for batch, _ in waiting])
        deleted = await self._deletions.noted_since(since)
        writing = [self._write(batch, adopted, deleted) for batch, adopted in waiting]
        written = await asyncio.gather(*writing, return_exceptions=True)
        if any(isinstance(one, Batch) for one in written):
            self._unchecked = _Written(since, len(deleted), self._clock.wall())
            await self._delete_what_came_in_between()
        return written

    async def _delete_what_came_in_between(self) -> None:
        """Delete again what was deleted while batches were written: they may have it."""
        if self._unchecked is not None:
            since, known, ended = self._unchecked
            for deletion in (await self._deletions.noted_since(since))[known:]:
                if deletion.at <= ended:  # whoever deleted later has found them
                    await self._delete_again(deletion)
            self._unchecked = None

    async def _write(self, batch: Batch, adopted: bool, deleted: Sequence[NotedDeletion]) -> Batch:
        if adopted:  # whoever wrote since has seen nothing of it
            batch = replace(batch, expect=None)
        left = left_of(batch, deleted)
        if left is None:
            return replace(batch, index=())
        await self._store.append(left)
        return left

    async def _delete_again(self, deletion: NotedDeletion) -> None:
        which = deletion.which
        if deletion.kind == PURGE:
            await self._store.purge(session=which.session, tenant=which.tenant)
        else:
            await (self._store.erase if deletion.kind == ERASE else self._store.forget)(which)
