"""Searches sessions chunk by chunk, the most recently touched first.

Conditions on turns are evaluated in SQL. Text is searched roughly, anywhere in what a row says, and
what that finds is decoded and compared. A search looks at a limited number of sessions and then
says where to go on, so that it does not hold a reader's thread for long.
"""

import time
from collections.abc import Sequence
from itertools import islice

import msgspec

from thoughtline.errors import Damaged, KeyGone
from thoughtline.stores import search as query_rules
from thoughtline.stores.base import SessionCursor, SessionListing, SessionQuery, SessionSummary
from thoughtline.stores.row import (
    ENDED,
    STARTED,
    RowPlace,
    kinds_of,
    open_said,
    unpack_said,
)
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, packed, row_place, unpacked
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
_TEXTS = packed(
    """
SELECT {rows}
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE b.session IN (SELECT value FROM json_each(?)) AND b.kinds & ?
""",
    ["s.number", "t.tenant", "s.session", ROW_NAME],
    ["b.said"],
)
_TEXT_KINDS = kinds_of(query_rules.TEXT_TYPES)
_rows = msgspec.json.Decoder(list[tuple[int, str, str, str, str, int]])
_numbers = msgspec.json.Decoder(set[int])


def search(
    db: Connection, query: SessionQuery, limit: int, after: SessionCursor | None
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
    db: Connection, query: SessionQuery, after: SessionCursor | None, size: int
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


def _matching(db: Connection, query: SessionQuery, numbers: Sequence[int]) -> set[int]:
    asked = msgspec.structs.asdict(query) | {"numbers": msgspec.json.encode(numbers).decode()}
    asked |= {"started": STARTED, "ended": ENDED}
    (packed,) = db.execute(_MATCHING, asked).fetchone()
    matching = _numbers.decode(packed)
    return matching if query.text is None else _with_text(db, query.text, sorted(matching))


def _with_text(db: Connection, text: str, numbers: Sequence[int]) -> set[int]:
    spellings = [case.encode().lower() for case in query_rules.spellings(text)]
    listed = msgspec.json.encode(numbers).decode()
    matching: set[int] = set()
    (found,) = db.execute(_TEXTS, (listed, _TEXT_KINDS)).fetchone()
    for number, *place, value in unpacked(found, 1):
        if number in matching:
            continue
        if _says(db, row_place(*place), value, text, spellings):
            matching.add(number)
    return matching


def _says(
    db: Connection, place: RowPlace, value: bytes, text: str, spellings: Sequence[bytes]
) -> bool:
    try:
        said = open_said(value, place, db.cipher)
        rough = said.lower()  # ASCII letters: as JSON spells the others
        if not any(spelling in rough for spelling in spellings):
            return False
        return any(
            query_rules.contains_text(type, version, data, text)
            for *_, type, version, data in unpack_said(said, place)
        )
    except KeyGone:  # the tenant was deleted, or is being deleted
        return False
    except Damaged as error:
        db.damage.note(place.session, error)
        return False
