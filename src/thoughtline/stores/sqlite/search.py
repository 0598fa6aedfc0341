"""Searches sessions chunk by chunk, the most recently touched first.

Conditions on turns are evaluated in SQL. Text is searched roughly in SQL (anywhere in the JSON),
and what that finds is decoded and compared. A search looks at a limited number of sessions and then
says where to go on, so that it does not hold a reader's thread for long.
"""

import sqlite3
import time
from collections.abc import Sequence
from itertools import islice

import msgspec

from thoughtline.stores import rules
from thoughtline.stores import search as query_rules
from thoughtline.stores.base import SessionCursor, SessionListing, SessionQuery, SessionSummary
from thoughtline.stores.sqlite.statements import load

CHUNK = 100
"""Sessions that are looked at in one statement."""

MAX_EVENTS = 10_000
"""Events of these sessions; a single session may have more."""

MAX_SECONDS = 0.1
"""Seconds after which no further chunk is begun."""

_LISTED = load("list_sessions.sql")
_OF_TENANT = "s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant) AND"
_OF_SESSION = "s.session = :id AND"
_MATCHING = load("match_sessions.sql")
_TEXTS = """
SELECT group_concat(e.session || ' ' || e.version || ' ' || e.type || ' ' || e.data, char(30))
FROM events AS e
WHERE e.session IN (SELECT value FROM json_each(?))
  AND e.type IN (SELECT value FROM json_each(?))
  AND ({likes})
"""
_rows = msgspec.json.Decoder(list[tuple[int, str, str, str, str, int]])
_numbers = msgspec.json.Decoder(set[int])


def search(
    db: sqlite3.Connection, query: SessionQuery, limit: int, after: SessionCursor | None
) -> SessionListing:
    """Return a page of the sessions that match."""
    found: list[SessionSummary] = []
    plain = query == SessionQuery(session=query.session, tenant=query.tenant)
    scanned = 0
    deadline = time.monotonic() + MAX_SECONDS
    while len(found) < limit and scanned < query_rules.MAX_SCANNED:
        if scanned and not plain and time.monotonic() > deadline:
            break
        size = limit - len(found) if plain else CHUNK
        chunk = _chunk(db, query, after, size)
        if not plain:
            size = min(size, _few(chunk))
            chunk = dict(islice(chunk.items(), size))
        scanned += len(chunk)
        matching = chunk.keys() if plain else _matching(db, query, list(chunk))
        for number, summary in chunk.items():
            if len(found) == limit:
                break
            after = (summary.touched, summary.session)
            if number in matching:
                found.append(summary)
        else:
            if len(chunk) < size:
                return SessionListing(sessions=found)
    return SessionListing(sessions=found, after=after)


def _few(chunk: dict[int, SessionSummary]) -> int:
    """Return how many of these sessions are looked at at once, by the events they have."""
    events = 0
    for count, summary in enumerate(chunk.values(), 1):
        events += summary.events
        if events > MAX_EVENTS:
            return count
    return CHUNK


def _chunk(
    db: sqlite3.Connection, query: SessionQuery, after: SessionCursor | None, size: int
) -> dict[int, SessionSummary]:
    touched, session = after or (float("inf"), "")
    values = {"touched": touched, "session": session, "limit": size}
    values |= {"tenant": query.tenant, "id": query.session}
    tenant = "" if query.tenant is None else _OF_TENANT
    only = "" if query.session is None else _OF_SESSION
    (packed,) = db.execute(_LISTED.format(only=f"{tenant} {only}"), values).fetchone()
    return {
        number: SessionSummary(
            session=session,
            tenant=owner,
            created=float(created),
            touched=float(touched),
            events=events,
        )
        for number, session, owner, created, touched, events in _rows.decode(packed)
    }


def _matching(db: sqlite3.Connection, query: SessionQuery, numbers: Sequence[int]) -> set[int]:
    asked = msgspec.structs.asdict(query) | {"numbers": msgspec.json.encode(numbers).decode()}
    (packed,) = db.execute(_MATCHING, asked).fetchone()
    matching = _numbers.decode(packed)
    return matching if query.text is None else _with_text(db, query.text, sorted(matching))


def _with_text(db: sqlite3.Connection, text: str, numbers: Sequence[int]) -> set[int]:
    patterns = [f"%{_escaped(case)}%" for case in query_rules.spellings(text)]
    statement = _TEXTS.format(likes=" OR ".join([r"e.data LIKE ? ESCAPE '\'"] * len(patterns)))
    lists = [msgspec.json.encode(values).decode() for values in (numbers, query_rules.TEXT_TYPES)]
    (packed,) = db.execute(statement, (*lists, *patterns)).fetchone()
    matching: set[int] = set()
    for row in packed.split(rules.SEPARATOR) if packed else ():
        number, version, type, data = row.split(" ", 3)
        if int(number) not in matching and query_rules.contains_text(
            type, int(version), data, text
        ):
            matching.add(int(number))
    return matching


def _escaped(text: str) -> str:
    """Escape the wildcards of LIKE."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
