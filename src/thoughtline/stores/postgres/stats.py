"""Counts what is stored, for people."""

from thoughtline.stores import rules
from thoughtline.stores.base import StoreStats
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.migrations import load

_SESSIONS = load("sum_sessions.sql")
_ENTRIES = """
SELECT provider, model, count(*) AS entries, sum(chars) AS chars, min(at) AS first, max(at) AS last,
       sum(shown) AS listed
FROM entries WHERE shown > 0 AND ($1::bytea IS NULL OR tenant = $1) GROUP BY provider, model
"""


async def stats(connections: Connections, tenant: str | None, *, sessions: bool) -> StoreStats:
    """Count what is stored; without `sessions` only the index."""
    of = None if tenant is None else tenant.encode()
    found = await connections.slowly(_ENTRIES, of)
    summaries = [
        rules.EntrySummary(
            row["provider"].decode(),
            row["model"].decode(),
            row["entries"],
            int(row["chars"]),
            row["first"],
            row["last"],
        )
        for row in found
    ]
    listed = sum(row["listed"] for row in found)
    if not sessions:
        return rules.make_stats(
            sessions=0, events=0, turns=0, span=(None, None), summaries=summaries, listed=listed
        )
    (held,) = await connections.slowly(_SESSIONS, of)
    return rules.make_stats(
        sessions=held["sessions"],
        events=int(held["events"]),
        turns=int(held["turns"]),
        span=(held["oldest"], held["newest"]),
        summaries=summaries,
        listed=listed,
    )
