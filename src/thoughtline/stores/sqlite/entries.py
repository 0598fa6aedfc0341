"""Lists the thought entries of the index, and clears them from it.

Which entries match is found by the summaries (see there), and among those that are not summarised
yet by looking at each; then each is read and compared with the filter. Clearing marks the entries
and leaves the log alone. It takes a few per transaction, so that appends never wait long.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Thought
from thoughtline.stores import rules
from thoughtline.stores.base import EntryFilter, ThoughtEntry
from thoughtline.stores.row import RowPlace
from thoughtline.stores.sqlite import filed_entries, queries, statements, summaries
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.filed_entries import EntryRow, read_rows
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked

CHUNK = 128
"""Index entries in one transaction, and read at once."""

MAX_MERGED = 64
"""Groups of entries that are read side by side; of more, all entries are looked at in order."""

BLOCK = 500
"""Entries that are left out at once, where a listing begins far down."""

MAX_NUMBER = 2**63 - 1
"""Above every number of an entry."""

_THOUGHTS = packed(
    """
SELECT {rows}
FROM batches AS f
CROSS JOIN batches AS b ON b.turn = f.turn AND b.session = f.session
CROSS JOIN sessions AS s ON s.number = f.session
WHERE f.position IN ({slots}) AND b.thoughts <> x''
""",
    ["f.position", "b.position", "s.session", ROW_NAME],
    ["b.thoughts"],
)
_NOT_SUMMARISED = """
SELECT position FROM batches
WHERE position > :position AND position <= :last AND entries > 0
ORDER BY position DESC LIMIT :limit
"""
_OF_SESSION = """
SELECT b.position FROM batches AS b
WHERE b.session = (SELECT number FROM sessions WHERE session = :session)
  AND (:turn IS NULL OR b.turn = :turn) AND b.position <= :last AND b.entries > 0
ORDER BY b.position DESC LIMIT :limit
"""
_OF_TURN = """
SELECT position FROM batches
WHERE turn = :turn AND position <= :last AND entries > 0 ORDER BY position DESC LIMIT :limit
"""
_OF_CALL = """
SELECT position FROM listed_calls WHERE call = :call AND position <= :last
ORDER BY position DESC LIMIT :limit
"""
_OF_KIND = """
SELECT position FROM listed_entries WHERE kind = :kind AND position <= :last
ORDER BY position DESC LIMIT :limit
"""
_OF_KINDS = """
SELECT position FROM listed_entries
WHERE position <= :last AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
ORDER BY position DESC LIMIT :limit
"""
_BLOCK = """
SELECT coalesce(sum(shown) FILTER (
    WHERE :kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))
), 0), min(position) FROM (
    SELECT position, shown, kind FROM listed_entries WHERE position <= :last
    ORDER BY position DESC LIMIT :limit
)
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
_TENANTS = "SELECT tenant FROM tenants WHERE :tenant IS NULL OR tenant = :tenant"
_encode = msgspec.json.Encoder().encode


# -- which entries ---------------------------------------------------------------------------


def candidates(db: Connection, entry_filter: EntryFilter, last: int = MAX_NUMBER) -> Iterator[int]:
    """Yield the numbers of entries that may match, from `last` downwards."""
    values: dict[str, Any] = {"limit": CHUNK}
    if entry_filter.session is not None:
        values |= {"session": entry_filter.session, "turn": entry_filter.turn}
        yield from _numbers(db, _OF_SESSION, values, last)
        return
    if entry_filter.turn is not None:
        yield from _numbers(db, _OF_TURN, values | {"turn": entry_filter.turn}, last)
        return
    position = summaries.position(db, "entries")
    yield from _numbers(db, _NOT_SUMMARISED, values | {"position": position}, last)
    last = min(last, position)
    kinds = _kinds(db, entry_filter)
    if entry_filter.call is not None:
        tenants = [t for (t,) in db.execute(_TENANTS, {"tenant": entry_filter.tenant}).fetchall()]
        name = summaries.call_name(entry_filter.call)
        calls = {asked for tenant in tenants for asked in db.cipher.asked(tenant, [name])}
        each = [_numbers(db, _OF_CALL, values | {"call": call}, last) for call in calls]
        yield from heapq.merge(*each, reverse=True)
    elif kinds is None or len(kinds) > MAX_MERGED:
        yield from _numbers(db, _OF_KINDS, values | {"kinds": _listed(kinds)}, last)
    else:
        each = [_numbers(db, _OF_KIND, values | {"kind": kind}, last) for kind in kinds]
        yield from heapq.merge(*each, reverse=True)


def _numbers(db: Connection, statement: str, values: dict[str, Any], last: int) -> Iterator[int]:
    while True:
        found = db.execute(statement, values | {"last": last}).fetchall()
        for (number,) in found:
            yield number
        if len(found) < values["limit"]:
            return
        last = found[-1][0] - 1


def _kinds(db: Connection, entry_filter: EntryFilter) -> list[int] | None:
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


def count(db: Connection, entry_filter: EntryFilter) -> int:
    """Return about how many index entries match: how long clearing them will take."""
    if _is_narrow(entry_filter):
        return sum(1 for _ in candidates(db, entry_filter))
    kinds = _listed(_kinds(db, entry_filter))
    return int(db.execute(_COUNT_KINDS, {"kinds": kinds}).fetchone()[0])


# -- listing ---------------------------------------------------------------------------------


def list_entries(
    db: Connection,
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
            (row.position, nth),
            call,
            tenant=row.tenant,
            touched=row.touched,
            kept=row.kept,
            thoughts=known.get(row.position, ()),
        )
        for row, nth, call in found
    ]


def _skip(db: Connection, entry_filter: EntryFilter, last: int, offset: int) -> tuple[int, int]:
    """Leave out whole blocks of entries; returns where to go on, and how many are still to go.

    Those that are not summarised yet come first, and are looked at one by one.
    """
    told_apart = entry_filter.accounts or entry_filter.providers
    if offset <= BLOCK or _is_narrow(entry_filter) or told_apart:
        return last, offset
    position = summaries.position(db, "entries")
    newest = _numbers(db, _NOT_SUMMARISED, {"limit": CHUNK, "position": position}, last)
    first = sum(1 for _ in islice(_shown_of(db, entry_filter, newest, None), offset + 1))
    if first > offset:
        return last, offset
    last, offset = min(last, position), offset - first
    kinds = _listed(_kinds(db, entry_filter))
    while offset > BLOCK:
        values = {"last": last, "limit": BLOCK, "kinds": kinds}
        count, lowest = db.execute(_BLOCK, values).fetchone()
        if lowest is None or count > offset:
            break
        last, offset = lowest - 1, offset - count
    return last, offset


def _shown(
    db: Connection, entry_filter: EntryFilter, last: int, after: tuple[int, int] | None
) -> Iterator[tuple[EntryRow, int, str]]:
    """Yield entries with their calls and the places of these, in the order of a listing."""
    return _shown_of(db, entry_filter, candidates(db, entry_filter, last), after)


def _shown_of(
    db: Connection,
    entry_filter: EntryFilter,
    numbers: Iterator[int],
    after: tuple[int, int] | None,
) -> Iterator[tuple[EntryRow, int, str]]:
    while chunk := list(islice(numbers, CHUNK)):
        for row in read_rows(db, chunk):
            if not rules.entry_matches(entry_filter, row.tenant, row.entry):
                continue
            for nth, call in rules.shown_calls(row.entry):
                wanted = entry_filter.call in {None, call}
                if wanted and (after is None or (-row.position, nth) > (-after[0], after[1])):
                    yield row, nth, call


def _thoughts_of(db: Connection, found: Sequence[EntryRow]) -> dict[int, tuple[Thought, ...]]:
    entries = {row.position: row for row in found}
    stored: dict[int, list[tuple[int, RowPlace, bytes]]] = {}
    for cursor in statements.execute(db, _THOUGHTS, "?", list(entries)):
        for number, position, session, row, value in unpacked(cursor.fetchone()[0], 1):
            place = row_place(entries[number].tenant, session, row)
            stored.setdefault(number, []).append((position, place, value))
    return {
        number: rules.with_thoughts(
            row.entry,
            queries.reasoning(db, sorted(stored.get(number, ()))),
        ).thoughts
        for number, row in entries.items()
    }


def count_calls(db: Connection, call: str) -> dict[str, int]:
    """Return how many entries each tenant has for a tool call of this id."""
    wanted = EntryFilter(call=call)
    db.execute("BEGIN")
    try:
        tenants = [row.tenant for row, _, _ in _shown(db, wanted, MAX_NUMBER, None)]
    finally:
        db.execute("ROLLBACK")
    return {tenant: tenants.count(tenant) for tenant in set(tenants)}


# -- clearing --------------------------------------------------------------------------------


def next_matches(db: Connection, entry_filter: EntryFilter, last: int) -> list[int]:
    """Return the numbers of the next entries that may match, from `last` downwards."""
    db.execute("BEGIN")
    try:
        return list(islice(candidates(db, entry_filter, last), CHUNK))
    finally:
        db.execute("ROLLBACK")


def forget(db: Connection, numbers: Sequence[int], entry_filter: EntryFilter) -> int:
    """Clear those that still match; returns how many thought entries."""
    cleared = 0
    changed: list[tuple[EntryRow, IndexEntry]] = []
    for row in read_rows(db, numbers):
        if rules.entry_matches(entry_filter, row.tenant, row.entry):
            entry, count = rules.forget_entry(row.entry, entry_filter)
            changed.append((row, entry))
            cleared += count
    filed_entries.update(db, changed)
    return cleared
