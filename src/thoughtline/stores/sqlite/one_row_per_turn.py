"""Moves what layout 3 has, a row for each event and one for each index entry, to a row per turn.

Neighbouring events of one turn become a row; every event keeps its number and its position. A
turn's index entry goes to the row in which the turn ends. Everything is moved as it is: a file that
is to be sealed is sealed afterwards. All of it is one transaction: a process that dies leaves the
file as it was.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from thoughtline.log.events import Draft
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import Batch, Progress
from thoughtline.stores.row import ENDED, pack
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.inserts import ROW_SLOTS, row_values

WINDOW = 2_000
"""Events that are read at once."""

MAX_EVENTS = 256
"""Events of one row: those without a turn may be many."""

_UNUSED = ("events_by_session", "events_thoughts", "events_about", "events_continued")
_SESSIONS = """
SELECT s.number, s.session, t.tenant FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
"""
_NEWEST = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'"
_EVENTS = """
SELECT position, session, seq, id, parent, at, type, version, data FROM events
WHERE position > ? ORDER BY position LIMIT ?
"""
_ENTRY = "SELECT number, memo FROM memories WHERE session = ? AND turn = ?"
_LEFT = """
SELECT number, session, turn, memo FROM memories
WHERE number NOT IN (SELECT number FROM moved) ORDER BY number
"""
_LAST_ROW = "SELECT max(position) FROM batches WHERE turn = ? AND session = ?"
_INSERT = "INSERT INTO batches VALUES {slots}".replace("{slots}", ROW_SLOTS)
_FILE = """
UPDATE batches SET provider = ?, endpoint = ?, model = ?, asked = ?,
    entries = ?, chars = ?, ended = ?, memo = ?
WHERE position = ?
"""
_KEYS = """
INSERT INTO lookup_keys SELECT n.tenant, n.name, m.position
FROM names AS n JOIN moved AS m ON m.number = n.memory ORDER BY n.tenant, n.name, m.position
"""
_POINTER = "INSERT INTO pointers (session, type, about, thoughts) VALUES (?, ?, ?, ?)"
_old_entry = msgspec.json.Decoder(IndexEntry)

Group = list[tuple[Any, ...]]
"""Neighbouring events of one turn, as `_EVENTS` reads them."""


def move(db: Connection, progress: Progress | None = None) -> None:
    """Move everything, inside a transaction."""
    for index in _UNUSED:
        db.execute(f"DROP INDEX {index}")
    db.execute("CREATE TEMP TABLE moved (number INTEGER PRIMARY KEY, position INTEGER NOT NULL)")
    names = {number: (tenant, session) for number, session, tenant in db.execute(_SESSIONS)}
    (newest,) = db.execute(_NEWEST).fetchone()
    for group in _groups(db, newest, progress):
        if (owner := names.get(group[0][1])) is not None:
            _move_group(db, group, *owner)
    newest = _move_left_entries(db, newest, names)
    db.execute("UPDATE newest SET position = ?", (newest,))
    db.execute(_KEYS)
    for table in ("names", "memories", "events", "moved"):
        db.execute(f"DROP TABLE {table}")


def _groups(db: Connection, newest: int, progress: Progress | None) -> Iterator[Group]:
    """Yield neighbouring events that belong to one turn; what was read is deleted."""
    after = 0
    group: Group = []
    while found := db.execute(_EVENTS, (after, WINDOW)).fetchall():
        for event in found:
            if group and (len(group) == MAX_EVENTS or not _goes_on(group[-1], event)):
                yield group
                group = []
            group.append(event)
        after = found[-1][0]
        db.execute("DELETE FROM events WHERE position <= ?", (after,))  # its pages are used again
        if progress is not None:
            progress(after, newest)
    if group:
        yield group


def _goes_on(last: tuple[Any, ...], event: tuple[Any, ...]) -> bool:
    """Whether an event follows the last one at once, in the same turn of the same session."""
    neighbour = (last[0] + 1, last[1], last[2] + 1) == event[:3]
    return neighbour and event[6] != "turn_started" and event[4] == _turn_of(last)


def _turn_of(event: tuple[Any, ...]) -> str:
    _, _, _, id, parent, _, type, *_ = event
    return str(id if type == "turn_started" else parent)


def _move_group(db: Connection, group: Group, tenant: str, session: str) -> None:
    drafts = tuple(
        [
            Draft(id, parent, float(at), type, version, data)
            for _, _, _, id, parent, at, type, version, data in group
        ]
    )
    position, number = group[-1][0], group[0][1]
    [row] = pack(Batch(session=session, tenant=tenant, drafts=drafts))
    if row.kinds & ENDED and (found := db.execute(_ENTRY, (number, row.turn)).fetchone()):
        entry = _read_entry(found[1])
        if entry is not None and _note_moved(db, found[0], position):
            [row] = pack(Batch(session=session, tenant=tenant, drafts=drafts, index=(entry,)))
    db.execute(_INSERT, row_values(row, position, number, group[0][2]))
    for reference in row.references:
        db.execute(_POINTER, (number, *reference))


def _note_moved(db: Connection, number: int, position: int) -> bool:
    """Note where an entry is; whether it was nowhere before."""
    values = (number, position)
    return bool(db.execute("INSERT OR IGNORE INTO moved VALUES (?, ?)", values).rowcount)


def _read_entry(memo: str) -> IndexEntry | None:
    """Return an index entry; None if it is damaged: `thoughtline index --rebuild` makes it anew."""
    try:
        return _old_entry.decode(memo)
    except rules.UNREADABLE:
        return None


def _move_left_entries(db: Connection, newest: int, names: dict[int, tuple[str, str]]) -> int:
    """Move the entries of turns that never ended, or that have no events; returns the last row."""
    for number, owner, turn, memo in db.execute(_LEFT).fetchall():
        entry = _read_entry(memo)
        if entry is None:
            continue
        tenant, session = names[owner]
        (position,) = db.execute(_LAST_ROW, (turn, owner)).fetchone()
        [row] = pack(Batch(session=session, tenant=tenant, drafts=(), index=(entry,)))
        if position is None:
            newest = position = newest + 1
            (last,) = db.execute("SELECT last FROM sessions WHERE number = ?", (owner,)).fetchone()
            db.execute(_INSERT, row_values(row, position, owner, last + 1))
        else:
            said = (row.provider, row.endpoint, row.model, row.asked)
            db.execute(
                _FILE, (*said, row.entries, row.chars, row.ended, bytearray(row.memo), position)
            )
        _note_moved(db, number, position)
    return newest
