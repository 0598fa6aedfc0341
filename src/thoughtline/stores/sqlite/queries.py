"""The queries of a store. Each function runs in a reader's thread, with a connection of its own.

Rows come back packed into one text per page (see `statements` for why): the envelope as a JSON
array, then the data as it is, with a separator that no JSON text contains.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from thoughtline.log.events import Event
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import MAX_CANDIDATES, EventPage, SessionSummary, StoreStats
from thoughtline.stores.sqlite import rows, statements
from thoughtline.stores.sqlite.statements import load

PAGE = 500
"""Events that are fetched at once."""

MAX_KEYS = 256
"""Keys that are looked up in one statement."""

_PACKED = """
SELECT group_concat(line, char(30)) FROM (
    SELECT json_array(
        e.position, t.tenant, s.session, e.seq, e.id, e.parent, e.at, e.type, e.version
    ) || char(30) || e.data AS line
    FROM {source} ORDER BY {order} LIMIT ?
)
"""
_OF_SESSION = _PACKED.format(
    source="""sessions AS s CROSS JOIN tenants AS t ON t.number = s.tenant
    CROSS JOIN events AS e ON e.session = s.number WHERE s.session = ? AND e.seq > ?""",
    order="e.seq",
)
_OF_ALL = _PACKED.format(
    source="""events AS e CROSS JOIN sessions AS s ON s.number = e.session
    CROSS JOIN tenants AS t ON t.number = s.tenant WHERE e.position > ?""",
    order="e.position",
)
_HISTORY = _PACKED.format(
    source="""events AS e CROSS JOIN sessions AS s ON s.number = e.session
    CROSS JOIN tenants AS t ON t.number = s.tenant
    WHERE e.position > ?1 AND (?2 IS NULL OR e.type IN (SELECT value FROM json_each(?2)))""",
    order="e.position",
)
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
_ENTRY_SUMS = load("sum_entries.sql")
_ENTRY_TIMES = load("entry_times.sql")
_EXPIRED = """
SELECT session FROM sessions
WHERE session IN (SELECT value FROM json_each(:sessions)) AND touched < :since AND NOT kept
"""
_find = load("find_entries.sql").replace("{max}", str(MAX_CANDIDATES))
_continued = load("continued.sql")
_depths = msgspec.json.Decoder(dict[str, int])
_head = msgspec.json.Decoder(tuple[int, str, str, int, str, str, str, str, int])


class EventRow(msgspec.Struct, frozen=True):
    """An event, its position among all events, and its tenant."""

    position: int
    tenant: str
    event: Event


def _unpack(packed: str | None) -> Iterator[EventRow]:
    pieces = packed.split(rules.SEPARATOR) if packed else []
    for head, data in zip(pieces[::2], pieces[1::2], strict=True):
        position, tenant, session, seq, id, parent, at, type, version = _head.decode(head)
        event = Event(
            session=session,
            seq=seq,
            id=id,
            parent=parent,
            at=float(at),
            type=type,
            version=version,
            data=data,
        )
        yield EventRow(position, tenant, event)


def of_session(db: sqlite3.Connection, session: str, after: int, limit: int) -> list[EventRow]:
    """Return a page of a session's events."""
    (packed,) = db.execute(_OF_SESSION, (session, after, limit)).fetchone()
    return list(_unpack(packed))


def of_all(db: sqlite3.Connection, after: int, limit: int = PAGE) -> list[EventRow]:
    """Return a page of the events of all sessions, from a position on."""
    (packed,) = db.execute(_OF_ALL, (after, limit)).fetchone()
    return list(_unpack(packed))


def position(db: sqlite3.Connection) -> int:
    """Return the last position that was ever given to an event."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def history(
    db: sqlite3.Connection,
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
    db: sqlite3.Connection, types: Collection[str] | None, after: int, limit: int
) -> EventPage:
    """Return a page of the events after a position; runs inside a transaction."""
    newest = position(db)
    listed = msgspec.json.encode(list(types)).decode() if types is not None else None
    (packed,) = db.execute(_HISTORY, (after, listed, max(limit, 0) + 1)).fetchone()
    rows = list(_unpack(packed))
    more = len(rows) > max(limit, 0)
    rows = rows[: max(limit, 0)]
    last = (rows[-1].position if rows else after) if more else newest
    return EventPage(events=[row.event for row in rows], position=last, more=more)


def _written_before(db: sqlite3.Connection, since: float, newest: int) -> int:
    """Return a position before which events are older; they are written about in order of time."""
    low, high = 0, newest
    while low < high:
        middle = (low + high) // 2
        found = db.execute(
            "SELECT at FROM events WHERE position > ? ORDER BY position LIMIT 1", (middle,)
        ).fetchone()
        if found is not None and float(found[0]) < since:
            low = middle + 1
        else:
            high = middle
    return low


def read(db: sqlite3.Connection, session: str, after: int, limit: int | None) -> list[Event]:
    """Return a session's events, read in pages within one transaction."""
    events: list[Event] = []
    db.execute("BEGIN")
    try:
        while limit is None or len(events) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(events))
            page = [row.event for row in of_session(db, session, after, size)]
            events += page
            if len(page) < size:
                break
            after = page[-1].seq
    finally:
        db.execute("ROLLBACK")
    return events


# -- the index -------------------------------------------------------------------------------


def find(
    db: sqlite3.Connection, tenant: str, keys: Sequence[bytes]
) -> dict[bytes, list[IndexEntry]]:
    """Return index entries by key; usually one statement for all keys of a request."""
    found: dict[bytes, list[IndexEntry]] = {}
    unique = list(dict.fromkeys(keys))
    for start in range(0, len(unique), MAX_KEYS):
        found |= _find_some(db, tenant, unique[start : start + MAX_KEYS])
    return found


def expired(db: sqlite3.Connection, sessions: Sequence[str], since: float) -> set[str]:
    """Return which of these sessions nobody has used since, and nobody has asked to keep."""
    values = {"sessions": msgspec.json.encode(sessions).decode(), "since": since}
    return {session for (session,) in db.execute(_EXPIRED, values).fetchall()}


def _find_some(
    db: sqlite3.Connection, tenant: str, keys: Sequence[bytes]
) -> dict[bytes, list[IndexEntry]]:
    statement = statements.widened(_find, "(?)", statements.width(len(keys)))
    values = [tenant, *statements.padded(keys)]
    hits, memos, reasoning, quarantines = db.execute(statement, values).fetchone()
    entries = unpack_entries(memos, reasoning, quarantines)
    filed: dict[bytes, list[int]] = {}
    for key, number in _split(hits, 1):
        if int(number) in entries:  # else the key leads to no entry: `prune_index` deletes it
            filed.setdefault(bytes.fromhex(key), []).append(int(number))
    return {
        key: [entries[number] for number in sorted(filed[key], reverse=True)]
        for key in keys
        if key in filed
    }


def continued(db: sqlite3.Connection, tenant: str, turns: Sequence[str]) -> dict[str, int]:
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
    memos: str | None, reasoning: str | None, quarantines: str | None
) -> dict[int, IndexEntry]:
    """Return packed index entries by number, with their packed thoughts and quarantines."""
    thoughts: dict[str, list[tuple[int, int, str]]] = {}
    for number, position, version, data in _split(reasoning, 3):
        thoughts.setdefault(number, []).append((int(position), int(version), data))
    refused: dict[str, list[rules.QuarantineRecord]] = {}
    for number, data in _split(quarantines, 1):
        if record := rules.read_quarantine(data):
            refused.setdefault(number, []).append(record)
    return {
        int(number): rules.with_thoughts(
            rows.entry_decoder.decode(memo),
            ((version, data) for _, version, data in sorted(thoughts.get(number, ()))),
            refused.get(number, ()),
        )
        for number, memo in _split(memos, 1)
    }


def _split(packed: str | None, spaces: int) -> Iterable[list[str]]:
    """Split packed rows at the first `spaces` spaces of each."""
    return (piece.split(" ", spaces) for piece in packed.split(rules.SEPARATOR)) if packed else ()


# -- listings and statistics -----------------------------------------------------------------


def sessions(
    db: sqlite3.Connection, tenant: str | None, limit: int, before: float | None
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


def stats(db: sqlite3.Connection, tenant: str | None, *, sessions: bool = True) -> StoreStats:
    """Return the statistics, from summaries and what is not summarised; sessions are counted."""
    values = {"tenant": tenant}
    db.execute("BEGIN")
    try:
        totals = db.execute(_TOTALS, values).fetchone() if sessions else (0, 0, 0, None, None)
        sums = db.execute(_ENTRY_SUMS, values).fetchall()
        first, last = db.execute(_ENTRY_TIMES, values).fetchone()
    finally:
        db.execute("ROLLBACK")
    count, events, turns, oldest, newest = totals
    return rules.make_stats(
        sessions=count,
        events=events,
        turns=turns,
        span=(oldest, newest),
        summaries=[
            rules.EntrySummary(provider, model, entries, chars, first, last)
            for provider, model, entries, chars in sums
        ],
    )
