"""Looks through a store: whether every session is without a gap, and can be read."""

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
    unreadable: list[str] = []  # sessions with something that does not open
    reasons: list[str] = []  # why, each once
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
    after: SessionCursor | None = None
    while True:
        listing = await store.search(limit=PAGE, after=after)
        for summary in listing.sessions:
            await _check_session(store, summary.session, summary.events, report)
            report.sessions += 1
            if progress is not None:
                progress(report.sessions, max(report.sessions, total))
        after = listing.after
        if after is None:
            return report


async def _check_session(store: Store, session: str, count: int, report: StoreReport) -> None:
    try:
        events = await store.read(session)
        await store.index(session)
    except (StoreError, ValueError) as error:
        report.unreadable.append(session)
        if str(error) not in report.reasons and len(report.reasons) < MAX_REASONS:
            report.reasons.append(str(error))
        return
    report.events += len(events)
    if [event.seq for event in events] != list(range(len(events))) or len(events) < count:
        listing = await store.search(SessionQuery(session=session), limit=1)
        if listing.sessions:  # else it was deleted meanwhile
            report.gaps.append(session)
    for event in events:
        try:
            report.newer += event.body() is None
        except Unreadable:
            report.newer += 1
