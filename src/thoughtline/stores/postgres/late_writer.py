"""Batches that may be older than a deletion: what was deleted since is not written.

The database refuses a batch whose node did not know of a deletion (see `deletion_log`). Such a
batch is looked through and written again, and so is one that had to wait before it came here, and
all that was written lately when a server takes over that may not have it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.stores.base import Batch
from thoughtline.stores.deletions import NotedDeletion, all_applied
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.deletion_log import DeletionLog
from thoughtline.stores.postgres.rows import pack
from thoughtline.stores.postgres.writer import GroupWriter, Overtaken

HELD_MARGIN = 1.0
"""Seconds by which a batch may have waited longer than the clocks of two processes say."""

Noted = tuple[Sequence[NotedDeletion], int]
"""What was deleted of a tenant, and its epoch."""


class LateWriter:
    """Writes batches without what was deleted since they began to wait, on any node."""

    def __init__(
        self,
        connections: Connections,
        writer: GroupWriter,
        deletions: DeletionLog,
        clock: Clock,
        note_epoch: Callable[[bytes, int], Awaitable[None]],
        *,
        patience: float,
    ) -> None:
        """`note_epoch` is told the epoch of a tenant whenever it was asked for."""
        self._connections = connections
        self._writer = writer
        self._deletions = deletions
        self._clock = clock
        self._note_epoch = note_epoch
        self._patience = patience  # seconds for which a server that restarts is waited for
        self._running: set[asyncio.Future[None]] = set()  # batches that are looked through
        self._asking: dict[str, tuple[int, asyncio.Future[Noted]]] = {}  # since when, by tenant
        self.resending: asyncio.Future[None] | None = None

    async def append(self, batch: Batch, began: int) -> int:
        """Write a batch that came here at this moment of the clock that never goes back."""
        if batch.held:
            waited = max(self._clock.wall() - batch.held, 0.0) + HELD_MARGIN
            began -= int(waited * 1e9)
        return await self._append(batch, began)

    async def _append(self, batch: Batch, began: int, noted: Noted | None = None) -> int:
        over = asyncio.get_running_loop().create_future()
        self._running.add(over)
        try:
            while True:
                deleted, epoch = noted or await self._noted_since(batch.tenant, began)
                noted = None
                left = all_applied(batch, deleted)
                if left is None:
                    return 0
                packed = pack(left)
                packed.epoch = epoch
                with suppress(Overtaken):
                    return await self._writer.append(packed) + 1
        finally:
            self._running.discard(over)
            over.set_result(None)

    async def finish(self) -> None:
        """Wait until all batches are written that are being looked through."""
        if self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Wait for all that is still to be written."""
        if self.resending is not None:
            await asyncio.wait({self.resending})
        await self.finish()

    async def _noted_since(self, tenant: str, began: int) -> Noted:
        """Return what was deleted since a moment of the clock that never goes back.

        Those who ask at once share an answer, and go on in the order in which they asked.
        """
        first, asking = self._asking.get(tenant, (0, None))
        if asking is None or began < first:
            asking = asyncio.ensure_future(self._ask_since(tenant, began))
            self._asking[tenant] = began, asking
        return _since(await asyncio.shield(asking), self._moment(began))

    async def _ask_since(self, tenant: str, began: int) -> Noted:
        try:
            noted = await self._connections.patiently(
                self._patience, lambda: self._deletions.since(tenant, began)
            )
            await self._note_epoch(tenant.encode(), noted[1])
            return noted
        finally:
            self._asking.pop(tenant, None)

    def _moment(self, mono: int) -> float:
        return self._clock.wall() - (self._clock.mono() - mono) / 1e9

    def resend(self) -> None:
        """Say again what was written lately: a server that took over may not have it all."""
        self.resending = asyncio.ensure_future(self._resend(self._writer.lately()))

    async def _resend(self, lately: Sequence[tuple[int, Batch]]) -> None:
        noted: dict[str, Noted] = {}
        says: list[Awaitable[int]] = []
        for began, batch in lately:  # the oldest first
            if batch.tenant not in noted:
                with suppress(StoreError):  # each batch of this tenant will ask by itself
                    noted[batch.tenant] = await self._noted_since(batch.tenant, began)
            known = noted.get(batch.tenant)
            since = _since(known, self._moment(began)) if known is not None else None
            says.append(self._append(replace(batch, expect=None), began, since))
        await asyncio.gather(*says, return_exceptions=True)


def _since(noted: Noted, moment: float) -> Noted:
    """Return what was deleted since a moment of this machine's clock."""
    return [deletion for deletion in noted[0] if deletion.at > moment], noted[1]
