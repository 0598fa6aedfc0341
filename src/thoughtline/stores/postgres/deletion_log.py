"""What was deleted lately, for batches that waited on some node meanwhile.

A deletion does not know them. So the writer of a batch that had to wait looks here first, and
takes out of it what was deleted since. Each deletion raises an epoch of its tenant, by which the
database refuses a batch that was looked through before.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.deletions import KEPT, PURGE, NotedDeletion
from thoughtline.stores.postgres.connections import Connections

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

_PRIMARY = "SELECT master FROM sealing"
_NOTE = "SELECT note_deletion($1, $2, $3), currval('filings') AS epoch"
_SINCE = """
SELECT (SELECT coalesce(max(epoch), 0) FROM tenants WHERE tenant IN ($1, '')) AS epoch, g.what,
    g.epoch AS noted, store_time($3) - g.at AS age
FROM (VALUES (1)) AS one LEFT JOIN gone AS g
    ON g.tenant IN ($1, '') AND g.at >= store_time($3) - $2::float8
ORDER BY g.epoch
"""
_MARGIN = 60.0
"""Seconds by which more is read than was asked for: the answer may take so long."""

_EXPIRE = "DELETE FROM gone WHERE at < store_time($1) - $2::float8"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(NotedDeletion).decode


class DeletionLog:
    """Deletions of the last weeks, of all nodes."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        now: Callable[[], float | None],
        keychain: "Keychain | None" = None,
    ) -> None:
        """`now` is the time for the database, None for its own."""
        self._connections = connections
        self._clock = clock
        self._now = now
        self._keychain = keychain
        self._own = (0, 0)  # when this node last noted one, and the epoch that it raised

    async def note_purge(self, session: str | None, tenant: str | None) -> None:
        """Note that sessions are about to be deleted."""
        await self.note(PURGE, EntryFilter(session=session, tenant=tenant))

    async def note(self, kind: str, entry_filter: EntryFilter) -> None:
        """Note what is about to be deleted, and drop what is too long ago."""
        await self._connections.write(_EXPIRE, self._now(), KEPT)
        tenant = (entry_filter.tenant or "").encode()
        what = _encode(NotedDeletion(kind, entry_filter))
        if self._keychain is not None:
            # Read now: a key that this node took for the newest may have been retired since.
            ((self._keychain.primary,),) = await self._connections.read(_PRIMARY)
            what = self._keychain.seal_note(what)
        ((_, epoch),) = await self._connections.write(_NOTE, tenant, what, self._now())
        self._own = self._clock.mono(), epoch

    async def since(self, tenant: str, moment: int) -> tuple[list[NotedDeletion], int]:
        """Return what was deleted since a moment of the clock that never goes back, and the epoch.

        Each has its time by this machine's clock, at the latest. The database says only how long
        ago it was, since its clock is another one. What this node has noted before, and all that
        was noted before that, is left out for certain.
        """
        before = self._own[1] if self._own[0] < moment else 0
        asked = (self._clock.mono() - moment) / 1e9
        rows = await self._connections.read(_SINCE, tenant.encode(), asked + _MARGIN, self._now())
        passed, now = (self._clock.mono() - moment) / 1e9, self._clock.wall()
        found: list[NotedDeletion] = []
        for row in rows:
            if row["what"] is not None and row["age"] < passed and row["noted"] > before:
                what: bytes = row["what"]
                if self._keychain is not None:
                    what = self._keychain.open_note(what)
                found.append(replace(_decode(what), at=now - row["age"]))
        return found, rows[0]["epoch"]
