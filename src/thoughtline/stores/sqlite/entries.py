"""Lists the thought entries of the index, and clears them from it.

Which entries match is found by the summaries (see there), and among those that are not summarised
yet by looking at each; then each is read and compared with the filter. Clearing marks the entries
and leaves the log alone. It takes a few per transaction, so that appends never wait long.
"""

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import EntryFilter, ThoughtEntry
from thoughtline.stores.sqlite import rows, statements, summaries

CHUNK = 128
"""Index entries in one transaction, and read at once."""

MAX_MERGED = 64
"""Groups of entries that are read side by side; of more, all entries are looked at in order."""

BLOCK = 500
"""Entries that are left out at once, where a listing begins far down."""

MAX_NUMBER = 2**63 - 1
"""Above every number of an entry."""

_ENTRIES = """
SELECT json_group_array(json_array(
    m.number, s.tenant, t.tenant, printf('%!.17g', s.touched), s.kept, m.memo
))
FROM memories AS m
CROSS JOIN sessions AS s ON s.number = m.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE m.number IN ({slots})
"""
_THOUGHTS = """
SELECT group_concat(m.number || ' ' || e.position || ' ' || e.version || ' ' || e.data, char(30))
FROM memories AS m CROSS JOIN events AS e
WHERE m.number IN ({slots})
  AND e.type = 'reasoning' AND e.parent = m.turn AND e.session = m.session
"""
_NOT_SUMMARISED = """
SELECT number FROM memories
WHERE number > :position AND number <= :last AND entries > 0 ORDER BY number DESC LIMIT :limit
"""
_OF_SESSION = """
SELECT m.number FROM memories AS m
WHERE m.session = (SELECT number FROM sessions WHERE session = :session)
  AND (:turn IS NULL OR m.turn = :turn) AND m.number <= :last AND m.entries > 0
ORDER BY m.number DESC LIMIT :limit
"""
_OF_TURN = """
SELECT m.number FROM memories AS m
WHERE m.session IN (SELECT session FROM events WHERE type = 'reasoning' AND parent = :turn)
  AND m.turn = :turn AND m.number <= :last AND m.entries > 0
ORDER BY m.number DESC LIMIT :limit
"""
_OF_CALL = """
SELECT memory FROM listed_calls WHERE call = :call AND memory <= :last
ORDER BY memory DESC LIMIT :limit
"""
_OF_KIND = """
SELECT memory FROM listed_entries WHERE kind = :kind AND memory <= :last
ORDER BY memory DESC LIMIT :limit
"""
_OF_KINDS = """
SELECT memory FROM listed_entries
WHERE memory <= :last AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
ORDER BY memory DESC LIMIT :limit
"""
_BLOCK = """
SELECT coalesce(sum(shown), 0), min(memory) FROM (
    SELECT memory, shown, kind FROM listed_entries WHERE memory <= :last
    ORDER BY memory DESC LIMIT :limit
) WHERE :kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))
"""
_KINDS = """
SELECT g.number FROM entry_groups AS g JOIN tenants AS t ON t.number = g.tenant
WHERE (:tenant IS NULL OR t.tenant = :tenant)
  AND (:provider IS NULL OR g.provider = :provider
       OR g.endpoint IN (SELECT value FROM json_each(:endpoints)))
  AND (:model IS NULL OR g.model = :model)
"""
_COUNT_KINDS = """
SELECT coalesce(sum(entries), 0) FROM entry_groups
WHERE :kinds IS NULL OR number IN (SELECT value FROM json_each(:kinds))
"""
_UPDATE = """
UPDATE memories SET entries = new.column2, chars = new.column3, memo = new.column4
FROM (VALUES {slots}) AS new WHERE memories.number = new.column1
"""
_filed = msgspec.json.Decoder(list[tuple[int, int, str, str, int, str]])
_encode = msgspec.json.Encoder().encode


class EntryRow(msgspec.Struct, frozen=True):
    """An index entry as the tables have it."""

    number: int
    tenant_number: int
    tenant: str
    touched: float
    kept: bool
    entry: IndexEntry


class ReasoningRow(msgspec.Struct, frozen=True):
    """Position and data of a reasoning event."""

    position: int
    version: int
    data: str


# -- which entries ---------------------------------------------------------------------------


def candidates(
    db: sqlite3.Connection, entry_filter: EntryFilter, last: int = MAX_NUMBER
) -> Iterator[int]:
    """Yield the numbers of entries that may match, from `last` downwards."""
    values: dict[str, Any] = {"limit": CHUNK}
    if entry_filter.session is not None:
        values |= {"session": entry_filter.session, "turn": entry_filter.turn}
        yield from _numbers(db, _OF_SESSION, values, last)
        return
    if entry_filter.turn is not None:
        yield from _numbers(db, _OF_TURN, values | {"turn": entry_filter.turn}, last)
        return
    position = summaries.position(db, "memories")
    yield from _numbers(db, _NOT_SUMMARISED, values | {"position": position}, last)
    last = min(last, position)
    kinds = _kinds(db, entry_filter)
    if entry_filter.call is not None:
        yield from _numbers(db, _OF_CALL, values | {"call": entry_filter.call}, last)
    elif kinds is None or len(kinds) > MAX_MERGED:
        yield from _numbers(db, _OF_KINDS, values | {"kinds": _listed(kinds)}, last)
    else:
        each = [_numbers(db, _OF_KIND, values | {"kind": kind}, last) for kind in kinds]
        yield from heapq.merge(*each, reverse=True)


def _numbers(
    db: sqlite3.Connection, statement: str, values: dict[str, Any], last: int
) -> Iterator[int]:
    while True:
        found = db.execute(statement, values | {"last": last}).fetchall()
        for (number,) in found:
            yield number
        if len(found) < values["limit"]:
            return
        last = found[-1][0] - 1


def _kinds(db: sqlite3.Connection, entry_filter: EntryFilter) -> list[int] | None:
    """Return the groups whose entries match; None: all of them."""
    if entry_filter.tenant is entry_filter.provider is entry_filter.model is None:
        return None
    values = {
        "tenant": entry_filter.tenant,
        "provider": entry_filter.provider,
        "endpoints": _encode(entry_filter.endpoints).decode(),
        "model": entry_filter.model,
    }
    return [number for (number,) in db.execute(_KINDS, values).fetchall()]


def _is_narrow(entry_filter: EntryFilter) -> bool:
    """Whether only a few entries can match."""
    exact = (entry_filter.call, entry_filter.session, entry_filter.turn)
    return exact != (None, None, None)


def _listed(kinds: list[int] | None) -> str | None:
    return None if kinds is None else _encode(kinds).decode()


def count(db: sqlite3.Connection, entry_filter: EntryFilter) -> int:
    """Return about how many index entries match: how long clearing them will take."""
    if _is_narrow(entry_filter):
        return sum(1 for _ in candidates(db, entry_filter))
    kinds = _listed(_kinds(db, entry_filter))
    return int(db.execute(_COUNT_KINDS, {"kinds": kinds}).fetchone()[0])


# -- listing ---------------------------------------------------------------------------------


def list_entries(
    db: sqlite3.Connection,
    entry_filter: EntryFilter,
    *,
    limit: int,
    after: tuple[int, int] | None,
    offset: int,
    thoughts: bool,
) -> list[ThoughtEntry]:
    """Return a page of thought entries."""
    db.execute("BEGIN")
    try:
        last, offset = _skip(db, entry_filter, after[0] if after else MAX_NUMBER, max(offset, 0))
        shown = _shown(db, entry_filter, last, after)
        found = list(islice(shown, offset, offset + max(limit, 0)))
        known = _thoughts_of(db, [row for row, _, _ in found]) if thoughts else {}
    finally:
        db.execute("ROLLBACK")
    return [
        rules.thought_entry(
            row.entry,
            (row.number, nth),
            call,
            tenant=row.tenant,
            touched=row.touched,
            kept=row.kept,
            thoughts=known.get(row.number, ()),
        )
        for row, nth, call in found
    ]


def _skip(
    db: sqlite3.Connection, entry_filter: EntryFilter, last: int, offset: int
) -> tuple[int, int]:
    """Leave out whole blocks of entries; returns where to go on, and how many are still to go."""
    position = summaries.position(db, "memories")
    newest = db.execute("SELECT max(number) FROM memories").fetchone()[0] or 0
    if _is_narrow(entry_filter) or newest > position:
        return last, offset
    kinds = _listed(_kinds(db, entry_filter))
    while offset > BLOCK:
        values = {"last": last, "limit": BLOCK, "kinds": kinds}
        count, lowest = db.execute(_BLOCK, values).fetchone()
        if lowest is None or count > offset:
            break
        last, offset = lowest - 1, offset - count
    return last, offset


def _shown(
    db: sqlite3.Connection, entry_filter: EntryFilter, last: int, after: tuple[int, int] | None
) -> Iterator[tuple[EntryRow, int, str]]:
    """Yield entries with their calls and the places of these, in the order of a listing."""
    numbers = candidates(db, entry_filter, last)
    while chunk := list(islice(numbers, CHUNK)):
        for row in read_rows(db, chunk):
            if not rules.entry_matches(entry_filter, row.tenant, row.entry):
                continue
            for nth, call in rules.shown_calls(row.entry):
                wanted = entry_filter.call in {None, call}
                if wanted and (after is None or (-row.number, nth) > (-after[0], after[1])):
                    yield row, nth, call


def read_rows(db: sqlite3.Connection, numbers: Sequence[int]) -> list[EntryRow]:
    """Return index entries by number, the last filed first."""
    found: list[EntryRow] = []
    for cursor in statements.execute(db, _ENTRIES, "?", numbers):
        for number, owner, tenant, touched, kept, memo in _filed.decode(cursor.fetchone()[0]):
            entry = rows.entry_decoder.decode(memo)
            found.append(EntryRow(number, owner, tenant, float(touched), bool(kept), entry))
    return sorted(found, key=lambda row: -row.number)


def _thoughts_of(db: sqlite3.Connection, found: Sequence[EntryRow]) -> dict[int, Any]:
    entries = {row.number: row.entry for row in found}
    reasoning = reasoning_of(db, list(entries))
    return {
        number: rules.with_thoughts(
            entry, [(row.version, row.data) for row in reasoning.get(number, ())]
        ).thoughts
        for number, entry in entries.items()
    }


def reasoning_of(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, list[ReasoningRow]]:
    """Return the reasoning events of these entries, in order."""
    reasoning: dict[int, list[ReasoningRow]] = {}
    for cursor in statements.execute(db, _THOUGHTS, "?", numbers):
        (packed,) = cursor.fetchone()
        for piece in packed.split(rules.SEPARATOR) if packed else ():
            number, position, version, data = piece.split(" ", 3)
            reasoning.setdefault(int(number), []).append(
                ReasoningRow(int(position), int(version), data)
            )
    for found in reasoning.values():
        found.sort(key=lambda row: row.position)
    return reasoning


def count_calls(db: sqlite3.Connection, call: str) -> dict[str, int]:
    """Return how many entries each tenant has for a tool call of this id."""
    wanted = EntryFilter(call=call)
    db.execute("BEGIN")
    try:
        tenants = [row.tenant for row, _, _ in _shown(db, wanted, MAX_NUMBER, None)]
    finally:
        db.execute("ROLLBACK")
    return {tenant: tenants.count(tenant) for tenant in set(tenants)}


# -- clearing --------------------------------------------------------------------------------


def next_matches(db: sqlite3.Connection, entry_filter: EntryFilter, last: int) -> list[int]:
    """Return the numbers of the next entries that may match, from `last` downwards."""
    db.execute("BEGIN")
    try:
        return list(islice(candidates(db, entry_filter, last), CHUNK))
    finally:
        db.execute("ROLLBACK")


def forget(db: sqlite3.Connection, numbers: Sequence[int], entry_filter: EntryFilter) -> int:
    """Clear those that still match; returns how many thought entries."""
    cleared = 0
    changed: list[tuple[EntryRow, IndexEntry]] = []
    for row in read_rows(db, numbers):
        if rules.entry_matches(entry_filter, row.tenant, row.entry):
            entry, count = rules.forget_entry(row.entry, entry_filter)
            changed.append((row, entry))
            cleared += count
    update_entries(db, changed)
    return cleared


def update_entries(db: sqlite3.Connection, changed: Sequence[tuple[EntryRow, IndexEntry]]) -> None:
    """Write entries whose calls were forgotten, in place, and bring the summaries up to date."""
    values: list[Any] = []
    for row, entry in changed:
        found = rules.entry_summary(entry)
        values += (row.number, found.entries, found.chars, _encode(entry).decode())
    statements.execute(db, _UPDATE, "(?, ?, ?, ?)", values)
    summaries.remove_entries(
        db,
        [row.number for row, _ in changed],
        [(call, row.number) for row, _ in changed for call in row.entry.calls],
    )
    still_listed = [row.number for row, entry in changed if rules.shown_calls(entry)]
    summaries.add_again(db, still_listed)
