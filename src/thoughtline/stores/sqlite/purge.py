"""Deletes whole sessions in slices, and never one that a fork refers to.

A reader lists what matches first, the youngest first, because a fork is younger than its origin.
Then the writer deletes a few sessions per transaction, so that appends never wait long, and checks
each again: a session that was touched meanwhile stays. A long session is first renamed, so that it
is gone for everybody, and then taken apart; what a crash leaves of it goes with the next purge.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from thoughtline.stores.base import INTERNAL_PREFIX
from thoughtline.stores.sqlite import filed_entries, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import DELETED_PREFIX

CHUNK = 32
"""Sessions in one transaction."""

MAX_EVENTS = 250
"""Events in one transaction."""

MAX_ROWS = 64
"""Rows of a long session in one transaction."""

_MATCHING = "SELECT s.number, s.session, s.tenant, s.last + 1 FROM sessions AS s WHERE {}"
_CONDITIONS = {
    "session": "s.session = :session",
    "tenant": "s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant)",
    "untouched_since": "s.touched < :untouched_since",
}
_EXPIRES = "s.kept = 0 AND substr(s.session, 1, length(:internal)) <> :internal"
_LEFT_OVER = "SELECT number FROM sessions WHERE session >= ? AND session < ?"
_IS_FORKED = """
SELECT EXISTS (
    SELECT 1 FROM pointers WHERE about = ? AND type = 'session_forked' AND session <> ?
)
"""
_LAST_ROWS = "SELECT position FROM batches WHERE session = ? ORDER BY first DESC LIMIT ?"
_DELETE_ROWS = "DELETE FROM batches WHERE position IN ({slots})"
_POINTERS = "DELETE FROM pointers WHERE session = ?"
_DELETE_TENANT = """
DELETE FROM tenants
WHERE number = :tenant AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = :tenant)
"""


class PurgeFilter(Struct, frozen=True, kw_only=True):
    """The conditions of a purge, all of which a session must meet."""

    session: str | None
    tenant: str | None
    untouched_since: float | None
    internal: str = INTERNAL_PREFIX  # these do not expire

    @property
    def whole_tenant(self) -> str | None:
        """The tenant, where everything of it is to go."""
        whole = self.session is None and self.untouched_since is None
        return self.tenant if whole else None

    @property
    def sql(self) -> str:
        """The conditions as SQL: only those that there are, so that an index is used."""
        found = [text for name, text in _CONDITIONS.items() if getattr(self, name) is not None]
        if self.session is None and self.tenant is None:
            found.append(_EXPIRES)
        return " AND ".join(found)


class SessionSize(Struct, frozen=True):
    """A session that is to be deleted."""

    number: int
    events: int

    @property
    def long(self) -> bool:
        """Whether it takes more than one transaction."""
        return self.events > MAX_EVENTS


def list_sessions(db: Connection, conditions: PurgeFilter) -> list[SessionSize]:
    """Return the sessions that match, the youngest first."""
    statement = _MATCHING.format(conditions.sql)
    found = db.execute(statement, msgspec.structs.asdict(conditions)).fetchall()
    return sorted((SessionSize(n, events) for n, *_, events in found), key=lambda s: -s.number)


def slices(sessions: Sequence[SessionSize]) -> Iterator[list[SessionSize]]:
    """Split sessions into what goes into one transaction; a long one comes alone."""
    some: list[SessionSize] = []
    events = 0
    for session in sessions:
        full = len(some) == CHUNK or events + session.events > MAX_EVENTS
        if some and full:
            yield some
            some, events = [], 0
        some.append(session)
        events += session.events
    if some:
        yield some


def remove(db: Connection, sessions: Sequence[SessionSize], conditions: PurgeFilter) -> set[int]:
    """Delete the sessions that still match and that no fork refers to; returns their numbers.

    A long one is only renamed: `remove_part` does the rest.
    """
    removed: set[int] = set()
    statement = _MATCHING.format(f"{conditions.sql} AND s.number = :number")
    for one in sessions:
        values = msgspec.structs.asdict(conditions) | {"number": one.number}
        found = db.execute(statement, values).fetchone()
        if found is None:
            continue
        _, session, tenant, _ = found
        if db.execute(_IS_FORKED, (session, one.number)).fetchone()[0]:
            continue
        if one.long:
            name = f"{DELETED_PREFIX}{one.number}:{session}"
            db.execute("UPDATE sessions SET session = ? WHERE number = ?", (name, one.number))
        else:
            _delete(db, one.number, tenant)
        removed.add(one.number)
    return removed


def _delete(db: Connection, number: int, tenant: int) -> None:
    _delete_rows(db, number, -1)
    _delete_row(db, number, tenant)


def _delete_rows(db: Connection, number: int, limit: int) -> int:
    """Delete the last rows of a session, with their index entries; returns how many."""
    positions = [position for (position,) in db.execute(_LAST_ROWS, (number, limit)).fetchall()]
    filed_entries.take_out(db, filed_entries.read_rows(db, positions))
    filed_entries.note_newest(db)
    statements.execute(db, _DELETE_ROWS, "?", positions)
    return len(positions)


def _delete_row(db: Connection, number: int, tenant: int) -> None:
    db.execute(_POINTERS, (number,))
    db.execute("DELETE FROM sessions WHERE number = ?", (number,))
    if db.execute(_DELETE_TENANT, {"tenant": tenant}).rowcount:
        db.execute("DELETE FROM lookup_keys WHERE tenant = ?", (tenant,))  # that cannot be opened


def left_over(db: Connection) -> list[int]:
    """Return the sessions that were renamed and are not deleted yet."""
    end = DELETED_PREFIX[:-1] + chr(ord(DELETED_PREFIX[-1]) + 1)
    return [number for (number,) in db.execute(_LEFT_OVER, (DELETED_PREFIX, end)).fetchall()]


def remove_part(db: Connection, number: int) -> int:
    """Delete a part of a renamed session, from its end; returns how many rows. 0: it is gone."""
    if count := _delete_rows(db, number, MAX_ROWS):
        return count
    found = db.execute("SELECT tenant FROM sessions WHERE number = ?", (number,)).fetchone()
    if found is not None:
        _delete_row(db, number, found[0])
    return 0
