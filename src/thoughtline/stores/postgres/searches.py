"""Searching sessions: page by page, each session's events looked at by the rules of every store."""

from math import inf

from thoughtline.log.events import Event
from thoughtline.stores import search as rules
from thoughtline.stores.base import SessionCursor, SessionListing, SessionQuery, SessionSummary
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.queries import summaries
from thoughtline.stores.postgres.sealed_rows import read_events
from thoughtline.stores.postgres.seals import Seals

PAGE = 50
"""Sessions that are looked at in one go."""

_SESSIONS = """
SELECT session, tenant, created, touched, last FROM sessions
WHERE ($1::bytea IS NULL OR session = $1) AND ($2::bytea IS NULL OR tenant = $2)
  AND (touched < $3 OR touched = $3 AND session > $4)
ORDER BY touched DESC, session LIMIT $5
"""
_EVENTS = """
SELECT tenant, session, id, nth, entry, turn, first, count, said FROM batches
WHERE session = ANY ($1) ORDER BY session, first, nth
"""


async def search(
    connections: Connections,
    seals: Seals,
    query: SessionQuery,
    limit: int,
    after: SessionCursor | None,
) -> SessionListing:
    """Return sessions that match; a long search is done in pieces."""
    found: list[SessionSummary] = []
    scanned = 0
    while True:
        page = await _candidates(connections, query, after, max(limit, 1))
        matching = await _matching(seals, query, page)
        for summary in page:
            if len(found) >= limit or scanned >= rules.MAX_SCANNED:
                return SessionListing(sessions=found, after=after)
            scanned += 1
            after = (summary.touched, summary.session)
            if summary.session in matching:
                found.append(summary)
        if len(page) < min(PAGE, max(limit, 1) + 1):
            return SessionListing(sessions=found)


async def _candidates(
    connections: Connections, query: SessionQuery, after: SessionCursor | None, limit: int
) -> list[SessionSummary]:
    touched, last = after or (inf, "")
    return summaries(
        await connections.read(
            _SESSIONS,
            None if query.session is None else query.session.encode(),
            None if query.tenant is None else query.tenant.encode(),
            touched,
            last.encode(),
            min(PAGE, limit + 1),
        )
    )


async def _matching(seals: Seals, query: SessionQuery, page: list[SessionSummary]) -> set[str]:
    """Return which of the sessions match by their events."""
    ids = [summary.session for summary in page]
    if query.provider is query.model is query.status is query.text is None:
        return set(ids)
    rows = (await seals.read(_EVENTS, [id.encode() for id in ids])).opened
    events: dict[str, list[Event]] = {id: [] for id in ids}
    for row in rows:
        session = row["session"].decode()
        events[session] += read_events(row, seals.damage)
    return {id for id in ids if rules.session_matches(query, events[id])}
