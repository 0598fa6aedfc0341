"""What became of thoughts per interval, counted from the log in slices.

A slice is counted by a reader, and added by the writer together with how far it got (`summarised`):
so appends pay nothing for it, a crash loses nothing, and several processes may do it at once.
Readers add what is not counted yet. Deleting sessions does not change what happened.
"""

import sqlite3

import msgspec
from msgspec import Struct

from thoughtline.errors import Unreadable
from thoughtline.log.events import Event, TurnStarted, decode
from thoughtline.log.turn_counts import (
    KEPT,
    TYPES,
    CountKey,
    TurnCounter,
    TurnCounts,
    add_up,
    kept_length,
)
from thoughtline.stores.base import TurnCountPage
from thoughtline.stores.sqlite import queries
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
SELECT e.version, e.data FROM events AS e
WHERE e.session = (SELECT number FROM sessions WHERE session = ?) AND e.seq < ?
  AND e.type = 'turn_started' AND e.id = ?
ORDER BY e.seq DESC LIMIT 1
"""
_encode = msgspec.json.Encoder().encode
_counts = msgspec.json.Decoder(dict[str, int])
_rows = msgspec.json.Decoder(list[tuple[int, str, str, dict[str, int]]])


class EventCounts(Struct, frozen=True):
    """The counts of the events between two positions."""

    after: int
    last: int
    counts: dict[CountKey, dict[str, int]]
    more: bool


def count_events(db: sqlite3.Connection, limit: int = EVENTS) -> EventCounts:
    """Count the next starts and ends of turns, without writing anything."""
    after = position(db, "events")
    page = queries.history_page(db, TYPES, after, limit)
    counter = TurnCounter(lambda event: _find_start(db, event))
    for event in page.events:
        counter.add(event)
    counts = {key: dict(counts) for key, counts in counter.counts.items()}
    return EventCounts(after, page.position, counts, page.more)


def read_slice(db: sqlite3.Connection) -> EventCounts:
    """Count the next events, in a transaction of its own."""
    db.execute("BEGIN")
    try:
        return count_events(db)
    finally:
        db.execute("ROLLBACK")


def _find_start(db: sqlite3.Connection, ended: Event) -> TurnStarted | None:
    found = db.execute(_STARTED, (ended.session, ended.seq, ended.parent)).fetchone()
    if found is None:
        return None
    try:
        body = decode("turn_started", *found)
    except Unreadable:
        return None
    return body if isinstance(body, TurnStarted) else None


def add_counts(db: sqlite3.Connection, counted: EventCounts, now: float) -> bool:
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


def turn_counts(db: sqlite3.Connection, seconds: int, since: float) -> TurnCountPage:
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
