"""Lists the thought entries of the index, and clears them from it.

Which entries may match is found by an index that has what filters ask for, or by the name of a tool
call; then each is read and compared with the filter. Clearing marks the entries and leaves the log
alone. It takes a few per transaction, so that appends never wait long.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Thought
from thoughtline.stores import rules
from thoughtline.stores.base import EntryFilter, StoreStats, ThoughtEntry
from thoughtline.stores.row import RowPlace, call_name
from thoughtline.stores.sqlite import filed_entries, queries, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.filed_entries import EntryRow, read_rows
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked

CHUNK = 128
"""Index entries in one transaction, and read at once."""

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
SELECT position FROM lookup_keys
WHERE tenant = :number AND name = :name AND position <= :last ORDER BY position DESC LIMIT :limit
"""
_MATCHING = """
FROM batches AS b INDEXED BY batches_listed CROSS JOIN sessions AS s ON s.number = b.session
WHERE b.entries > 0 AND b.position <= :last
  AND (:tenant IS NULL OR s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant))
  AND (:provider IS NULL OR b.provider = :provider
       OR b.endpoint IN (SELECT value FROM json_each(:endpoints)))
  AND (:model IS NULL OR CASE b.asked WHEN '' THEN b.model ELSE b.asked END = :model)
"""
_LISTED = f"SELECT b.position {_MATCHING} ORDER BY b.position DESC LIMIT :limit"
_COUNT = f"SELECT count(*) {_MATCHING}"
_BLOCK = """
SELECT coalesce(sum(entries), 0), min(position) FROM (
    SELECT b.position, b.entries {matching} ORDER BY b.position DESC LIMIT :limit
)
""".replace("{matching}", _MATCHING)
_SUMS = """
SELECT provider, model, sum(entries), sum(chars), sum(listed) FROM entry_sums
WHERE entries > 0
  AND (:tenant IS NULL OR tenant = (SELECT number FROM tenants WHERE tenant = :tenant))
GROUP BY provider, model
"""
_FIRST_OR_LAST = """
SELECT ended FROM batches AS b INDEXED BY batches_listed_by_time
CROSS JOIN sessions AS s ON s.number = b.session
WHERE b.entries > 0
  AND (:tenant IS NULL OR s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant))
ORDER BY ended {} LIMIT 1
"""
_TENANTS = "SELECT number, tenant FROM tenants WHERE :tenant IS NULL OR tenant = :tenant"
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
    if not entry_filter.call:  # empty: of turns without one
        yield from _numbers(db, _LISTED, values | _conditions(entry_filter), last)
        return
    each = [
        _numbers(db, _OF_CALL, values | {"number": number, "name": bytearray(name)}, last)
        for number, tenant in db.execute(_TENANTS, {"tenant": entry_filter.tenant}).fetchall()
        for name in db.cipher.asked(tenant, [call_name(entry_filter.call)])
    ]
    yield from heapq.merge(*each, reverse=True)


def _numbers(db: Connection, statement: str, values: dict[str, Any], last: int) -> Iterator[int]:
    while True:
        found = db.execute(statement, values | {"last": last}).fetchall()
        for (number,) in found:
            yield number
        if len(found) < values["limit"]:
            return
        last = found[-1][0] - 1


def _conditions(entry_filter: EntryFilter) -> dict[str, Any]:
    return {
        "tenant": entry_filter.tenant,
        "provider": entry_filter.provider,
        "endpoints": _encode(entry_filter.endpoints).decode(),
        "model": entry_filter.model,
    }


def _is_narrow(entry_filter: EntryFilter) -> bool:
    """Whether only a few entries can match."""
    exact = (entry_filter.call, entry_filter.session, entry_filter.turn)
    return exact != (None, None, None)


def count(db: Connection, entry_filter: EntryFilter) -> int:
    """Return about how many index entries match: how long clearing them will take."""
    if _is_narrow(entry_filter):
        return sum(1 for _ in candidates(db, entry_filter))
    values = _conditions(entry_filter) | {"last": MAX_NUMBER}
    return int(db.execute(_COUNT, values).fetchone()[0])


def sums(db: Connection, tenant: str | None) -> tuple[list[rules.EntrySummary], int]:
    """Return turns with thoughts by provider and model, and how many entries a listing has."""
    values = {"tenant": tenant}
    found = db.execute(_SUMS, values).fetchall()
    if not found:
        return [], 0
    span = [db.execute(_FIRST_OR_LAST.format(way), values).fetchone()[0] for way in ("", "DESC")]
    return [rules.EntrySummary(*row, *span) for *row, _ in found], sum(row[-1] for row in found)


def stats(db: Connection, tenant: str | None, *, sessions: bool = True) -> StoreStats:
    """Return the statistics; without `sessions` only those of the index."""
    db.execute("BEGIN")
    try:
        totals = queries.totals(db, tenant) if sessions else (0, 0, 0, None, None)
        summaries, listed = sums(db, tenant)
    finally:
        db.execute("ROLLBACK")
    count, events, turns, *span = totals
    return rules.make_stats(
        sessions=count,
        events=events,
        turns=turns,
        span=(span[0], span[1]),
        listed=listed,
        summaries=summaries,
    )


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
    """Leave out whole blocks of entries; returns where to go on, and how many are still to go."""
    if _is_narrow(entry_filter) or entry_filter.accounts or entry_filter.providers:
        return last, offset
    values = _conditions(entry_filter) | {"limit": BLOCK}
    while offset > BLOCK:
        count, lowest = db.execute(_BLOCK, values | {"last": last}).fetchone()
        if lowest is None or count > offset:
            break
        last, offset = lowest - 1, offset - count
    return last, offset


def _shown(
    db: Connection, entry_filter: EntryFilter, last: int, after: tuple[int, int] | None
) -> Iterator[tuple[EntryRow, int, str]]:
    """Yield entries with their calls and the places of these, in the order of a listing."""
    numbers = candidates(db, entry_filter, last)
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
