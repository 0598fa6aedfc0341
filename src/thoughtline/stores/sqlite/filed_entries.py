"""The index entries in the rows of turns: read, replaced, and taken out with their keys.

An entry is known by the position of its row. A turn has one: filed again, the older is taken out.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.damage import damaged_entry
from thoughtline.stores.row import RowPlace, entry_names, open_entry, pack_entry
from thoughtline.stores.sealing.envelope import key_version
from thoughtline.stores.sqlite import statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked

_COLUMNS = (
    "b.position",
    "s.tenant",
    "t.tenant",
    "s.session",
    ROW_NAME,
    "printf('%!.17g', s.touched)",
    "s.kept",
)
"""What is read of a row with an entry, before its memo."""

_ENTRIES = packed(
    """
SELECT {rows}
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE b.position IN ({slots}) AND b.memo <> x''
""",
    _COLUMNS,
    ["b.memo"],
)
_UPDATE = """
UPDATE batches SET entries = new.column2, chars = new.column3, memo = new.column4
FROM (VALUES {slots}) AS new WHERE batches.position = new.column1
"""
_CLEAR = "UPDATE batches SET entries = 0, chars = 0, memo = x'' WHERE position IN ({slots})"
_DELETE_EMPTY = "DELETE FROM batches WHERE position IN ({slots}) AND count = 0"
_NOTE_NEWEST = """
UPDATE newest SET position = max(position, (SELECT coalesce(max(position), 0) FROM batches))
"""
_KEYS = "INSERT OR IGNORE INTO lookup_keys (tenant, name, position) VALUES {slots}"
_DELETE_KEYS = "DELETE FROM lookup_keys WHERE {slots}"


class EntryRow(msgspec.Struct, frozen=True):
    """An index entry as the tables have it."""

    position: int
    tenant_number: int
    place: RowPlace
    touched: float
    kept: bool
    version: int  # of the key that its memo is sealed with; 0: it is plain
    entry: IndexEntry

    @property
    def tenant(self) -> str:
        """The tenant of its session."""
        return self.place.tenant


def _unpack(db: Connection, value: bytes | None) -> list[EntryRow]:
    found: list[EntryRow] = []
    for position, owner, *names, touched, kept, memo in unpacked(value, 1):
        place = row_place(*names)
        found.append(
            EntryRow(
                position,
                owner,
                place,
                float(touched),
                kept=bool(kept),
                version=key_version(memo),
                entry=_open(db, memo, place),
            )
        )
    return found


def _open(db: Connection, memo: bytes, place: RowPlace) -> IndexEntry:
    """Return an entry; an empty one where it is damaged, or its key was deleted with its tenant."""
    try:
        return open_entry(memo, place, db.cipher)
    except KeyGone:
        return IndexEntry(place.session, place.row)
    except Damaged as error:
        db.damage.note(place.session, error)
        return damaged_entry(place.session, place.row)


def read_rows(db: Connection, positions: Sequence[int]) -> list[EntryRow]:
    """Return index entries by position, the last filed first."""
    found: list[EntryRow] = []
    for cursor in statements.execute(db, _ENTRIES, "?", positions):
        found += _unpack(db, cursor.fetchone()[0])
    return sorted(found, key=lambda row: -row.position)


def update(db: Connection, changed: Sequence[tuple[EntryRow, IndexEntry]]) -> None:
    """Write entries whose calls were forgotten, in place."""
    values: list[Any] = []
    for row, entry in changed:
        found = rules.entry_summary(entry)
        memo = db.cipher.reseal(pack_entry(entry), row.place, "memo", version=row.version)
        values += (row.position, found.entries, found.chars, bytearray(memo))
    statements.execute(db, _UPDATE, "(?, ?, ?, ?)", values)


def take_out(db: Connection, found: Sequence[EntryRow]) -> None:
    """Take entries out of the index, with the keys that they are filed under."""
    keys: list[int | bytearray] = []
    for row in found:
        names = entry_names(row.entry)
        for name in db.cipher.filed(row.tenant, names, version=row.version):
            keys += (row.tenant_number, bytearray(name), row.position)
    delete_keys(db, keys)
    positions = [row.position for row in found]
    statements.execute(db, _CLEAR, "?", positions)
    note_newest(db)
    statements.execute(db, _DELETE_EMPTY, "?", positions)


def note_newest(db: Connection) -> None:
    """Note the last position, before rows are deleted: none is used twice."""
    db.execute(_NOTE_NEWEST)


def insert_keys(db: Connection, values: Sequence[Any]) -> None:
    """Insert rows of look-up keys; `values` are tenant, key and position of each."""
    statements.execute(db, _KEYS, "(?, ?, ?)", values)


def delete_keys(db: Connection, values: Sequence[Any]) -> None:
    """Delete rows of look-up keys; `values` are tenant, key and position of each."""
    # SQLite does not look up `(tenant, name, position) IN (VALUES …)` by the primary key.
    one = "(tenant = ? AND name = ? AND position = ?)"
    statements.execute(db, _DELETE_KEYS, one, values, glue=" OR ", widest=64)
