"""Reading events and sessions: of one session by number, of all in the order of writing.

A position in the log is one large number: era, transaction and filing of a row, and how many of its
events were read. Positions of the same database rise with time, also after a failover.
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from math import inf
from typing import NamedTuple

import asyncpg

from thoughtline.log.events import Event
from thoughtline.stores.base import EventPage, SessionSummary
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import load
from thoughtline.stores.postgres.rows import kinds_mask
from thoughtline.stores.postgres.sealed_rows import Values, read_events
from thoughtline.stores.postgres.seals import Seals

PAGE = 200
"""Rows in one page of events."""

OWN_WAIT = 1.0
"""Seconds for which a page waits for what this process wrote, while another transaction runs."""

_HISTORY = load("history.sql")
_READ = """
SELECT tenant, session, id, nth, entry, turn, first, count, said, thoughts FROM batches
WHERE session = $1 AND first + count > $2 ORDER BY first, nth LIMIT $3
"""
_SESSIONS = """
SELECT session, tenant, created, touched, last FROM sessions
WHERE ($1::bytea IS NULL OR tenant = $1) AND ($2::float8 IS NULL OR touched < $2)
ORDER BY touched DESC, session LIMIT $3
"""
_TENANT = "SELECT tenant FROM sessions WHERE session = $1"
_EVERYTHING = (1 << 63) - 1


class LogPlace(NamedTuple):
    """A position in the log, by its parts."""

    era: int = 0
    xid: int = 0
    filed: int = 0
    events: int = 0  # of this row that come before the position

    def number(self) -> int:
        """Return the position as a number."""
        return ((self.era << 64 | self.xid) << 64 | self.filed) << 24 | self.events


def place(number: int) -> LogPlace:
    """Return the parts of a position."""
    number = max(number, 0)
    row = number >> 24
    return LogPlace(
        row >> 128, row >> 64 & (1 << 64) - 1, row & (1 << 64) - 1, number & (1 << 24) - 1
    )


class TenantEvent(NamedTuple):
    """An event with its tenant and its position."""

    event: Event
    tenant: str
    position: int


class LogPage(NamedTuple):
    """Events of all sessions, and where the next page begins."""

    events: list[TenantEvent]
    position: int
    more: bool


async def read(seals: Seals, session: str, after: int, limit: int | None) -> list[Event]:
    """Return the events of a session with a seq above `after`."""
    wanted = inf if limit is None else limit
    events: list[Event] = []
    while len(events) < wanted:
        rows, opened = await seals.read(_READ, session.encode(), after + 1, PAGE)
        for row in opened:
            some = read_events(row, seals.damage)
            events += [event for event in some if event.seq > after]
        if len(rows) < PAGE or not events:
            break
        after = events[-1].seq
    return events if limit is None else events[: max(limit, 0)]


async def owner(connections: Connections, session: str) -> str | None:
    """Return the tenant of a session; None: there is no such session."""
    rows = await connections.read(_TENANT, session.encode())
    return rows[0][0].decode() if rows else None


async def sessions(
    connections: Connections, tenant: str | None, limit: int, before: float | None
) -> list[SessionSummary]:
    """Return sessions, the most recently touched first."""
    of = None if tenant is None else tenant.encode()
    return summaries(await connections.read(_SESSIONS, of, before, max(limit, 0)))


def summaries(rows: Sequence[asyncpg.Record]) -> list[SessionSummary]:
    """Return rows of `sessions` for a listing."""
    return [
        SessionSummary(
            session=row["session"].decode(),
            tenant=row["tenant"].decode(),
            created=row["created"],
            touched=row["touched"],
            events=row["last"] + 1,
        )
        for row in rows
    ]


async def history(
    seals: Seals,
    types: Collection[str] | None,
    *,
    after: int,
    since: float = -inf,
    limit: int = 500,
    own: tuple[int, int] = (0, 0),
) -> LogPage:
    """Return events of all sessions; `own`: era and number of our last transaction."""
    start = place(after)
    mask = _EVERYTHING if types is None else kinds_mask(types)
    until = time.monotonic() + OWN_WAIT
    while True:
        rows, opened = await seals.read(
            _HISTORY, start.era, str(start.xid), start.filed, mask, since, min(max(limit, 1), PAGE)
        )
        head = rows[0]
        if head["now"] != own[0] or own[1] < head["xmin"] or time.monotonic() > until:
            break
        await asyncio.sleep(0.005)
    content = [row for row in opened if row["session"] is not None]
    return _page(seals, rows, content, start, types=types, since=since, limit=limit)


def _page(
    seals: Seals,
    rows: Sequence[asyncpg.Record],
    content: Sequence[Values],
    start: LogPlace,
    *,
    types: Collection[str] | None,
    since: float,
    limit: int,
) -> LogPage:
    head = rows[0]
    events: list[TenantEvent] = []
    found = [row for row in rows if row["session"] is not None]
    position = start.number()
    for row in content:
        tenant = row["tenant"].decode()
        here = LogPlace(row["era"], row["xid"], row["filed"])
        skip = start.events if start[:3] == here[:3] else 0
        some = read_events(row, seals.damage)
        for n, event in enumerate(some[skip:], skip + 1):
            if (types is not None and event.type not in types) or event.at < since:
                continue
            if len(events) >= max(limit, 0):
                return LogPage(events, position, more=True)
            position = here._replace(events=n).number()
            events.append(TenantEvent(event, tenant, position))
        position = here._replace(events=row["count"]).number()
    if found and len(content) < len(found):  # of tenants that were deleted
        last = found[-1]
        end = LogPlace(last["era"], last["xid"], last["filed"], last["count"])
        position = max(position, end.number())
    if len(found) >= min(max(limit, 1), PAGE):
        return LogPage(events, position, more=True)
    if head["end_era"] is None:
        return LogPage(events, max(position, 0), more=False)
    end = LogPlace(head["end_era"], head["end_xid"], head["end_filed"], head["end_count"])
    return LogPage(events, max(end.number(), position if events else 0), more=False)


def event_page(page: LogPage) -> EventPage:
    """Return a page as the port has it."""
    return EventPage(
        events=[one.event for one in page.events], position=page.position, more=page.more
    )
