"""Erases thoughts from the log: the events stay, with nothing in them to be sent or read.

A reader goes through the rows with thoughts and compares each with the filter, by its index entry
or by the origin of a thought; the writer blanks a few per transaction and marks their entries as
forgotten. What is erased is overwritten in the file (`secure_delete`).
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.log.events import DAMAGED_VERSION
from thoughtline.stores import rules
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.damage import is_damaged
from thoughtline.stores.erased import erased, unfiled_entry
from thoughtline.stores.row import RowPlace, reseal_thoughts
from thoughtline.stores.sealing.envelope import key_version
from thoughtline.stores.sqlite import filed_entries, queries, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.filed_entries import EntryRow
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked

CHUNK = 100
"""Rows with thoughts in one transaction."""

_ROWS = packed(
    """
SELECT {rows} FROM (
    SELECT position, id, turn, session, thoughts FROM batches
    WHERE position > :after AND thoughts <> x'' {session} ORDER BY position LIMIT :limit
) AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
""",
    ["b.position", "t.tenant", "s.session", "b.turn", ROW_NAME],
    ["b.thoughts"],
)
_OF_SESSION = "AND session = (SELECT number FROM sessions WHERE session = :session)"
_FILED = """
SELECT json_group_array(json_array(b.position, f.position))
FROM batches AS b CROSS JOIN batches AS f ON f.turn = b.turn AND f.session = b.session
WHERE b.position IN ({slots}) AND f.memo <> x''
"""
_HEADS = "SELECT position, substr(thoughts, 1, 3) FROM batches WHERE position IN ({slots})"
_ERASE = """
UPDATE batches SET thoughts = erased.column2
FROM (VALUES {slots}) AS erased WHERE batches.position = erased.column1
"""
_pairs = msgspec.json.Decoder(list[tuple[int, int]])


class ErasedRow(Struct, frozen=True):
    """The thoughts of a row as they will be, and how many of them are erased."""

    position: int
    place: RowPlace
    thoughts: list[tuple[int, str]]
    count: int


class ErasePage(Struct, frozen=True):
    """What of some rows is to be erased."""

    rows: list[ErasedRow]
    entries: list[int]  # positions of their index entries
    position: int  # where the next page begins
    newest: int
    more: bool


def read_page(db: Connection, entry_filter: EntryFilter, after: int) -> ErasePage:
    """Return the thoughts to erase among the next rows that have some."""
    statement = _ROWS.replace("{session}", "" if entry_filter.session is None else _OF_SESSION)
    values = {"after": after, "limit": CHUNK, "session": entry_filter.session}
    db.execute("BEGIN")
    try:
        found = list(unpacked(db.execute(statement, values).fetchone()[0], 1))
        filed = _filed(db, [row[0] for row in found])
        newest = queries.position(db)
    finally:
        db.execute("ROLLBACK")
    rows: list[ErasedRow] = []
    marked: list[int] = []
    for position, tenant, session, turn, name, value in found:
        place, entry_row = row_place(tenant, session, name), filed.get(position)
        thoughts = queries.reasoning(db, [(position, place, value)])
        if thoughts is None:  # they are damaged: what can be read of them by eye goes as well
            shape = entry_row.entry.shape if entry_row else "t"
            thoughts = [(DAMAGED_VERSION, "")] * shape.count("t")
        blank = [erased(*one) for one in thoughts]
        count = sum(new != old for new, old in zip(blank, thoughts, strict=True))
        entry = entry_row.entry if entry_row else unfiled_entry(session, turn, thoughts)
        if count and rules.filter_matches(entry_filter, tenant, entry):
            rows.append(ErasedRow(position, place, blank, count))
            marked += [entry_row.position] if entry_row else []
    last = found[-1][0] if found else after
    return ErasePage(rows, list(dict.fromkeys(marked)), last, newest, len(found) == CHUNK)


def _filed(db: Connection, positions: Sequence[int]) -> dict[int, EntryRow]:
    """Return the index entries of the turns of these rows, as far as they can be read."""
    pairs: list[tuple[int, int]] = []
    for cursor in statements.execute(db, _FILED, "?", positions):
        pairs += _pairs.decode(cursor.fetchone()[0])
    found = filed_entries.read_rows(db, list({entry for _, entry in pairs}))
    entries = {row.position: row for row in found}
    return {
        position: entries[entry]
        for position, entry in pairs
        if not is_damaged(entries[entry].entry)
    }


def erase(db: Connection, page: ErasePage) -> int:
    """Erase the thoughts of a page; returns how many.

    What is sealed stays so, with the key that the row has by now.
    """
    values: list[Any] = []
    heads = statements.execute(db, _HEADS, "?", [row.position for row in page.rows])
    versions = {position: key_version(head) for some in heads for position, head in some}
    rows = [row for row in page.rows if row.position in versions]
    for row in rows:
        version = versions[row.position]
        value = reseal_thoughts(row.thoughts, row.place, db.cipher, version=version)
        values += (row.position, bytearray(value))
    statements.execute(db, _ERASE, "(?, ?)", values)
    changed = [
        (row, rules.forget_entry(row.entry, ALL_ENTRIES)[0])
        for row in filed_entries.read_rows(db, page.entries)
    ]
    filed_entries.update(db, changed)
    return sum(row.count for row in rows)
