"""Reads and replaces the index entries of one session, to check and rebuild the look-up index.

Replacing takes a few entries per transaction, so that appends never wait long; the session's row is
not touched, so its retention is not extended.
"""

import sqlite3
from collections.abc import Collection, Iterable, Sequence

import msgspec

from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import FiledEntry
from thoughtline.stores.sqlite import queries, rows, statements
from thoughtline.stores.sqlite.inserts import EntryRows
from thoughtline.stores.sqlite.statements import load

CHUNK = 64
"""Index entries in one transaction."""

PRUNED = 1_000
"""Look-up keys that are deleted in one transaction."""

_ENTRIES = load("session_entries.sql")
_KEYS = "SELECT memory, name FROM names WHERE {slots}"
_SESSION = "SELECT number, tenant FROM sessions WHERE session = ?"
_FILED = """
SELECT json_group_array(json_array(m.number, s.tenant, m.memo))
FROM memories AS m JOIN sessions AS s ON s.number = m.session
WHERE m.session = ? AND m.turn IN (SELECT value FROM json_each(?))
"""
_LAST = "SELECT coalesce(max(number), 0) FROM memories"
_ORPHANS = """
FROM names WHERE NOT EXISTS (SELECT 1 FROM memories WHERE memories.number = names.memory)
"""
_filed = msgspec.json.Decoder(list[tuple[int, int, str]])


def read_entries(db: sqlite3.Connection, session: str) -> list[FiledEntry]:
    """Return the entries of a session with their thoughts, and the keys that are not filed."""
    db.execute("BEGIN")
    try:
        memos, reasoning, quarantines = db.execute(_ENTRIES, {"session": session}).fetchone()
        entries = queries.unpack_entries(memos, reasoning, quarantines)
        found = db.execute(_SESSION, (session,)).fetchone()
        filed = _filed_keys(db, found[1], entries) if found else set()
    finally:
        db.execute("ROLLBACK")
    return [
        FiledEntry(entry, frozenset(key for key in entry.keys if (number, key) not in filed))
        for number, entry in sorted(entries.items())
    ]


def _filed_keys(
    db: sqlite3.Connection, tenant: int, entries: dict[int, IndexEntry]
) -> set[tuple[int, bytes]]:
    """Return the number of an entry and a key, for all keys that the table has."""
    values: list[int | bytes] = []
    for number, entry in entries.items():
        for key in entry.keys:
            values += (tenant, key, number)
    one = "(tenant = ? AND name = ? AND memory = ?)"
    cursors = statements.execute(db, _KEYS, one, values, glue=" OR ", widest=64)
    return {(number, bytes(key)) for cursor in cursors for number, key in cursor.fetchall()}


def replace_entries(
    db: sqlite3.Connection, session: str, rows: Sequence[EntryRows], remove: Collection[str]
) -> None:
    """Replace the entries of these turns, and delete those of the turns in `remove`."""
    found = db.execute(_SESSION, (session,)).fetchone()
    if found is None:
        return
    number, tenant = found
    _delete(db, number, [*remove, *(row.turn for row in rows)])
    (last,) = db.execute(_LAST).fetchone()
    _insert(db, rows, last, number, tenant)


def _delete(db: sqlite3.Connection, session: int, turns: Iterable[str]) -> None:
    listed = msgspec.json.encode(list(turns)).decode()
    (filed,) = db.execute(_FILED, (session, listed)).fetchone()
    rows.delete_entries(db, _filed.decode(filed))


def _insert(
    db: sqlite3.Connection, new: Sequence[EntryRows], last: int, session: int, tenant: int
) -> None:
    for number, entry in enumerate(new, last + 1):
        entry.set_numbers(number, session, tenant)
    rows.insert_entries(db, new)


def count_orphans(db: sqlite3.Connection) -> int:
    """Return how many look-up keys lead to no entry."""
    return int(db.execute(f"SELECT count(*) {_ORPHANS}").fetchone()[0])


def delete_orphans(db: sqlite3.Connection) -> int:
    """Delete some look-up keys that lead to no entry; returns how many."""
    orphans = db.execute(f"SELECT tenant, name, memory {_ORPHANS} LIMIT ?", (PRUNED,)).fetchall()
    rows.delete_keys(db, [value for orphan in orphans for value in orphan])
    return len(orphans)
