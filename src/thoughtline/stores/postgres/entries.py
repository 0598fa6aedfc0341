"""Lists thought entries, and counts those of a tool call."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from thoughtline.log.parts import Thought
from thoughtline.stores import rules
from thoughtline.stores.base import EntryFilter, ThoughtEntry
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import load
from thoughtline.stores.postgres.sealed_rows import Values, read_entry, read_thoughts
from thoughtline.stores.postgres.seals import Seals

PAGE = 100
"""Index entries that are looked at in one go."""

_TOP = (1 << 63) - 1

_LIST = load("list_entries.sql")
_SKIP = """
SELECT min(filed) AS filed, coalesce(sum(shown), 0)::bigint AS shown FROM (
    SELECT filed, shown, sum(shown) OVER (ORDER BY filed DESC) AS so_far FROM (
        SELECT e.filed, e.shown FROM entries AS e
        WHERE ($1::bytea IS NULL OR e.tenant = $1)
          AND ($2::bytea IS NULL OR e.session = $2)
          AND ($3::bytea IS NULL OR e.turn = $3)
          AND ($4::bytea IS NULL OR e.provider = $4 OR e.endpoint = ANY ($5::bytea[]))
          AND ($6::bytea IS NULL OR e.model = $6)
          AND e.shown > 0
        ORDER BY e.filed DESC LIMIT $7
    ) AS first
) AS counted WHERE so_far <= $7
"""
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
SELECT tenant, session, entry, array_agg(thoughts ORDER BY first) AS thoughts FROM batches
WHERE entry = ANY ($1) AND thoughts IS NOT NULL GROUP BY tenant, session, entry
"""


class EntryList:
    """The index entries of a database, by a filter."""

    def __init__(self, connections: Connections, seals: Seals) -> None:
        self._connections = connections
        self._seals = seals

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
        top, skip = (after[0] if after else _TOP), max(offset, 0)
        if skip > PAGE and after is None:
            top, skip = await self._skip(entry_filter, skip)
        async for rows in self.pages(entry_filter, top):
            if len(found) >= limit:
                break
            texts = await self._thoughts([row["id"] for row in rows]) if thoughts else {}
            for row in rows:
                for entry in self._shown(row, entry_filter, texts):
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

    async def _skip(self, entry_filter: EntryFilter, offset: int) -> tuple[int, int]:
        """Leave out entries without reading them; returns where to go on, and how many to go."""
        if entry_filter.accounts or entry_filter.providers or entry_filter.call is not None:
            return _TOP, offset
        (row,) = await self._connections.read(_SKIP, *_columns(entry_filter), offset)
        return (_TOP if row["filed"] is None else row["filed"] - 1), offset - row["shown"]

    async def pages(
        self, entry_filter: EntryFilter, top: int = _TOP
    ) -> AsyncIterator[Sequence[Values]]:
        """Yield pages of the entries that may match, from a filing downwards."""
        calls = await self._call_names(entry_filter)
        while True:
            rows, opened = await self._seals.read(
                _LIST,
                *_columns(entry_filter),
                calls,
                top,
                PAGE,
                entry="id",
            )
            if rows:
                yield opened
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

    async def _thoughts(self, ids: Sequence[bytes]) -> dict[bytes, list[tuple[int, str]] | None]:
        rows = (await self._seals.read(_THOUGHTS, ids)).opened
        return {row["entry"]: read_thoughts(row, self._seals.damage) for row in rows}

    async def count_calls(self, call: str) -> Mapping[str, int]:
        """Return how many entries each tenant has for a tool call."""
        counts: dict[str, int] = {}
        async for rows in self.pages(EntryFilter(call=call)):
            for row in rows:
                if entries := self._shown(row, EntryFilter(call=call), {}):
                    tenant = row["tenant"].decode()
                    counts[tenant] = counts.get(tenant, 0) + len(entries)
        return counts

    def _shown(
        self,
        row: Values,
        entry_filter: EntryFilter,
        texts: Mapping[bytes, list[tuple[int, str]] | None],
    ) -> list[ThoughtEntry]:
        """Return the thought entries that an index entry makes in a listing."""
        entry, tenant = read_entry(row, self._seals.damage), row["tenant"].decode()
        if not rules.filter_matches(entry_filter, tenant, entry):
            return []
        known: tuple[Thought, ...] = ()
        if row["id"] in texts:
            known = rules.with_thoughts(entry, texts[row["id"]]).thoughts
        return [
            rules.thought_entry(
                entry,
                (row["filed"], nth),
                call,
                tenant=tenant,
                touched=row["touched"],
                kept=row["kept"],
                thoughts=known,
            )
            for nth, call in rules.shown_calls(entry)
            if entry_filter.call in {None, call}
        ]


def _columns(entry_filter: EntryFilter) -> tuple[Any, ...]:
    """Return the values of a filter that have columns."""
    return (
        encoded(entry_filter.tenant),
        encoded(entry_filter.session),
        encoded(entry_filter.turn),
        encoded(entry_filter.provider),
        [endpoint.encode() for endpoint in entry_filter.endpoints],
        encoded(entry_filter.model),
    )


def encoded(text: str | None) -> bytes | None:
    """Return a value of a filter as its column has it; None: it does not count."""
    return None if text is None else text.encode()
