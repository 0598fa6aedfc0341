"""What became of thoughts per interval, counted from the log in slices by the node that is first.

A slice is added together with how far it got, so it is counted once. Readers add what is not
counted yet. Deleting sessions does not change what happened.
"""

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

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
from thoughtline.stores.postgres import queries
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.rows import kinds_mask
from thoughtline.stores.postgres.sealed_rows import read_events
from thoughtline.stores.postgres.seals import Seals

EVENTS = 1_000
"""Starts and ends of turns in one slice."""

_CURSOR = "SELECT cursor FROM jobs WHERE name = 'turn counts'"
_COUNTS = """
SELECT (SELECT cursor FROM jobs WHERE name = 'turn counts') AS cursor, t.*
FROM (VALUES (1)) AS one LEFT JOIN (
    SELECT at / $3 * $3 AS at, provider, model, name, sum(count)::bigint AS count
    FROM turn_counts WHERE seconds = $1 AND at >= $2 GROUP BY 1, 2, 3, 4
) AS t ON true
"""
_ADD = "SELECT add_counts($1, $2, $3, $4, $5, $6, $7, $8)"
_EXPIRE = "DELETE FROM turn_counts WHERE seconds = $1 AND at < $2"
_STARTS = """
SELECT tenant, session, id, nth, entry, turn, first, count, said FROM batches
WHERE session = ANY ($1) AND kinds & $2 <> 0 ORDER BY session, first DESC
"""


class _Slice(Struct, frozen=True):
    """The counts of the events between two positions."""

    after: int
    last: int
    counts: dict[CountKey, dict[str, int]]
    more: bool


async def _count(seals: Seals, own: tuple[int, int], after: int) -> _Slice:
    page = await queries.history(seals, TYPES, after=after, limit=EVENTS, own=own)
    events = [one.event for one in page.events]
    starts = await _find_starts(seals, events)
    counter = TurnCounter(lambda session, turn, _: starts.get((session, turn)))
    for event in events:
        counter.add(event)
    counts = {key: dict(counts) for key, counts in counter.counts.items()}
    return _Slice(after, page.position, counts, page.more)


async def _find_starts(seals: Seals, events: list[Event]) -> Mapping[tuple[str, str], TurnStarted]:
    """Return the starts of the turns that end in this slice and began before it."""
    begun = {(event.session, event.id) for event in events if event.type == "turn_started"}
    ended = {(event.session, event.parent) for event in events if event.type == "turn_ended"}
    found: dict[tuple[str, str], TurnStarted] = {}
    wanted = ended - begun
    if not wanted:
        return found
    sessions = sorted({session.encode() for session, _ in wanted})
    rows = (await seals.read(_STARTS, sessions, kinds_mask(["turn_started"]))).opened
    for row in rows:
        for event in read_events(row, seals.damage):
            place = (event.session, event.id)
            if event.type == "turn_started" and place in wanted and place not in found:
                body = body_of(event)
                if isinstance(body, TurnStarted):
                    found[place] = body
    return found


async def summarise(
    connections: Connections, seals: Seals, own: tuple[int, int], now: float
) -> None:
    """Count what was not counted yet, and drop the counts of long ago."""
    while True:
        rows = await connections.read(_CURSOR)
        part = await _count(seals, own, int(rows[0][0]) if rows else 0)
        if part.last == part.after:
            break
        counted = [
            (*key, name, count)
            for key, counts in part.counts.items()
            for name, count in counts.items()
        ]
        await connections.write(
            _ADD,
            Decimal(part.after),
            Decimal(part.last),
            [row[0] for row in counted],
            [row[1] for row in counted],
            [row[2].encode() for row in counted],
            [row[3].encode() for row in counted],
            [row[4] for row in counted],
            [row[5] for row in counted],
        )
        if not part.more:
            break
    for seconds, kept in KEPT.items():
        await connections.write(_EXPIRE, seconds, int(now - kept))


async def turn_counts(
    connections: Connections, seals: Seals, own: tuple[int, int], seconds: int, since: float
) -> TurnCountPage:
    """Return the counts of intervals of this length, with events that are not counted yet."""
    length = kept_length(seconds)
    rows = await connections.read(_COUNTS, length, int(since), seconds)
    rest = await _count(seals, own, int(rows[0]["cursor"] or 0))
    sums: dict[tuple[int, str, str], dict[str, int]] = {}
    for row in rows:
        if row["at"] is not None:
            key = (row["at"], row["provider"].decode(), row["model"].decode())
            sums.setdefault(key, {})[row["name"]] = row["count"]
    found = [
        TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
        for (at, provider, model), counts in sums.items()
    ]
    found += [
        TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
        for (kept, at, provider, model), counts in rest.counts.items()
        if kept == length and at >= since
    ]
    return TurnCountPage(counts=add_up(found, seconds), complete=not rest.more)
