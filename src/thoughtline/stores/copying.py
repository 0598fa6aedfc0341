"""Copies a store into another one, of any kind, through the port.

What is there already is not written again: sessions are compared by the ids of their events, and
each turn is a batch with the id of its first event. So a copy that was interrupted goes on where it
stopped, and one that is run again brings over what is new. Thoughts that were erased or forgotten
meanwhile are so in the copy, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from thoughtline.errors import Conflict
from thoughtline.log.events import Draft, Event
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import (
    Batch,
    EntryFilter,
    Progress,
    SessionCursor,
    SessionSummary,
    Store,
)
from thoughtline.stores.erased import is_erased

PAGE = 100
"""Sessions in one page of the listing."""

MAX_EVENTS = 500
"""Events in one batch, where they are of no turn."""

PEOPLE = "local"
"""The tenant of sessions that a person made by library or command line, which do not expire."""


class CopyReport(Struct, kw_only=True):
    """What was copied."""

    sessions: int = 0  # that were looked at
    copied: int = 0  # of which something was new
    events: int = 0
    entries: int = 0
    forgotten: int = 0  # entries that were forgotten since the last copy, and thoughts erased
    conflicts: list[str] = []  # sessions of which the other store has other events


async def copy_store(source: Store, target: Store, progress: Progress | None = None) -> CopyReport:
    """Copy all sessions with their index entries; returns what was new."""
    report = CopyReport()
    total = (await source.stats()).sessions
    after: SessionCursor | None = None
    while True:
        listing = await source.search(limit=PAGE, after=after)
        for summary in listing.sessions:
            await _copy_session(source, target, summary, report)
            report.sessions += 1
            if progress is not None:
                progress(report.sessions, max(report.sessions, total))
        after = listing.after
        if after is None:
            return report


async def _copy_session(
    source: Store, target: Store, summary: SessionSummary, report: CopyReport
) -> None:
    session = summary.session
    events = await source.read(session)
    known = await target.read(session)
    if [e.id for e in known] != [e.id for e in events[: len(known)]]:
        report.conflicts.append(session)
        return
    entries = [filed.entry for filed in await source.index(session)]
    report.forgotten += await _erase(target, known, events)
    there = {filed.entry.turn: filed.entry for filed in await target.index(session)}
    for entry_filter in _forgotten(there, entries):
        report.forgotten += await target.forget(entry_filter)
    missing = [entry for entry in entries if entry.turn not in there]
    fresh = events[len(known) :]
    if not fresh and not missing:
        return
    kept = await _is_kept(source, summary)
    last = len(known) - 1
    for some in _turns(fresh):
        batch = Batch(
            id=some[0].id,
            session=session,
            tenant=summary.tenant,
            drafts=tuple(map(_draft, some)),
            expect=last,
            kept=kept,
        )
        try:
            last = await target.append(batch) + len(some) - 1
        except Conflict:
            report.conflicts.append(session)
            return
    changed = {event.parent or event.id for event in fresh} | {event.id for event in fresh}
    await target.reindex(session, [e for e in entries if e.turn not in there or e.turn in changed])
    report.copied += 1
    report.events += len(fresh)
    report.entries += len(missing)


async def _erase(target: Store, known: Sequence[Event], events: Sequence[Event]) -> int:
    """Erase thoughts of a copy that are erased in the source; returns how many."""
    turns = {
        old.parent: old.session
        for old, new in zip(known, events, strict=False)
        if old.data != new.data and _is_erased(new) and not _is_erased(old)
    }
    return sum(
        [await target.erase(EntryFilter(session=of, turn=turn)) for turn, of in turns.items()]
    )


def _is_erased(event: Event) -> bool:
    return event.type == "reasoning" and is_erased(event.version, event.data)


def _forgotten(
    there: Mapping[str, IndexEntry], entries: Iterable[IndexEntry]
) -> Iterator[EntryFilter]:
    """Yield what is to be forgotten of a copy that has these entries."""
    for entry in entries:
        known = there.get(entry.turn, entry)
        for call in entry.forgotten:
            if call not in known.forgotten:
                yield EntryFilter(session=entry.session, turn=entry.turn, call=call or None)


async def _is_kept(source: Store, summary: SessionSummary) -> bool:
    if summary.tenant == PEOPLE:
        return True
    listed = await source.entries(EntryFilter(session=summary.session), limit=1)
    return any(entry.kept for entry in listed)


def _turns(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Yield the events of each turn; what comes before the first one by itself."""
    some: list[Event] = []
    for event in events:
        if some and (event.type == "turn_started" or len(some) >= MAX_EVENTS):
            yield some
            some = []
        some.append(event)
    if some:
        yield some


def _draft(event: Event) -> Draft:
    return Draft(event.id, event.parent, event.at, event.type, event.version, event.data)
