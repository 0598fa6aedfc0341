"""How sessions are deleted: whole, few at a time, and never from under a fork.

What matches is listed by a reader first, the youngest first, because a fork is younger than what it
goes on from. Then the writer deletes a few sessions per transaction, so that appends never wait
long, and looks again before each: a session that was touched meanwhile stays.
"""

import sqlite3
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from thoughtline.stores.base import INTERNAL
from thoughtline.stores.sqlite import rows

CHUNK = 16
"""Sessions in one transaction."""

_MATCHING = """
SELECT s.number, s.session, s.tenant FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
WHERE (:session IS NULL OR s.session = :session)
  AND (:tenant IS NULL OR t.tenant = :tenant)
  AND (:untouched_since IS NULL OR s.touched < :untouched_since)
  AND (:session IS NOT NULL OR :tenant IS NOT NULL
       OR substr(s.session, 1, length(:internal)) <> :internal)
"""
_LOOK = f"{_MATCHING} AND s.number = :number"
_REFERRED = """
SELECT EXISTS (
    SELECT 1 FROM events WHERE about = ? AND type = 'session_forked' AND session <> ?
)
"""
_FILED = """
SELECT json_group_array(json_array(m.number, s.tenant, m.memo))
FROM memories AS m JOIN sessions AS s ON s.number = m.session WHERE m.session = ?
"""
_FORGET_TENANT = """
DELETE FROM tenants
WHERE number = :tenant AND NOT EXISTS (SELECT 1 FROM sessions WHERE tenant = :tenant)
"""


class Which(Struct, frozen=True, kw_only=True):
    """The conditions, all of which a session must meet."""

    session: str | None
    tenant: str | None
    untouched_since: float | None
    internal: str = INTERNAL  # these do not expire


def listed(db: sqlite3.Connection, which: Which) -> list[int]:
    """Numbers of the sessions that match, the youngest first."""
    found = db.execute(_MATCHING, msgspec.structs.asdict(which)).fetchall()
    return sorted((number for number, *_ in found), reverse=True)


def remove(db: sqlite3.Connection, numbers: Sequence[int], which: Which) -> set[int]:
    """Delete those that still match and that no fork refers to; returns which."""
    removed: set[int] = set()
    tenants: set[int] = set()
    for number in numbers:
        found = db.execute(_LOOK, msgspec.structs.asdict(which) | {"number": number}).fetchone()
        if found is None:
            continue
        _, session, tenant = found
        if not db.execute(_REFERRED, (session, number)).fetchone()[0]:
            _delete(db, number)
            removed.add(number)
            tenants.add(tenant)
    for tenant in tenants:
        db.execute(_FORGET_TENANT, {"tenant": tenant})
    return removed


def _delete(db: sqlite3.Connection, number: int) -> None:
    (filed,) = db.execute(_FILED, (number,)).fetchone()
    rows.forget(db, rows.filings.decode(filed))
    db.execute("DELETE FROM events WHERE session = ?", (number,))
    db.execute("DELETE FROM sessions WHERE number = ?", (number,))
