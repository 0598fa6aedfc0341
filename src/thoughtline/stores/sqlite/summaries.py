"""Summaries of the index, which listings and statistics of thought entries read.

They follow the index in slices, each in one short transaction together with how far it got
(`summarised`): so appends pay nothing for them, a crash loses nothing, and several processes may
do it at once. Readers add what is not summarised yet. Deleting an entry takes it out of the
summaries in the same transaction.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from thoughtline.errors import Damaged, SealError
from thoughtline.log.index import IndexEntry
from thoughtline.stores.row import open_entry
from thoughtline.stores.sealing.envelope import key_version
from thoughtline.stores.sqlite import statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked
from thoughtline.stores.sqlite.statements import load

ENTRIES = 500
"""Index entries in one slice."""

_POSITION = "SELECT position FROM summarised WHERE source = ?"
ADVANCE = "UPDATE summarised SET position = ? WHERE source = ? AND position = ?"
_LAST_OF_SLICE = """
SELECT max(position) FROM (
    SELECT position FROM batches WHERE position > ? ORDER BY position LIMIT ?
)
"""
_BEHIND = "SELECT count(*) FROM (SELECT 1 FROM batches WHERE position > ? LIMIT ?)"
_ADD = load("summarise_entries.sql").split(";")
_COLUMNS = ("b.position", "t.tenant", "s.session", ROW_NAME)
# A memo that is not sealed and does not have the name `calls` in it has no calls.
_LISTED = packed(
    """
SELECT {rows}
FROM listed_entries AS l
CROSS JOIN batches AS b ON b.position = l.position
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE l.position > :after AND l.position <= :last
  AND (substr(b.memo, 1, 1) = x'01' OR instr(b.memo, x'a563616c6c73') > 0)
""",
    _COLUMNS,
    ["b.memo"],
)
_ADD_CALLS = "INSERT OR IGNORE INTO listed_calls (call, position) VALUES {slots}"
_TAKE_OUT = """
UPDATE entry_groups SET entries = entries - gone.count, chars = chars - gone.size
FROM (
    SELECT kind, count(*) AS count, sum(chars) AS size FROM listed_entries
    WHERE position IN ({slots}) GROUP BY kind
) AS gone WHERE number = gone.kind
"""
_UNLIST = "DELETE FROM listed_entries WHERE position IN ({slots})"
_UNLIST_CALLS = "DELETE FROM listed_calls WHERE {slots}"
_NO_GROUP = "DELETE FROM entry_groups WHERE entries <= 0"


def position(db: Connection, source: str) -> int:
    """Return up to which row the index entries (`entries`) or the `events` are summarised."""
    return int(db.execute(_POSITION, (source,)).fetchone()[0])


def add_entries(db: Connection) -> bool:
    """Summarise the next index entries; whether there may be more."""
    after = position(db, "entries")
    (last,) = db.execute(_LAST_OF_SLICE, (after, ENTRIES)).fetchone()
    if last is None:
        db.execute(_NO_GROUP)
        return False
    _add(db, after, last)
    db.execute(ADVANCE, (last, "entries", after))
    return True


def _add(db: Connection, after: int, last: int) -> None:
    values = {"after": after, "last": last}
    for statement in _ADD:
        db.execute(statement, values)
    calls: list[Any] = []
    (packed_rows,) = db.execute(_LISTED, values).fetchone()
    for number, tenant, session, row, memo in unpacked(packed_rows, 1):
        with suppress(Damaged, SealError):  # that is noted by look-ups
            entry = open_entry(memo, row_place(tenant, session, row), db.cipher)
            names = listed_calls(db, tenant, entry, version=key_version(memo))
            calls += chain.from_iterable((bytearray(name), number) for name in names)
    statements.execute(db, _ADD_CALLS, "(?, ?)", calls)


def listed_calls(db: Connection, tenant: str, entry: IndexEntry, *, version: int) -> list[bytes]:
    """Return what the tool calls of an entry are listed under."""
    names = [call_name(call) for call in entry.calls if call]
    return db.cipher.filed(tenant, names, version=version)


def call_name(call: str) -> bytes:
    """Return the name of a tool call, before it is blinded."""
    return call.encode("utf-8", "surrogatepass")


def behind(db: Connection, most: int) -> int:
    """Return how many rows are not summarised, counted up to `most`."""
    return int(db.execute(_BEHIND, (position(db, "entries"), most)).fetchone()[0])


def add_again(db: Connection, positions: Iterable[int]) -> None:
    """Summarise entries that have changed, as far as they were summarised before."""
    last = position(db, "entries")
    for number in positions:
        if number <= last:
            _add(db, number - 1, number)


def remove_entries(
    db: Connection, positions: Sequence[int], calls: Iterable[tuple[bytearray, int]]
) -> None:
    """Take index entries out of the summaries; `calls` are their listed calls and positions."""
    statements.execute(db, _TAKE_OUT, "?", positions)
    statements.execute(db, _UNLIST, "?", positions)
    values: list[Any] = [value for pair in calls for value in pair]
    one = "(call = ? AND position = ?)"
    statements.execute(db, _UNLIST_CALLS, one, values, glue=" OR ", widest=64)
