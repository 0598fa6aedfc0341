"""Reads and replaces the index entries of one session, to check and rebuild the look-up index.

Replacing takes a few entries per transaction, so that appends never wait long; the session's row is
not touched, so its retention is not extended.
"""

from collections.abc import Collection, Sequence

import msgspec

from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch, FiledEntry
from thoughtline.stores.damage import is_damaged
from thoughtline.stores.sqlite import filed_entries, queries, rows, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.inserts import insert_batch

CHUNK = 64
"""Index entries in one transaction."""

PRUNED = 1_000
"""Look-up keys that are deleted in one transaction."""

_ENTRIES = queries.load_packed("session_entries.sql")
_KEYS = "SELECT position, name FROM lookup_keys WHERE {slots}"
_SESSION = """
SELECT s.number, t.number, t.tenant FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
WHERE s.session = ?
"""
_FILED = """
SELECT position FROM batches
WHERE session = ? AND turn IN (SELECT value FROM json_each(?)) AND memo <> x''
"""
_ORPHANS = """
FROM lookup_keys AS k WHERE NOT EXISTS (
    SELECT 1 FROM batches AS b WHERE b.position = k.position AND b.memo <> x''
)
"""


def read_entries(db: Connection, session: str) -> list[FiledEntry]:
    """Return the entries of a session with their thoughts, and the keys that are not filed.

    Those that are damaged are left out: they are made again like those that are missing.
    """
    db.execute("BEGIN")
    try:
        owner = db.execute(_SESSION, (session,)).fetchone()
        if owner is None:
            return []
        _, number, tenant = owner
        packed = db.execute(_ENTRIES, {"session": session}).fetchone()
        found = queries.unpack_entries(db, tenant, *packed)
        entries = {position: entry for position, entry in found.items() if not is_damaged(entry)}
        filed = _filed_keys(db, number, tenant, entries)
    finally:
        db.execute("ROLLBACK")
    return [
        FiledEntry(entry, frozenset(key for key in entry.keys if (position, key) not in filed))
        for position, entry in sorted(entries.items())
    ]


def _filed_keys(
    db: Connection, number: int, tenant: str, entries: dict[int, IndexEntry]
) -> set[tuple[int, bytes]]:
    """Return the position of an entry and a key, for all keys that the table has."""
    values: list[int | bytearray] = []
    names: dict[bytes, bytes] = {}
    for position, entry in entries.items():
        asked = db.cipher.asked(tenant, entry.keys)
        names |= asked
        for name in asked:
            values += (number, bytearray(name), position)
    one = "(tenant = ? AND name = ? AND position = ?)"
    cursors = statements.execute(db, _KEYS, one, values, glue=" OR ", widest=64)
    return {(position, names[name]) for cursor in cursors for position, name in cursor.fetchall()}


def replace_entries(
    db: Connection, session: str, entries: Sequence[IndexEntry], remove: Collection[str]
) -> None:
    """Replace the entries of these turns, and delete those of the turns in `remove`."""
    found = db.execute(_SESSION, (session,)).fetchone()
    if found is None:
        return
    number, _, tenant = found
    if remove:
        listed = msgspec.json.encode(list(remove)).decode()
        positions = [position for (position,) in db.execute(_FILED, (number, listed)).fetchall()]
        filed_entries.take_out(db, filed_entries.read_rows(db, positions))
    batch = Batch(session=session, tenant=tenant, drafts=(), index=tuple(entries))
    rows.file_again(db, insert_batch(batch))


def count_orphans(db: Connection) -> int:
    """Return how many look-up keys lead to no entry."""
    return int(db.execute(f"SELECT count(*) {_ORPHANS}").fetchone()[0])


def delete_orphans(db: Connection) -> int:
    """Delete some look-up keys that lead to no entry; returns how many."""
    orphans = db.execute(
        f"SELECT k.tenant, k.name, k.position {_ORPHANS} LIMIT ?", (PRUNED,)
    ).fetchall()
    filed_entries.delete_keys(db, [value for orphan in orphans for value in orphan])
    return len(orphans)
