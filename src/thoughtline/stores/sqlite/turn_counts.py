"""What became of thoughts per interval, counted from the log in slices.

A slice is counted by a reader, and added by the writer together with how far it got (`summarised`):
so appends pay nothing for it, a crash loses nothing, and several processes may do it at once.
Readers add what is not counted yet. Deleting sessions does not change what happened.
"""

import msgspec
from msgspec import Struct

from thoughtline.errors import KeyGone
from thoughtline.log.events import Event, TurnStarted
from thoughtline.log.turn_counts import (
    KEPT,
    TYPES,
    CountKey,
    TurnCounter,
    TurnCounts,
    add_up,
    body_of,
    kept_length,
)
from thoughtline.stores.base import TurnCountPage
from thoughtline.stores.row import STARTED, open_events
from thoughtline.stores.sqlite import queries
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, row_place
from thoughtline.stores.sqlite.summaries import ADVANCE, position

EVENTS = 1_000
"""Starts and ends of turns in one slice."""

_COUNTS = """
SELECT json_group_array(json_array(at, provider, model, json(counts)))
FROM turn_counts WHERE seconds = ? AND at >= ?
"""
_COUNTED = """
SELECT counts FROM turn_counts WHERE seconds = ? AND at = ? AND provider = ? AND model = ?
"""
_COUNT = "INSERT OR REPLACE INTO turn_counts VALUES (?, ?, ?, ?, ?)"
_EXPIRE = "DELETE FROM turn_counts WHERE seconds = ? AND at < ?"
_STARTED = """
SELECT b.first, t.tenant, s.session, {row}, b.thoughts, b.said
FROM sessions AS s CROSS JOIN tenants AS t ON t.number = s.tenant
CROSS JOIN batches AS b ON b.turn = ? AND b.session = s.number
WHERE s.session = ? AND b.first < ? AND b.kinds & ?
ORDER BY b.first DESC LIMIT 1
""".replace("{row}", ROW_NAME)
_encode = msgspec.json.Encoder().encode
_counts = msgspec.json.Decoder(dict[str, int])
_rows = msgspec.json.Decoder(list[tuple[int, str, str, dict[str, int]]])


class EventCounts(Struct, frozen=True):
    """The counts of the events between two positions."""

    after: int
    last: int
    counts: dict[CountKey, dict[str, int]]
    more: bool


def count_events(db: Connection, limit: int = EVENTS) -> EventCounts:
    """Count the next starts and ends of turns, without writing anything."""
    after = position(db, "events")
    page = queries.history_page(db, TYPES, after, limit)
    counter = TurnCounter(lambda event: _find_start(db, event))
    for event in page.events:
        counter.add(event)
    counts = {key: dict(counts) for key, counts in counter.counts.items()}
    return EventCounts(after, page.position, counts, page.more)


def read_slice(db: Connection) -> EventCounts:
    """Count the next events, in a transaction of its own."""
    db.execute("BEGIN")
    try:
        return count_events(db)
    finally:
        db.execute("ROLLBACK")


def _find_start(db: Connection, ended: Event) -> TurnStarted | None:
    found = db.execute(_STARTED, (ended.parent, ended.session, ended.seq, STARTED)).fetchone()
    if found is None:
        return None
    first, *place, thoughts, said = found
    try:
        events = open_events(first, thoughts, said, row_place(*place), db.cipher)
    except KeyGone:
        return None
    for event in events:
        if event.type == "turn_started" and event.seq < ended.seq:
            body = body_of(event)
            return body if isinstance(body, TurnStarted) else None
    return None


def add_counts(db: Connection, counted: EventCounts, now: float) -> bool:
    """Add counts of events, unless somebody else has; whether there may be more."""
    if not db.execute(ADVANCE, (counted.last, "events", counted.after)).rowcount:
        return True
    for key, more in counted.counts.items():
        seconds, at, *_ = key
        if at + seconds < now - KEPT[seconds]:
            continue
        found = db.execute(_COUNTED, key).fetchone()
        known = _counts.decode(found[0]) if found else {}
        db.execute(_COUNT, (*key, _encode(_sum(known, more)).decode()))
    for seconds, kept in KEPT.items():
        db.execute(_EXPIRE, (seconds, now - kept))
    return counted.more


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def turn_counts(db: Connection, seconds: int, since: float) -> TurnCountPage:
    """Return the counts of intervals of this length, with events that are not counted yet."""
    length = kept_length(seconds)
    db.execute("BEGIN")
    try:
        (packed,) = db.execute(_COUNTS, (length, since)).fetchone()
        rest = count_events(db)
    finally:
        db.execute("ROLLBACK")
    found = _rows.decode(packed)
    found += [
        (at, provider, model, counts)
        for (kept, at, provider, model), counts in rest.counts.items()
        if kept == length and at >= since
    ]
    kept = (
        TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
        for at, provider, model, counts in found
    )
    return TurnCountPage(counts=add_up(kept, seconds), complete=not rest.more)
