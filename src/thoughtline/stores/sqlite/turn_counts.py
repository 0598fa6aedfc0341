"""What became of thoughts per interval, counted from the log in slices.

A slice is counted by a reader, and added by the writer together with how far it got (`summarised`):
so a crash loses nothing, and several processes may do it at once. What this process has written
itself is counted without reading it (`fresh_counts`).
Readers add what is not counted yet. Deleting sessions does not change what happened.
"""

from collections.abc import Mapping
from functools import partial

import msgspec
from msgspec import Struct

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.events import TurnStarted
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
from thoughtline.stores.row import PLAIN, STARTED, kinds_of, open_events, open_said, unpack_said
from thoughtline.stores.sealing.envelope import is_sealed
from thoughtline.stores.sqlite import queries
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, row_place
from thoughtline.stores.sqlite.summaries import ADVANCE, position

ROWS, PAGE = 1_000, 100
"""Rows in one slice, and how many of them are read at once."""
MAX_POSITION = (1 << 63) - 1
_KINDS = kinds_of(TYPES)

_ROWS_OF_TURNS = """
SELECT json_group_array(json_array(position, first, length(said), tenant, session, row)),
    CAST(group_concat(said, '') AS BLOB)
FROM (
    SELECT b.position, b.first, t.tenant, s.session, {ROW_NAME} AS row, b.said
    FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    CROSS JOIN tenants AS t ON t.number = s.tenant
    WHERE b.position > ? AND b.position <= ? AND b.kinds & ? ORDER BY b.position LIMIT ?
)
""".replace("{ROW_NAME}", ROW_NAME)

_COUNTS = """
SELECT json_group_array(json_array(at, provider, model, json(counts))) FROM (
    SELECT at, provider, model, json_group_object(name, count) AS counts FROM (
        SELECT t.at / :seconds * :seconds AS at, t.provider, t.model,
            one.key AS name, sum(one.value) AS count
        FROM turn_counts AS t CROSS JOIN json_each(t.counts) AS one
        WHERE t.seconds = :length AND t.at >= :since GROUP BY 1, 2, 3, 4
    ) GROUP BY at, provider, model
)
"""
_COUNTED = """
SELECT counts FROM turn_counts WHERE seconds = ? AND at = ? AND provider = ? AND model = ?
"""
_COUNT = "INSERT OR REPLACE INTO turn_counts VALUES (?, ?, ?, ?, ?)"
_EXPIRE = "DELETE FROM turn_counts WHERE seconds = ? AND at < ?"
_STARTED = """
SELECT b.first, t.tenant, s.session, {row}, b.said
FROM sessions AS s CROSS JOIN tenants AS t ON t.number = s.tenant
CROSS JOIN batches AS b ON b.turn = ? AND b.session = s.number
WHERE s.session = ? AND b.first < ? AND b.kinds & ?
ORDER BY b.first DESC LIMIT 1
""".replace("{row}", ROW_NAME)
_Head = tuple[int, int, int, str, str, str]
"""Position, first event, bytes of content, tenant, session and name of a row."""
_heads = msgspec.json.Decoder(list[_Head])
_encode = msgspec.json.Encoder().encode
_counts = msgspec.json.Decoder(dict[str, int])
_rows = msgspec.json.Decoder(list[tuple[int, str, str, dict[str, int]]])


class EventCounts(Struct, frozen=True):
    """The counts of the events between two positions."""

    after: int
    last: int
    counts: Mapping[CountKey, dict[str, int]]
    more: bool


def count_events(db: Connection, until: int = MAX_POSITION) -> EventCounts:
    """Count the next starts and ends of turns, up to a position, without writing anything."""
    after = position(db, "events")
    last, left = min(queries.position(db), until), ROWS
    counter = TurnCounter(partial(_find_start, db))
    row = after
    while left > 0 and row < last:
        size = min(PAGE, left)
        heads, content = db.execute(_ROWS_OF_TURNS, (row, last, _KINDS, size)).fetchone()
        found = _heads.decode(heads)
        _count_rows(db, counter, found, content or b"", after)
        if len(found) < size:
            break
        row = found[-1][0]
        left -= size
    else:
        return EventCounts(after, row, counter.counts, more=row < last)
    return EventCounts(after, last, counter.counts, more=False)


def _count_rows(
    db: Connection, counter: TurnCounter, heads: list[_Head], content: bytes, after: int
) -> None:
    begin, plain = 0, db.cipher is PLAIN
    for last, first, size, tenant, session, row in heads:
        said = content[begin : begin + size]
        begin += size
        place = row_place(tenant, session, row)
        try:
            if not plain or is_sealed(said):
                said = open_said(said, place, db.cipher)
            events = unpack_said(said, place)
        except KeyGone:  # the tenant was deleted, or is being deleted
            continue
        except Damaged as error:
            db.damage.note(place.session, error)
            continue
        if last - len(events) < after:  # some of it is counted
            skip = after - last + len(events)
            counter.add_row(session, first + skip, events[skip:])
        else:
            counter.add_row(session, first, events)


def read_slice(db: Connection, until: int = MAX_POSITION) -> EventCounts:
    """Count the next events, in a transaction of its own."""
    db.execute("BEGIN")
    try:
        return count_events(db, until)
    finally:
        db.execute("ROLLBACK")


def _find_start(db: Connection, session: str, turn: str, seq: int) -> TurnStarted | None:
    found = db.execute(_STARTED, (turn, session, seq, STARTED)).fetchone()
    if found is None:
        return None
    first, *place, said = found
    try:
        events = open_events(first, None, said, row_place(*place), db.cipher)
    except (KeyGone, Damaged):
        return None
    for event in events:
        if event.type == "turn_started" and event.seq < seq:
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
        values = {"seconds": seconds, "length": length, "since": since}
        (packed,) = db.execute(_COUNTS, values).fetchone()
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
