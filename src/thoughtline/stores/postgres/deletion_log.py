"""What was deleted lately, for batches that waited on some node meanwhile.

A deletion does not know them. So whoever writes a batch that had to wait looks here first, and
takes out of it what was deleted since. Each deletion raises an epoch of its tenant, by which the
database refuses a batch that was looked through before.
"""

from typing import TYPE_CHECKING

import msgspec

from thoughtline.stores.base import Batch, EntryFilter
from thoughtline.stores.deletions import KEPT, PURGE, NotedDeletion
from thoughtline.stores.postgres.connections import Connections

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

_NOTE = "SELECT note_deletion_1($1, $2, $3)"
_SINCE = """
SELECT (SELECT coalesce(max(epoch), 0) FROM tenants WHERE tenant IN ($1, '')) AS epoch, g.what
FROM (VALUES (1)) AS one LEFT JOIN gone AS g
    ON g.tenant IN ($1, '') AND g.at >= now_1($3) - $2::float8 - 1
ORDER BY g.epoch
"""
_EXPIRE = "DELETE FROM gone WHERE at < now_1($1) - $2::float8"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(NotedDeletion).decode


class DeletionLog:
    """Deletions of the last weeks, of all nodes."""

    def __init__(self, connections: Connections, keychain: "Keychain | None" = None) -> None:
        self._connections = connections
        self._keychain = keychain

    async def note_purge(self, session: str | None, tenant: str | None, now: float | None) -> None:
        """Note that sessions are about to be deleted."""
        await self.note(PURGE, EntryFilter(session=session, tenant=tenant), now)

    async def note(self, kind: str, entry_filter: EntryFilter, now: float | None) -> None:
        """Note what is about to be deleted."""
        tenant = (entry_filter.tenant or "").encode()
        what = _encode(NotedDeletion(kind, entry_filter))
        if self._keychain is not None:
            what = self._keychain.seal_note(what)
        await self._connections.write(_NOTE, tenant, what, now)

    async def applied(
        self, batch: Batch, waited: float, now: float | None
    ) -> tuple[Batch | None, int]:
        """Return what is left of a batch that waited so long, and the epoch of its tenant.

        None: all of it was deleted.
        """
        rows = await self._connections.read(_SINCE, batch.tenant.encode(), waited, now)
        left: Batch | None = batch
        for row in rows:
            if row["what"] is not None and left is not None:
                what: bytes = row["what"]
                if self._keychain is not None:
                    what = self._keychain.open_note(what)
                left = _decode(what).applied(left)
        return left, rows[0]["epoch"]

    async def expire(self, now: float | None) -> None:
        """Drop what is too long ago."""
        await self._connections.write(_EXPIRE, now, KEPT)
