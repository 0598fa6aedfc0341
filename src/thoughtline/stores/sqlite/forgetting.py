"""What the archive holds, entry by entry, and how it forgets.

A listing goes through memories, the last filed first. Forgetting deletes memories with their names
and blanks the turns' reasoning events in place: the log keeps its numbers and still folds. A few
memories per transaction, so that appends never wait long. What is blanked is overwritten in the
file (`secure_delete`).
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from thoughtline.memories import Memory
from thoughtline.parts import Thought
from thoughtline.stores import facts
from thoughtline.stores.base import Entry, Filter
from thoughtline.stores.sqlite import bulk, rows
from thoughtline.stores.sqlite.migrations import sql

CHUNK = 64
"""Memories in one transaction."""

_TOP = 2**63 - 1
"""Above every number."""

_LISTED = sql("entries.sql")
_MATCHED = sql("matched.sql")
_FILED = """
SELECT json_group_array(json_array(m.number, t.number, t.tenant, m.memo))
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
_BLANK = """
UPDATE events SET version = blanks.column2, data = blanks.column3
FROM (VALUES {slots}) AS blanks WHERE events.position = blanks.column1
"""
_rows = msgspec.json.Decoder(list[tuple[int, int, str, str, str, str]])
_numbers = msgspec.json.Decoder(list[int])
_filed = msgspec.json.Decoder(list[tuple[int, int, str, str]])


class _Line(msgspec.Struct, frozen=True):
    """A reasoning event, as far as it matters here."""

    position: int
    version: int
    data: str


def listed(
    db: sqlite3.Connection,
    which: Filter,
    *,
    limit: int,
    after: tuple[int, int] | None,
    offset: int,
    thoughts: bool,
) -> list[Entry]:
    """One page of entries."""
    number, nth = after or (_TOP, -1)
    values = msgspec.structs.asdict(which) | {"number": number, "nth": nth}
    values |= {"limit": max(limit, 0), "offset": max(offset, 0)}
    db.execute("BEGIN")
    try:
        (packed,) = db.execute(_LISTED, values).fetchone()
        found = _rows.decode(packed)
        known = _recalled(db, found) if thoughts else {}
    finally:
        db.execute("ROLLBACK")
    return [
        facts.entry(
            rows.memos.decode(memo),
            (number, nth),
            call,
            tenant=tenant,
            touched=float(touched),
            thoughts=known.get(number, ()),
        )
        for number, nth, call, tenant, touched, memo in found
    ]


def _recalled(
    db: sqlite3.Connection, found: Sequence[tuple[int, int, str, str, str, str]]
) -> dict[int, tuple[Thought, ...]]:
    memories: dict[int, Memory] = {row[0]: rows.memos.decode(row[5]) for row in found}
    lines = _lines(db, list(memories))
    return {
        number: facts.recall(
            memory, [(line.version, line.data) for line in lines.get(number, ())]
        ).thoughts
        for number, memory in memories.items()
    }


def _lines(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, list[_Line]]:
    """The reasoning events of these memories, in order."""
    lines: dict[int, list[_Line]] = {}
    for cursor in bulk.execute(db, _THOUGHTS, "?", numbers):
        (packed,) = cursor.fetchone()
        for piece in packed.split(facts.SEPARATOR) if packed else ():
            number, position, version, data = piece.split(" ", 3)
            lines.setdefault(int(number), []).append(_Line(int(position), int(version), data))
    for found in lines.values():
        found.sort(key=lambda line: line.position)
    return lines


def matched(db: sqlite3.Connection, which: Filter) -> list[int]:
    """Numbers of the memories that are meant."""
    (packed,) = db.execute(_MATCHED, msgspec.structs.asdict(which)).fetchone()
    return _numbers.decode(packed)


def forget(db: sqlite3.Connection, numbers: Sequence[int], which: Filter) -> int:
    """Forget those that are still meant, and blank their thoughts; returns how many entries."""
    filed: list[tuple[int, int, str]] = []
    entries = 0
    for cursor in bulk.execute(db, _FILED, "?", numbers):
        for number, tenant_number, tenant, memo in _filed.decode(cursor.fetchone()[0]):
            memory = rows.memos.decode(memo)
            if facts.matches(which, tenant, memory):
                filed.append((number, tenant_number, memo))
                entries += facts.filing(memory).entries
    blanks: list[int | str] = []
    for lines in _lines(db, [number for number, *_ in filed]).values():
        for line in lines:
            blanks += (line.position, *facts.blank(line.version, line.data))
    bulk.execute(db, _BLANK, "(?, ?, ?)", blanks)
    rows.forget(db, filed)
    return entries
