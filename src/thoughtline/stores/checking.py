"""Looks through a store: whether every session is without a gap, and can be read."""

import time
from math import inf

from msgspec import Struct

from thoughtline.errors import StoreError, Unreadable
from thoughtline.stores.base import Progress, SessionCursor, SessionQuery, Store

PAGE = 100
"""Sessions in one page of the listing."""
MAX_REASONS = 10
"""Reasons that are told."""


class StoreReport(Struct, kw_only=True):
    """What was found."""

    sessions: int = 0
    events: int = 0
    gaps: list[str] = []  # sessions with events missing
    unreadable: list[str] = []  # sessions with something that is damaged, or does not open
    reasons: list[str] = []  # why, each once
    complete: bool = True  # false: time was too short for all of it
    newer: int = 0  # events that only a newer version understands
    orphans: int = 0  # look-up keys that lead nowhere

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.gaps and not self.unreadable


async def check_store(store: Store, progress: Progress | None = None) -> StoreReport:
    """Read every session and its index."""
    report = StoreReport(orphans=await store.prune_index(dry_run=True))
    total = (await store.stats()).sessions
    await _check_sessions(store, report, progress, total, inf)
    return report


async def check_newest(store: Store, seconds: float) -> StoreReport:
    """Read the sessions that were last used, as many as time allows."""
    report = StoreReport()
    await _check_sessions(store, report, None, 0, time.monotonic() + seconds)
    return report


async def _check_sessions(
    store: Store, report: StoreReport, progress: Progress | None, total: int, deadline: float
) -> None:
    after: SessionCursor | None = None
    while True:
        listing = await store.search(limit=PAGE, after=after)
        for summary in listing.sessions:
            if time.monotonic() > deadline:
                report.complete = False
                return
            await _check_session(store, summary.session, summary.events, report)
            report.sessions += 1
            if progress is not None:
                progress(report.sessions, max(report.sessions, total))
        after = listing.after
        if after is None:
            return


async def _check_session(store: Store, session: str, count: int, report: StoreReport) -> None:
    try:
        events = await store.read(session)
        await store.index(session)
    except (StoreError, ValueError) as error:
        _note(report, session, str(error))
        return
    report.events += len(events)
    if [event.seq for event in events] != list(range(len(events))) or len(events) < count:
        listing = await store.search(SessionQuery(session=session), limit=1)
        if listing.sessions:  # else it was deleted meanwhile
            report.gaps.append(session)
    reason = store.damage.reason(session)
    for event in events:
        try:
            report.newer += event.body() is None
        except Unreadable as error:
            reason = reason or f"session {session!r}: {error}"
    if reason:
        _note(report, session, reason)


def _note(report: StoreReport, session: str, reason: str) -> None:
    """Note that a session cannot be read, or not all of it."""
    report.unreadable.append(session)
    if reason not in report.reasons and len(report.reasons) < MAX_REASONS:
        report.reasons.append(reason)
