"""The queries of a store. Each function runs in a reader's thread, with a connection of its own.

What is found comes back packed into one value per page (see `statements` for why).
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.events import Event
from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import EventPage, SessionSummary
from thoughtline.stores.damage import damaged_entry, damaged_events
from thoughtline.stores.row import RowPlace, kinds_of, open_entry, open_events, open_thoughts
from thoughtline.stores.sqlite import key_tables, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, packed_rows, row_place, unpacked
from thoughtline.stores.sqlite.statements import load

PAGE = 100
"""Rows of events that are fetched at once."""

MAX_KEYS = 256
"""Keys that are looked up in one statement."""

ALL_KINDS = -1
"""The bits of every kind of event."""

_EVENTS = """
SELECT {rows} FROM (
    SELECT b.position, b.first, b.count, b.turn, t.tenant, s.session, {row} AS row,
        b.thoughts, b.said
    FROM {source} ORDER BY {order} LIMIT :limit
)
"""
_ROWS = packed_rows(
    ["position", "first", "count", "turn", "tenant", "session", "row"],
    ["thoughts", "said"],
)
_OF_SESSION = _EVENTS.format(
    rows=_ROWS,
    row=ROW_NAME,
    source="""sessions AS s CROSS JOIN tenants AS t ON t.number = s.tenant
    CROSS JOIN batches AS b ON b.session = s.number
    WHERE s.session = :session AND b.count > 0 AND b.first + b.count > :after + 1
      AND b.first >= coalesce((
          SELECT max(first) FROM batches
          WHERE session = s.number AND first <= :after + 1 AND count > 0
      ), 0)""",
    order="b.first",
)
_OF_ALL = _EVENTS.format(
    rows=_ROWS,
    row=ROW_NAME,
    source="""batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    CROSS JOIN tenants AS t ON t.number = s.tenant
    WHERE b.position > :after AND b.kinds & :kinds""",
    order="b.position",
)
_NEWEST = "SELECT max(position, (SELECT coalesce(max(position), 0) FROM batches)) FROM newest"
_SESSIONS = """
SELECT s.session, t.tenant, s.created, s.touched, s.last + 1
FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
WHERE {of_tenant} s.touched < :before ORDER BY s.touched DESC, s.session LIMIT :limit
"""
_OF_TENANT = "s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant) AND"
_TOTALS = """
SELECT count(*), coalesce(sum(last + 1), 0), coalesce(sum(turns), 0), min(oldest), max(newest)
FROM sessions WHERE :tenant IS NULL OR tenant = (SELECT number FROM tenants WHERE tenant = :tenant)
"""
_EXPIRED = """
SELECT session FROM sessions
WHERE session IN (SELECT value FROM json_each(:sessions)) AND touched < :since AND NOT kept
"""
_MEMOS = packed_rows(["f.position", "f.name", "f.row", "f.turn"], ["f.memo"])
_THOUGHTS = packed_rows(["f.position", "b.position", "f.name", ROW_NAME], ["b.thoughts"])


def load_packed(name: str) -> str:
    """Return a query for index entries, whose memos and thoughts come packed."""
    text = load(name).replace("{memos}", _MEMOS).replace("{thoughts}", _THOUGHTS)
    return text.replace("{row}", ROW_NAME)


_find = load_packed("find_entries.sql").replace("{max}", str(MAX_CANDIDATES))
_continued = load("continued.sql")
_depths = msgspec.json.Decoder(dict[str, int])
_quarantines = msgspec.json.Decoder(list[tuple[int, str]])
_positions = msgspec.json.Decoder(tuple[int, ...])


class EventRow(msgspec.Struct, frozen=True):
    """An event, its position among all events, and its tenant."""

    position: int
    tenant: str
    event: Event


class EventRows(msgspec.Struct, frozen=True):
    """The events of some rows, and whether there may be more rows."""

    events: list[EventRow]
    more: bool
    position: int = 0  # of the last row


def _unpack(db: Connection, value: bytes | None, limit: int) -> EventRows:
    events: list[EventRow] = []
    rows = position = 0
    for position, *about, tenant, session, row, thoughts, said in unpacked(value, 2):
        place = row_place(tenant, session, row)
        rows += 1
        with suppress(KeyGone):  # the tenant was deleted, or is being deleted
            found = _events(db, about, place, thoughts, said)
            start = position - len(found) + 1
            events += [EventRow(at, tenant, event) for at, event in enumerate(found, start)]
    return EventRows(events, rows == limit, position)


def _events(
    db: Connection, about: Sequence[Any], place: RowPlace, thoughts: bytes, said: bytes
) -> list[Event]:
    """Return the events of a row; where it is damaged, what stands for them.

    `about` it are known the number of its first event, how many they are, and their turn.
    """
    first, count, turn = about
    try:
        return open_events(first, thoughts, said, place, db.cipher)
    except Damaged as error:
        db.damage.note(place.session, error)
    try:
        return open_events(first, None, said, place, db.cipher)  # only thoughts are damaged
    except Damaged:
        return damaged_events(place.session, first, count, turn)


def of_session(db: Connection, session: str, after: int, limit: int = PAGE) -> EventRows:
    """Return a page of a session's events: those of `limit` rows."""
    values = {"session": session, "after": after, "limit": limit}
    found = _unpack(db, db.execute(_OF_SESSION, values).fetchone()[0], limit)
    events = [row for row in found.events if row.event.seq > after]
    return EventRows(events, found.more, found.position)


def demands_all(db: Connection, after: int, kinds: int = ALL_KINDS, limit: int = PAGE) -> EventRows:
    """Return a page of all sessions' events from a position on: those of `limit` rows."""
    values = {"after": after, "kinds": kinds, "limit": limit}
    found = _unpack(db, db.execute(_OF_ALL, values).fetchone()[0], limit)
    events = [row for row in found.events if row.position > after]
    return EventRows(events, found.more, found.position)


def position(db: Connection) -> int:
    """Return the last position that was ever given to an event."""
    return int(db.execute(_NEWEST).fetchone()[0])


def history(
    db: Connection,
    types: Collection[str] | None,
    since: float,
    after: int,
    limit: int,
) -> EventPage:
    """Return a page of the events of some types, of all sessions."""
    if types is not None and not types:  # nothing is asked for but the position
        return EventPage(position=position(db))
    db.execute("BEGIN")
    try:
        return history_page(db, types, after or _written_before(db, since, position(db)), limit)
    finally:
        db.execute("ROLLBACK")


def history_page(
    db: Connection, types: Collection[str] | None, after: int, limit: int
) -> EventPage:
    """Return a page of the events after a position; runs inside a transaction."""
    newest = position(db)
    kinds = ALL_KINDS if types is None else kinds_of(types)
    events: list[Event] = []
    row, more = after, True
    while more:
        page = demands_all(db, row, kinds, min(PAGE, max(limit, 0) - len(events) + 1))
        for found in page.events:
            if found.position <= after or (types is not None and found.event.type not in types):
                continue
            if len(events) >= max(limit, 0):
                return EventPage(events=events, position=after, more=True)
            events.append(found.event)
            after = found.position
        row, more = page.position, page.more
    return EventPage(events=events, position=newest)


def _written_before(db: Connection, since: float, newest: int) -> int:
    """Return a position before which events are older; they are written about in order of time."""
    low, high = 0, newest
    while low < high:
        middle = (low + high) // 2
        found = db.execute(
            "SELECT began FROM batches WHERE position > ? AND count > 0 ORDER BY position LIMIT 1",
            (middle,),
        ).fetchone()
        if found is not None and found[0] < since:
            low = middle + 1
        else:
            high = middle
    return low


def read(db: Connection, session: str, after: int, limit: int | None) -> list[Event]:
    """Return a session's events, read in pages within one transaction."""
    events: list[Event] = []
    more = limit is None or limit > 0
    db.execute("BEGIN")
    try:
        while more:
            size = PAGE if limit is None else min(PAGE, limit - len(events))
            page = of_session(db, session, after, size)
            events += [row.event for row in page.events]
            more = page.more and (limit is None or len(events) < limit)
            after = events[-1].seq if events else after
    finally:
        db.execute("ROLLBACK")
    return events if limit is None else events[: max(limit, 0)]


# -- the index -------------------------------------------------------------------------------


def find(db: Connection, tenant: str, keys: Sequence[bytes]) -> dict[bytes, list[IndexEntry]]:
    """Return index entries by key; usually one statement for all keys of a request."""
    found: dict[bytes, list[IndexEntry]] = {}
    unique = list(dict.fromkeys(keys))
    for start in range(0, len(unique), MAX_KEYS):
        found |= _find_some(db, tenant, unique[start : start + MAX_KEYS])
    return found


def expired(db: Connection, sessions: Sequence[str], since: float) -> set[str]:
    """Return which of these sessions nobody has used since, and nobody has asked to keep."""
    values = {"sessions": msgspec.json.encode(sessions).decode(), "since": since}
    return {session for (session,) in db.execute(_EXPIRED, values).fetchall()}


def _find_some(db: Connection, tenant: str, keys: Sequence[bytes]) -> dict[bytes, list[IndexEntry]]:
    while True:
        names = db.cipher.asked(tenant, keys, check=False)
        statement = statements.widened(_find, "(?)", statements.width(len(names)))
        values = [tenant, *statements.padded(list(map(bytearray, names)))]
        sealing, hits, *found = db.execute(statement, values).fetchone()
        if key_tables.is_current(db, sealing):  # else the names were blinded with other keys
            break
    entries = unpack_entries(db, tenant, *found)
    filed: dict[bytes, list[int]] = {}
    for hit in hits.split("\n") if hits else ():
        name, number = hit.split(" ")
        if int(number) in entries:  # else the key leads to no entry: `prune_index` deletes it
            filed.setdefault(names[bytes.fromhex(name)], []).append(int(number))
    return {
        key: [entries[number] for number in sorted(filed[key], reverse=True)[:MAX_CANDIDATES]]
        for key in keys
        if key in filed
    }


def continued(db: Connection, tenant: str, turns: Sequence[str]) -> dict[str, int]:
    """Return how far turns were continued; usually one statement for all turns of a request."""
    found: dict[str, int] = {}
    unique = list(dict.fromkeys(turns))
    for start in range(0, len(unique), MAX_KEYS):
        some = unique[start : start + MAX_KEYS]
        statement = statements.widened(_continued, "(?)", statements.width(len(some)))
        (packed,) = db.execute(statement, [tenant, *statements.padded(some)]).fetchone()
        found |= _depths.decode(packed)
    return found


def unpack_entries(
    db: Connection, tenant: str, memos: bytes | None, thoughts: bytes | None, quarantines: str
) -> dict[int, IndexEntry]:
    """Return packed index entries by position, with their thoughts and quarantines."""
    rows: dict[int, list[tuple[int, RowPlace, bytes]]] = {}
    for number, position, session, row, value in unpacked(thoughts, 1):
        rows.setdefault(number, []).append((position, row_place(tenant, session, row), value))
    refused: dict[int, list[rules.QuarantineRecord]] = {}
    for number, positions in _quarantines.decode(quarantines):
        record = rules.QuarantineRecord("", _positions.decode(positions) if positions else ())
        refused.setdefault(number, []).append(record)
    entries: dict[int, IndexEntry] = {}
    for number, session, row, turn, memo in unpacked(memos, 1):
        place = row_place(tenant, session, row)
        try:
            entries[number] = rules.with_thoughts(
                open_entry(memo, place, db.cipher),
                reasoning(db, sorted(rows.get(number, ()))),
                refused.get(number, ()),
            )
        except KeyGone:  # the tenant was deleted, or is being deleted
            continue
        except Damaged as error:
            db.damage.note(place.session, error)
            entries[number] = damaged_entry(place.session, turn)
    return entries


def reasoning(
    db: Connection, rows: Iterable[tuple[int, RowPlace, bytes]]
) -> list[tuple[int, str]] | None:
    """Return the thoughts of rows; None where some of them are damaged."""
    found: list[tuple[int, str]] = []
    for _, place, thoughts in rows:
        try:
            found += open_thoughts(thoughts, place, db.cipher)
        except Damaged as error:
            db.damage.note(place.session, error)
            return None
    return found


# -- listings and statistics -----------------------------------------------------------------


def sessions(
    db: Connection, tenant: str | None, limit: int, before: float | None
) -> list[SessionSummary]:
    """Return sessions, the most recently touched first."""
    statement = _SESSIONS.format(of_tenant="" if tenant is None else _OF_TENANT)
    last = float("inf") if before is None else before
    values = {"tenant": tenant, "before": last, "limit": max(limit, 0)}
    return [
        SessionSummary(
            session=session, tenant=owner, created=created, touched=touched, events=count
        )
        for session, owner, created, touched, count in db.execute(statement, values).fetchall()
    ]


def totals(db: Connection, tenant: str | None) -> tuple[Any, ...]:
    """Return how many sessions, events and turns there are, and when the first and last was."""
    return tuple(db.execute(_TOTALS, {"tenant": tenant}).fetchone())
