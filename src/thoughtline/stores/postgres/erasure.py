"""Forgets thought entries, and erases thoughts from the log."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from thoughtline.errors import KeyGone
from thoughtline.log.events import DAMAGED_VERSION
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter, Progress
from thoughtline.stores.damage import is_damaged
from thoughtline.stores.erased import erased, is_erased, unfiled_entry
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.entries import EntryList, encoded
from thoughtline.stores.postgres.rows import (
    entry_id,
    pack_entry,
    pack_thoughts,
)
from thoughtline.stores.postgres.sealed_rows import (
    Values,
    read_entry,
    read_events,
    read_thoughts,
    sealed_with,
)
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.tenant_seal import TenantSeal

PAGE = 100
"""Batches whose thoughts are erased in one go."""

_COUNT = "SELECT coalesce(sum(shown), 0) FROM entries WHERE shown > 0"
_ENTRIES = "SELECT id, tenant, session, turn, rev, memo FROM entries WHERE id = ANY ($1)"
_REWRITE_ENTRIES = "SELECT * FROM rewrite_entries($1, $2, $3, $4, $5)"
_REWRITE_THOUGHTS = "SELECT * FROM rewrite_thoughts($1, $2, $3, $4)"
_WITH_THOUGHTS = """
SELECT b.session, b.id, b.nth, b.first, b.count, b.said, b.thoughts, b.tenant,
    b.entry AS about, e.id AS entry, e.turn, e.rev, e.memo
FROM batches AS b LEFT JOIN entries AS e ON e.id = b.entry
WHERE b.thoughts IS NOT NULL AND (b.session, b.first, b.nth) > ($1::bytea, $2::int, $3::smallint)
  AND ($4::bytea IS NULL OR b.tenant = $4) AND ($5::bytea IS NULL OR b.session = $5)
  AND ($6::bytea IS NULL OR b.entry = $6)
ORDER BY b.session, b.first, b.nth LIMIT $7
"""


class Erasure:
    """Takes thoughts out of the index (`forget`), or out of the log as well (`erase`)."""

    def __init__(self, connections: Connections, seals: Seals, entries: EntryList) -> None:
        self._connections = connections
        self._seals = seals
        self._entries = entries

    async def forget(self, entry_filter: EntryFilter, progress: Progress | None) -> int:
        """Clear thought entries from the index; returns how many."""
        ((total,),) = await self._connections.slowly(_COUNT) if progress else ((0,),)
        count = 0
        async for rows in self._entries.pages(entry_filter):
            count += await self._forget(rows, entry_filter)
            if progress is not None:
                progress(count, max(count, total))
        if progress is not None:
            progress(count, count)
        return count

    async def _forget(self, rows: Sequence[Values], entry_filter: EntryFilter) -> int:
        count = 0
        while rows:
            changed: dict[bytes, tuple[Values, IndexEntry, int]] = {}
            for row in rows:
                entry = read_entry(row, self._seals.damage)
                if rules.entry_matches(entry_filter, row["tenant"].decode(), entry):
                    other, cleared = rules.forget_entry(entry, entry_filter)
                    if cleared:
                        changed[row["id"]] = (row, other, cleared)
            done = await self._rewrite(changed)
            count += sum(changed[id][2] for id in done)
            left = [id for id in changed if id not in done]
            rows = await self._again(left)
        return count

    async def _again(self, ids: Sequence[bytes]) -> Sequence[Values]:
        """Return entries that others have changed meanwhile."""
        return (await self._seals.read(_ENTRIES, ids, entry="id")).opened if ids else ()

    async def _rewrite(self, changed: Mapping[bytes, tuple[Values, IndexEntry, Any]]) -> set[bytes]:
        """Write entries that were changed; returns which: not those that others changed since."""
        if not changed:
            return set()
        seals = await self._seals.of(row["tenant"] for row, _, _ in changed.values())
        values: list[tuple[bytes, int, int, int, bytes]] = []
        for id, (row, entry, _) in changed.items():
            *_, shown, chars, memo = pack_entry(b"", entry)
            with suppress(KeyGone):  # replaced since, or the tenant is being deleted
                memo = _resealed(seals[row["tenant"]], row, id, "memo", memo)
                values.append((id, row["rev"], shown, chars, memo))
        if not values:
            return set()
        rows = await self._connections.write(_REWRITE_ENTRIES, *zip(*values, strict=True))
        return {row[0] for row in rows}

    async def erase(self, entry_filter: EntryFilter, progress: Progress | None) -> int:
        """Erase thoughts from the log, and forget their entries; returns how many thoughts."""
        count = 0
        here: tuple[bytes, int, int] = (b"", -1, -1)
        session, turn = entry_filter.session, entry_filter.turn
        entry = None
        if session is not None and turn is not None:
            entry = entry_id(session.encode(), turn.encode())
        while True:
            which = encoded(entry_filter.tenant), encoded(session), entry
            rows, opened = await self._seals.read(
                _WITH_THOUGHTS, *here, *which, PAGE, entry="about"
            )
            erased, complete = await self._erase(opened, entry_filter)
            count += erased
            if progress is not None:
                progress(count, count)
            if not complete:
                continue
            if len(rows) < PAGE:
                return count
            here = (rows[-1]["session"], rows[-1]["first"], rows[-1]["nth"])

    async def _erase(self, rows: Sequence[Values], entry_filter: EntryFilter) -> tuple[int, bool]:
        """Erase the thoughts of a page; returns how many, and whether that is all of them."""
        counts: list[int] = []
        blanked: list[tuple[bytes, bytes, int, bytes]] = []
        forgotten: dict[bytes, tuple[Values, IndexEntry, None]] = {}
        seals = await self._seals.of(row["tenant"] for row in rows)
        for row in rows:
            filed = read_entry(row, self._seals.damage) if row["entry"] is not None else None
            filed = None if filed is None or is_damaged(filed) else filed
            thoughts = read_thoughts(row, self._seals.damage)
            if thoughts is None:  # they are damaged: what can be read of them by eye goes as well
                thoughts = [(DAMAGED_VERSION, "")] * (filed.shape.count("t") if filed else 1)
            entry = filed or self._unfiled(row, thoughts)
            if not rules.filter_matches(entry_filter, row["tenant"].decode(), entry):
                continue
            left = [thought for thought in thoughts if not is_erased(*thought)]
            if left:
                blank = [erased(*thought) for thought in thoughts]
                packed, seal = pack_thoughts(blank), seals[row["tenant"]]
                try:
                    value = _resealed(seal, row, row["about"], "thoughts", packed)
                except KeyGone:  # replaced since: again
                    return 0, False
                blanked.append((row["session"], row["id"], row["nth"], value))
                counts.append(len(left))
            if filed is not None:
                other, _ = rules.forget_entry(entry, ALL_ENTRIES)
                if other != entry:
                    forgotten[row["entry"]] = (row, other, None)
        if blanked:
            done = await self._connections.write(_REWRITE_THOUGHTS, *zip(*blanked, strict=True))
            if len(done) < len(blanked):  # the others have another key by now
                return sum([counts[place - 1] for (place,) in done]), False
        await self._forget_all(forgotten)
        return sum(counts), True

    async def _forget_all(self, forgotten: dict[bytes, tuple[Values, IndexEntry, None]]) -> None:
        """Write entries without their thoughts, also those that others are changing."""
        while forgotten:
            for id in await self._rewrite(forgotten):
                del forgotten[id]
            forgotten = {
                row["id"]: (
                    row,
                    rules.forget_entry(read_entry(row, self._seals.damage), ALL_ENTRIES)[0],
                    None,
                )
                for row in await self._again(list(forgotten))
            }

    def _unfiled(self, row: Values, thoughts: Sequence[tuple[int, str]]) -> IndexEntry:
        """Return an entry for thoughts that have none, to compare with a filter."""
        events = read_events(row, self._seals.damage)
        turns = [event.parent for event in events if event.type == "reasoning"]
        return unfiled_entry(row["session"].decode(), turns[0] if turns else "", thoughts)


def _resealed(seal: TenantSeal, row: Values, id: bytes, column: str, value: bytes) -> bytes:
    """Return a value as it is stored in place of that of an opened row."""
    return seal.reseal_entry(value, id, column, version=sealed_with(row, column))
