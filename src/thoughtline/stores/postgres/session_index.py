"""The index of a session, read and filed again; and look-up keys that lead nowhere."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, filterfalse

from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import FiledEntry
from thoughtline.stores.damage import is_damaged
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import call, load
from thoughtline.stores.postgres.rows import (
    entry_id,
    entry_values,
    pack_entries,
    with_refusals,
)
from thoughtline.stores.postgres.sealed_rows import (
    Values,
    read_entry,
    read_thoughts,
    seal_entries,
    sealed_with,
)
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.tenant_seal import TenantSeal
from thoughtline.stores.postgres.writer import GroupWriter

_SESSION_ENTRIES = load("session_entries.sql")
_FILED_NAMES = "SELECT name FROM names WHERE name = ANY ($1) AND filed = ANY ($2)"
_REINDEX = call("reindex", 5)
_ORPHANS = """
SELECT count(*) FROM names AS n
WHERE NOT EXISTS (SELECT FROM entries AS e WHERE e.id = n.entry AND e.filed = n.filed)
"""
_PRUNE = """
DELETE FROM names AS n USING (
    SELECT n.name, n.filed FROM names AS n
    WHERE NOT EXISTS (SELECT FROM entries AS e WHERE e.id = n.entry AND e.filed = n.filed)
    LIMIT 5000
) AS g WHERE n.name = g.name AND n.filed = g.filed
RETURNING 1
"""


class SessionIndex:
    """The index entries of each session."""

    def __init__(self, connections: Connections, seals: Seals, writer: GroupWriter) -> None:
        self._connections = connections
        self._seals = seals
        self._writer = writer

    async def read(self, session: str) -> list[FiledEntry]:
        """Return the index entries of a session, the first filed first.

        Those that are damaged are left out: they are made again like those that are missing.
        """
        rows, seals, complete = await self._opened(session)
        if not complete:  # perhaps they were sealed again before the keys were read
            rows, seals, _ = await self._opened(session)
        damage = self._seals.damage
        memos = [read_entry(row, damage) for row in rows]
        rows = [row for row, entry in zip(rows, memos, strict=True) if not is_damaged(entry)]
        entries = [
            with_refusals(rules.with_thoughts(entry, read_thoughts(row, damage)), row["refusals"])
            for row, entry in zip(rows, filterfalse(is_damaged, memos), strict=True)
        ]
        names = [
            dict(
                zip(
                    seals[row["tenant"]].names(entry.keys, version=sealed_with(row, "memo")),
                    entry.keys,
                    strict=True,
                )
            )
            for row, entry in zip(rows, entries, strict=True)
        ]
        present = await self._connections.read(
            _FILED_NAMES, list(chain.from_iterable(names)), [row["filed"] for row in rows]
        )
        filed = {row["name"] for row in present}
        return [
            FiledEntry(entry, frozenset(key for name, key in own.items() if name not in filed))
            for entry, own in zip(entries, names, strict=True)
        ]

    async def _opened(
        self, session: str
    ) -> tuple[Sequence[Values], Mapping[bytes, TenantSeal], bool]:
        """Return the entries of a session, what opened them, and whether all of them open."""
        found = await self._connections.read(_SESSION_ENTRIES, session.encode())
        seals = await self._seals.of(row["tenant"] for row in found)
        rows = await self._seals.opened(found, entry="id", seals=seals)
        return rows, seals, len(rows) == len(found)

    async def replace(
        self, session: str, tenant: str, entries: Sequence[IndexEntry], remove: Collection[str]
    ) -> None:
        """Replace the index entries of these turns, and delete those of the turns in `remove`."""
        id, owner = session.encode(), tenant.encode()
        plain_rows, names = pack_entries(id, owner, entries)
        rows = plain_rows
        while True:
            seal = await self._seals.sealing(owner)
            if seal.seals:
                rows, names = seal_entries(plain_rows, entries, seal)
            (old,) = await self._connections.write(
                _REINDEX,
                *(id, owner, seal.version),
                [entry_id(id, turn.encode()) for turn in remove],
                entry_values(1, names, rows),
            )
            if old["current"]:
                break
            await self._seals.refuse_sealed()
            self._seals.forget([owner])
        if old["old_id"]:
            await self._writer.note_stale([owner] * len(old["old_id"]), old)
            await self._writer.unfile_stale()

    async def prune(self, *, dry_run: bool) -> int:
        """Delete look-up keys that lead to no index entry; returns how many there were."""
        await self._writer.flush()
        ((count,),) = await self._connections.slowly(_ORPHANS)
        while count and not dry_run and await self._connections.slowly(_PRUNE):
            pass
        return int(count)
