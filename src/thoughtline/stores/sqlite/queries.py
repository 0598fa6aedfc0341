"""What is read. Each function runs in a reader's thread, with a connection of its own.

Rows come back packed into one text per page (see `bulk` for why): the envelope as a JSON array,
then the data as it is, with a separator that no JSON text contains.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.base import CANDIDATES, Chapter, Stats, Summary
from thoughtline.stores.sqlite import bulk, rows
from thoughtline.stores.sqlite.migrations import sql

PAGE = 500
"""Events that are fetched at once."""

NAMES = 256
"""Names that are looked up in one statement."""

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
WHERE {whose} s.touched < :before ORDER BY s.touched DESC, s.session LIMIT :limit
"""
_WHOSE = "s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant) AND"
_TOTALS = """
SELECT count(*), coalesce(sum(last + 1), 0), coalesce(sum(turns), 0), min(oldest), max(newest)
FROM sessions WHERE :tenant IS NULL OR tenant = (SELECT number FROM tenants WHERE tenant = :tenant)
"""
_FILINGS = """
SELECT provider, model, sum(entries), sum(chars), min(at), max(at) FROM memories
WHERE entries > 0 AND (:tenant IS NULL OR session IN (
    SELECT number FROM sessions
    WHERE tenant = (SELECT number FROM tenants WHERE tenant = :tenant)
))
GROUP BY provider, model
"""
_find = sql("find.sql").replace("{most}", str(CANDIDATES))
_head = msgspec.json.Decoder(tuple[int, str, str, int, str, str, str, str, int])


class Row(msgspec.Struct, frozen=True):
    """An event, where it stands among all of them, and whose it is."""

    position: int
    tenant: str
    event: Event


def _unpack(packed: str | None) -> Iterator[Row]:
    pieces = packed.split(facts.SEPARATOR) if packed else []
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
        yield Row(position, tenant, event)


def of_session(db: sqlite3.Connection, session: str, after: int, limit: int) -> list[Row]:
    """One page of a session's events."""
    (packed,) = db.execute(_OF_SESSION, (session, after, limit)).fetchone()
    return list(_unpack(packed))


def of_all(db: sqlite3.Connection, after: int, limit: int = PAGE) -> list[Row]:
    """One page of the events of all sessions, from a position on."""
    (packed,) = db.execute(_OF_ALL, (after, limit)).fetchone()
    return list(_unpack(packed))


def position(db: sqlite3.Connection) -> int:
    """The last position that was ever given to an event."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def history(
    db: sqlite3.Connection,
    types: Collection[str] | None,
    since: float,
    after: int,
    limit: int,
) -> Chapter:
    """One page of the events of some types, of all sessions."""
    db.execute("BEGIN")
    try:
        newest = position(db)
        after = after or _written_before(db, since, newest)
        names = msgspec.json.encode(list(types)).decode() if types is not None else None
        (packed,) = db.execute(_HISTORY, (after, names, max(limit, 0) + 1)).fetchone()
    finally:
        db.execute("ROLLBACK")
    rows = list(_unpack(packed))
    more = len(rows) > max(limit, 0)
    rows = rows[: max(limit, 0)]
    last = (rows[-1].position if rows else after) if more else newest
    return Chapter(events=[row.event for row in rows], position=last, more=more)


def _written_before(db: sqlite3.Connection, since: float, newest: int) -> int:
    """A position before which nothing is that young; events are written about in order of time."""
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
    """A session's events, page by page, as they were at one moment."""
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


# -- the archive -----------------------------------------------------------------------------


def find(db: sqlite3.Connection, tenant: str, names: Sequence[bytes]) -> dict[bytes, list[Memory]]:
    """Memories by name; one statement for as many names as a request has."""
    found: dict[bytes, list[Memory]] = {}
    asked = list(dict.fromkeys(names))
    for start in range(0, len(asked), NAMES):
        found |= _find_some(db, tenant, asked[start : start + NAMES])
    return found


def _find_some(
    db: sqlite3.Connection, tenant: str, names: Sequence[bytes]
) -> dict[bytes, list[Memory]]:
    statement = bulk.widened(_find, "(?)", bulk.width(len(names)))
    values = [tenant, *bulk.padded(names)]
    hits, memos, reasoning, refusals = db.execute(statement, values).fetchone()
    thoughts: dict[str, list[tuple[int, int, str]]] = {}
    for memory, position, version, data in _split(reasoning, 3):
        thoughts.setdefault(memory, []).append((int(position), int(version), data))
    refused: dict[str, list[facts.Refusal]] = {}
    for memory, data in _split(refusals, 1):
        if said := facts.refusal(data):
            refused.setdefault(memory, []).append(said)
    memories = {
        number: facts.recall(
            rows.memos.decode(memo),
            ((version, data) for _, version, data in sorted(thoughts.get(number, ()))),
            refused.get(number, ()),
        )
        for number, memo in _split(memos, 1)
    }
    filed: dict[bytes, list[int]] = {}
    for name, number in _split(hits, 1):
        filed.setdefault(bytes.fromhex(name), []).append(int(number))
    return {
        name: [memories[str(number)] for number in sorted(filed[name], reverse=True)]
        for name in names
        if name in filed
    }


def _split(packed: str | None, spaces: int) -> Iterable[list[str]]:
    """Packed rows, each as so many words and the rest."""
    return (piece.split(" ", spaces) for piece in packed.split(facts.SEPARATOR)) if packed else ()


# -- for people ------------------------------------------------------------------------------


def sessions(
    db: sqlite3.Connection, tenant: str | None, limit: int, before: float | None
) -> list[Summary]:
    """Sessions, the most recently touched first."""
    statement = _SESSIONS.format(whose="" if tenant is None else _WHOSE)
    last = float("inf") if before is None else before
    values = {"tenant": tenant, "before": last, "limit": max(limit, 0)}
    return [
        Summary(session=session, tenant=owner, created=created, touched=touched, events=count)
        for session, owner, created, touched, count in db.execute(statement, values).fetchall()
    ]


def stats(db: sqlite3.Connection, tenant: str | None) -> Stats:
    """Counts and sums, over sessions and memories: no event is looked at."""
    values = {"tenant": tenant}
    count, events, turns, oldest, newest = db.execute(_TOTALS, values).fetchone()
    return facts.stats(
        sessions=count,
        events=events,
        turns=turns,
        span=(oldest, newest),
        filings=[facts.Filing(*row) for row in db.execute(_FILINGS, values).fetchall()],
    )
