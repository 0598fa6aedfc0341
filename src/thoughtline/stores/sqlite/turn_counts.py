"""The counts of turns in the file (see `stores/turn_counting.py`)."""

from collections.abc import Sequence

import msgspec

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.events import TurnStarted
from thoughtline.log.turn_counts import KEPT, TurnCounts, body_of, from_rows, kept_length
from thoughtline.stores.row import STARTED, open_events
from thoughtline.stores.sqlite import statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import ROW_NAME, row_place
from thoughtline.stores.turn_counting import CountRow, TurnCounting, TurnPlace

_COUNTS = """
SELECT json_group_array(json_array(at, provider, model, name, count)) FROM (
    SELECT at / :seconds * :seconds AS at, provider, model, name, sum(count) AS count
    FROM turn_counts WHERE seconds = :length AND at >= :since GROUP BY 1, 2, 3, 4
)
"""
_ADD = """
INSERT INTO turn_counts VALUES {slots}
ON CONFLICT DO UPDATE SET count = count + excluded.count
"""
_EXPIRE = "DELETE FROM turn_counts WHERE seconds = ? AND at < ?"
_STARTED = """
SELECT b.first, t.tenant, s.session, {row}, b.said
FROM sessions AS s CROSS JOIN tenants AS t ON t.number = s.tenant
CROSS JOIN batches AS b ON b.turn = ? AND b.session = s.number
WHERE s.session = ? AND b.kinds & ?
ORDER BY b.first DESC LIMIT 1
""".replace("{row}", ROW_NAME)
_rows = msgspec.json.Decoder(list[tuple[int, str, str, str, int]])


def take(db: Connection, counting: TurnCounting, now: float) -> list[CountRow]:
    """Return what was counted and is not in the file."""
    found = {place: _find_start(db, place) for place in counting.unknown}
    return counting.take({place: start for place, start in found.items() if start}, now)


def _find_start(db: Connection, place: TurnPlace) -> TurnStarted | None:
    session, turn = place
    found = db.execute(_STARTED, (turn, session, STARTED)).fetchone()
    if found is None:
        return None
    first, *names, said = found
    try:
        events = open_events(first, None, said, row_place(*names), db.cipher)
    except (KeyGone, Damaged):
        return None
    for event in events:
        if event.type == "turn_started" and isinstance(body := body_of(event), TurnStarted):
            return body
    return None


def add(db: Connection, rows: Sequence[CountRow], now: float) -> None:
    """Add counts to those in the file, and drop those of long ago."""
    if not rows:
        return
    slots = "(?, ?, ?, ?, ?, ?)"
    statements.execute(db, _ADD, slots, [value for row in rows for value in row])
    for seconds, kept in KEPT.items():
        db.execute(_EXPIRE, (seconds, now - kept))


def turn_counts(db: Connection, seconds: int, since: float) -> list[TurnCounts]:
    """Return the counts of intervals of this length."""
    values = {"seconds": seconds, "length": kept_length(seconds), "since": since}
    (packed,) = db.execute(_COUNTS, values).fetchone()
    return from_rows(_rows.decode(packed))
