"""Thought entries: listed, forgotten, erased; and the index of a session, read and filed anew."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import asyncpg

from thoughtline.errors import KeyGone
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Origin, Thought
from thoughtline.stores import rules
from thoughtline.stores.base import (
    ALL_ENTRIES,
    EntryFilter,
    FiledEntry,
    Progress,
    ThoughtEntry,
)
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import call, load
from thoughtline.stores.postgres.rows import (
    entry_id,
    pack_entries,
    pack_entry,
    pack_thoughts,
    unpack_events,
    unpack_memo,
    unpack_thoughts,
    with_refusals,
)
from thoughtline.stores.postgres.seals import Seals, TenantSeal, Values, seal_entries, sealed_with
from thoughtline.stores.postgres.writer import GroupWriter

PAGE = 100
"""EntryTable that are looked at, or changed, in one go."""

_TOP = (1 << 63) - 1

_LIST = load("list_entries.sql")
_SESSION_ENTRIES = load("session_entries.sql")
_TENANTS = """
WITH RECURSIVE t AS (
    (SELECT tenant FROM sessions ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT s.tenant FROM sessions AS s WHERE s.tenant > t.tenant ORDER BY s.tenant LIMIT 1)
    FROM t WHERE t.tenant IS NOT NULL
)
SELECT tenant FROM t WHERE tenant IS NOT NULL
"""
_THOUGHTS = """
SELECT tenant, entry, array_agg(thoughts ORDER BY first) AS thoughts FROM batches
WHERE entry = ANY ($1) AND thoughts IS NOT NULL GROUP BY tenant, entry
"""
_COUNT = "SELECT coalesce(sum(shown), 0) FROM entries WHERE shown > 0"
_REWRITE_ENTRIES = "SELECT * FROM rewrite_entries_2($1, $2, $3, $4, $5)"
_REWRITE_THOUGHTS = "SELECT * FROM rewrite_thoughts_2($1, $2, $3, $4)"
_WITH_THOUGHTS = """
SELECT b.session, b.id, b.nth, b.first, b.said, b.thoughts, b.tenant, b.entry AS about,
    e.id AS entry, e.rev, e.memo
FROM batches AS b LEFT JOIN entries AS e ON e.id = b.entry
WHERE b.thoughts IS NOT NULL AND (b.session, b.first, b.nth) > ($1::bytea, $2::int, $3::smallint)
  AND ($4::bytea IS NULL OR b.tenant = $4) AND ($5::bytea IS NULL OR b.session = $5)
  AND ($6::bytea IS NULL OR b.entry = $6)
ORDER BY b.session, b.first, b.nth LIMIT $7
"""
_ENTRIES = "SELECT id, tenant, rev, memo FROM entries WHERE id = ANY ($1)"
_FILED_NAMES = "SELECT name FROM names WHERE name = ANY ($1) AND filed = ANY ($2)"
_REINDEX = call("reindex_2", 16)
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


class EntryTable:
    """The look-up index, apart from look-ups."""

    def __init__(self, connections: Connections, seals: Seals, writer: GroupWriter) -> None:
        self._connections = connections
        self._seals = seals
        self._writer = writer

    # -- listing ---------------------------------------------------------------------------------

    async def listed(
        self,
        entry_filter: EntryFilter,
        *,
        limit: int,
        after: tuple[int, int] | None,
        offset: int,
        thoughts: bool,
    ) -> list[ThoughtEntry]:
        """Return thought entries, the last filed first."""
        found: list[ThoughtEntry] = []
        skip = max(offset, 0)
        async for rows in self._pages(entry_filter, _TOP if after is None else after[0]):
            if len(found) >= limit:
                break
            texts = await self._thoughts([row["id"] for row in rows]) if thoughts else {}
            for row in rows:
                for entry in _shown(row, entry_filter, texts):
                    if (
                        after is not None
                        and entry.position <= after
                        and entry.position[0] == after[0]
                    ):
                        continue
                    if skip:
                        skip -= 1
                    elif len(found) < limit:
                        found.append(entry)
        return found

    async def _pages(
        self, entry_filter: EntryFilter, top: int = _TOP
    ) -> AsyncIterator[Sequence[Values]]:
        """Yield pages of the entries that may match, from a filing downwards."""
        calls = await self._call_names(entry_filter)
        while True:
            rows = await self._connections.read(
                _LIST,
                _bytes(entry_filter.tenant),
                _bytes(entry_filter.session),
                _bytes(entry_filter.turn),
                _bytes(entry_filter.provider),
                [endpoint.encode() for endpoint in entry_filter.endpoints],
                _bytes(entry_filter.model),
                calls,
                top,
                PAGE,
            )
            if rows:
                yield await self._seals.opened(rows, entry="id")
                top = rows[-1]["filed"] - 1
            if len(rows) < PAGE:
                return

    async def _call_names(self, entry_filter: EntryFilter) -> list[bytes] | None:
        if entry_filter.call is None:
            return None
        if entry_filter.tenant is not None:
            tenants = [entry_filter.tenant.encode()]
        else:
            tenants = [row["tenant"] for row in await self._connections.read(_TENANTS)]
        seals = await self._seals.of(tenants)
        return [name for seal in seals.values() for name in seal.asked_calls(entry_filter.call)]

    async def _thoughts(self, ids: Sequence[bytes]) -> dict[bytes, list[bytes]]:
        rows = await self._connections.read(_THOUGHTS, ids)
        return {row["entry"]: row["thoughts"] for row in await self._seals.opened(rows)}

    async def count_calls(self, call: str) -> Mapping[str, int]:
        """Return how many entries each tenant has for a tool call."""
        counts: dict[str, int] = {}
        async for rows in self._pages(EntryFilter(call=call)):
            for row in rows:
                if entries := _shown(row, EntryFilter(call=call), {}):
                    tenant = row["tenant"].decode()
                    counts[tenant] = counts.get(tenant, 0) + len(entries)
        return counts

    # -- forgetting ------------------------------------------------------------------------------

    async def forget(self, entry_filter: EntryFilter, progress: Progress | None) -> int:
        """Clear thought entries from the index; returns how many."""
        ((total,),) = await self._connections.read(_COUNT) if progress else ((0,),)
        count = 0
        async for rows in self._pages(entry_filter):
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
                entry = unpack_memo(row["memo"])
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
        found = await self._connections.read(_ENTRIES, ids) if ids else []
        return await self._seals.opened(found, entry="id")

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
            rows = await self._connections.read(
                _WITH_THOUGHTS, *here, _bytes(entry_filter.tenant), _bytes(session), entry, PAGE
            )
            erased, complete = await self._erase(rows, entry_filter)
            count += erased
            if progress is not None:
                progress(count, count)
            if not complete:
                continue
            if len(rows) < PAGE:
                return count
            here = (rows[-1]["session"], rows[-1]["first"], rows[-1]["nth"])

    async def _erase(
        self, rows: Sequence[asyncpg.Record], entry_filter: EntryFilter
    ) -> tuple[int, bool]:
        """Erase the thoughts of a page; returns how many, and whether that is all of them."""
        counts: list[int] = []
        blanked: list[tuple[bytes, bytes, int, bytes]] = []
        forgotten: dict[bytes, tuple[Values, IndexEntry, None]] = {}
        seals = await self._seals.of(row["tenant"] for row in rows)
        for row in await self._seals.opened(rows, entry="about"):
            thoughts = unpack_thoughts([row["thoughts"]])
            entry = unpack_memo(row["memo"]) if row["memo"] else _unfiled(row, thoughts)
            if not rules.filter_matches(entry_filter, row["tenant"].decode(), entry):
                continue
            left = [thought for thought in thoughts if not _is_blank(*thought)]
            if left:
                blank = [t if _is_blank(*t) else rules.blank_thought(*t) for t in thoughts]
                packed, seal = pack_thoughts(blank), seals[row["tenant"]]
                try:
                    value = _resealed(seal, row, row["about"], "thoughts", packed)
                except KeyGone:  # replaced since: again
                    return 0, False
                blanked.append((row["session"], row["id"], row["nth"], value))
                counts.append(len(left))
            if row["entry"] is not None:
                other, _ = rules.forget_entry(entry, ALL_ENTRIES)
                if other != entry:
                    forgotten[row["entry"]] = (row, other, None)
        if blanked:
            done = await self._connections.write(_REWRITE_THOUGHTS, *zip(*blanked, strict=True))
            if len(done) < len(blanked):  # the others have another key by now
                return sum([counts[place - 1] for (place,) in done]), False
        while forgotten:
            for id in await self._rewrite(forgotten):
                del forgotten[id]
            forgotten = {
                row["id"]: (
                    row,
                    rules.forget_entry(unpack_memo(row["memo"]), ALL_ENTRIES)[0],
                    None,
                )
                for row in await self._again(list(forgotten))
            }
        return sum(counts), True

    # -- the index of a session ------------------------------------------------------------------

    async def index(self, session: str) -> list[FiledEntry]:
        """Return the index entries of a session, the first filed first."""
        found = await self._connections.read(_SESSION_ENTRIES, session.encode())
        seals = await self._seals.of(row["tenant"] for row in found)
        rows = await self._seals.opened(found, entry="id", seals=seals)
        entries = [
            with_refusals(
                rules.with_thoughts(unpack_memo(row["memo"]), unpack_thoughts(row["thoughts"])),
                row["refusals"],
            )
            for row in rows
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

    async def reindex(
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
            columns = list(zip(*rows, strict=True)) if rows else [()] * 9
            (old,) = await self._connections.write(
                _REINDEX,
                *(id, owner, seal.version),
                [entry_id(id, turn.encode()) for turn in remove],
                [1] * len(rows),
                *columns,
                [n for n, own in enumerate(names, 1) for _ in own],
                list(chain.from_iterable(names)),
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
        ((count,),) = await self._connections.read(_ORPHANS)
        while count and not dry_run and await self._connections.write(_PRUNE):
            pass
        return int(count)


def _resealed(seal: TenantSeal, row: Values, id: bytes, column: str, value: bytes) -> bytes:
    """Return a value as it is stored in place of that of an opened row."""
    return seal.reseal_entry(value, id, column, version=sealed_with(row, column))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _shown(
    row: Values, entry_filter: EntryFilter, texts: Mapping[bytes, Sequence[bytes]]
) -> list[ThoughtEntry]:
    """Return the thought entries that an index entry makes in a listing."""
    entry = unpack_memo(row["memo"])
    if not rules.filter_matches(entry_filter, row["tenant"].decode(), entry):
        return []
    known: tuple[Thought, ...] = ()
    if row["id"] in texts:
        known = rules.with_thoughts(entry, unpack_thoughts(texts[row["id"]])).thoughts
    return [
        rules.thought_entry(
            entry,
            (row["filed"], nth),
            call,
            tenant=row["tenant"].decode(),
            touched=row["touched"],
            kept=row["kept"],
            thoughts=known,
        )
        for nth, call in rules.shown_calls(entry)
        if entry_filter.call in {None, call}
    ]


def _is_blank(version: int, data: str) -> bool:
    thought = rules.read_thought(version, data)
    return thought is not None and thought.forgotten


def _unfiled(row: Values, thoughts: Sequence[tuple[int, str]]) -> IndexEntry:
    """Return an entry for thoughts that have none, to compare with a filter."""
    session = row["session"].decode()
    events = unpack_events(session, row["first"], row["said"], row["thoughts"])
    turn = next(event.parent for event in events if event.type == "reasoning")
    read = [rules.read_thought(*thought) for thought in thoughts]
    origin = next((t.origin for t in read if t is not None and t.origin), Origin())
    return IndexEntry(session, turn, origin=origin)
