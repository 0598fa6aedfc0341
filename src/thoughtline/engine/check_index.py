"""Checks the look-up index of a store against its log, and rebuilds it.

Each session is compared with the entries that `reindex` makes from its log: whether a turn has an
entry, can be found under the keys that the log proves, and has its thoughts, outcome, parent and
quarantine. Rebuilding keeps what an entry has beyond the log (session hints, what requests went out
without, that it was cleared) and changes only what differs. It writes one session at a time and may
be interrupted and run again, also while the store is in use.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.engine.reindex import RebuiltEntry, rebuild_entries
from thoughtline.errors import StoreError, ThoughtlineError
from thoughtline.log.index import IndexEntry
from thoughtline.log.sessions import Session
from thoughtline.stores.base import FiledEntry, Progress, SessionCursor, Store
from thoughtline.stores.rules import is_forgotten

PAGE = 500
"""Sessions that are listed at once."""

DIFFERENCES = ("keys", "thoughts", "outcome", "parent", "quarantine")


class IndexReport(Struct, kw_only=True):
    """What a check found, and what a rebuild did."""

    sessions: int = 0
    turns: int = 0  # that ended
    missing: int = 0  # turns without an entry
    different: int = 0  # entries that are not as the log says
    differences: dict[str, int] = {}  # in what they differ
    stale: int = 0  # entries of turns that the log does not have
    orphans: int = 0  # look-up keys that lead to no entry
    rebuilt: int = 0  # entries that were written
    cleared: int = 0  # entries that were cleared: their thoughts are not put back
    restored: int = 0  # of those, how many were brought back
    unrecorded: int = 0  # turns without an entry that cannot have one: the log lacks their text
    unreadable: int = 0  # sessions whose log cannot be read, or not all of it

    @property
    def clean(self) -> bool:
        """Whether the index matches the log."""
        return not (self.missing or self.different or self.stale or self.orphans)


async def check_index(
    store: Store,
    *,
    rebuild: bool = False,
    restore: bool = False,
    progress: Progress | None = None,
) -> IndexReport:
    """Compare the index of all sessions with the log; with `rebuild`, correct it.

    Entries that were cleared stay so, unless `restore` brings them back.
    """
    report = IndexReport(orphans=await store.prune_index(dry_run=not rebuild))
    sessions = await _all_sessions(store)
    for done, session in enumerate(sessions, 1):
        try:
            await _check_session(store, session, report, rebuild=rebuild, restore=restore)
        except StoreError:
            raise
        except ThoughtlineError:
            report.unreadable += 1
        if progress is not None:
            progress(done, len(sessions))
    return report


async def _all_sessions(store: Store) -> list[str]:
    """Return the ids of all sessions."""
    found: dict[str, None] = {}
    await _list_sessions(store, found)
    await _list_sessions(store, found)  # again: a session that is used meanwhile moves to the front
    return list(found)


async def _list_sessions(store: Store, found: dict[str, None]) -> None:
    """Add the ids of sessions, the last used first, up to a page with none that is new."""
    after: SessionCursor | None = None
    while True:
        listing = await store.search(limit=PAGE, after=after)
        new = dict.fromkeys(one.session for one in listing.sessions if one.session not in found)
        found |= new
        after = listing.after
        if not new or after is None:
            return


async def _check_session(
    store: Store, session: str, report: IndexReport, *, rebuild: bool, restore: bool
) -> None:
    path = await _with_origins(store, session)
    if not path:
        return  # deleted meanwhile
    expected = {
        rebuilt.entry.turn: rebuilt
        for rebuilt in rebuild_entries(path)
        if rebuilt.entry.session == session
    }
    filed = {one.entry.turn: one for one in await store.index(session)}
    entries = _count(report, expected, filed, restore=restore)
    turns = {turn.id for turn in path[-1].turns}
    stale = [] if path[-1].skipped else [turn for turn in filed if turn not in turns]
    if stale:  # a turn may have been written since the log was read
        written = {event.id for event in await store.read(session, after=path[-1].seq)}
        stale = [turn for turn in stale if turn not in written]
    report.sessions += 1
    report.unreadable += path[-1].damaged > 0
    report.stale += len(stale)
    if rebuild and (entries or stale):
        await store.reindex(session, entries, remove=stale)
        report.rebuilt += len(entries)


async def _with_origins(store: Store, session: str) -> list[Session]:
    """Return a session and those that it was forked from, origins first."""
    path: dict[str, Session] = {}
    while session and session not in path:
        events = await store.read(session)
        if not events:
            break
        path[session] = Session(session).extend(events)
        origin = path[session].origin
        session = origin.session if origin else ""
    return list(path.values())[::-1]


def _count(
    report: IndexReport,
    expected: Mapping[str, RebuiltEntry],
    filed: Mapping[str, FiledEntry],
    *,
    restore: bool,
) -> list[IndexEntry]:
    """Count what differs in a session; returns the entries as they should be."""
    wanted: list[IndexEntry] = []
    for turn, rebuilt in expected.items():
        report.turns += 1
        known = filed.get(turn)
        if known is not None:
            different = differences(known, rebuilt)
            for name in different:
                report.differences[name] = report.differences.get(name, 0) + 1
            cleared = bool(known.entry.forgotten) and not rebuilt.forgotten
            report.cleared += cleared and not restore
            if different or (cleared and restore):
                entry = _corrected(known.entry, rebuilt, different)
                report.different += bool(different)
                report.restored += cleared and restore
                wanted.append(replace(entry, forgotten=()) if cleared and restore else entry)
        elif not rebuilt.recorded:
            report.unrecorded += 1
        elif not rebuilt.forgotten:
            report.missing += 1
            wanted.append(rebuilt.entry)
    return wanted


def differences(filed: FiledEntry, rebuilt: RebuiltEntry) -> list[str]:
    """Return in what an entry differs from the log."""
    entry, expected = filed.entry, rebuilt.entry
    same = {
        "keys": not filed.unfiled and _has_keys(entry, rebuilt),
        "thoughts": (
            is_forgotten(entry)
            or [t.raw for t in entry.thoughts] == [t.raw for t in expected.thoughts]
        )
        and entry.shape.count("t") == len(expected.thoughts),
        "outcome": entry.outcome is expected.outcome,
        "parent": entry.parent in rebuilt.parents,
        "quarantine": expected.quarantined <= entry.quarantined,
    }
    return [name for name in DIFFERENCES if not same[name]]


def _has_keys(entry: IndexEntry, rebuilt: RebuiltEntry) -> bool:
    return any(keys <= frozenset(entry.keys) for keys in rebuilt.proven)


def _corrected(entry: IndexEntry, rebuilt: RebuiltEntry, different: list[str]) -> IndexEntry:
    """Return an entry with what differs as the log has it."""
    expected = rebuilt.entry
    changes: dict[str, Any] = {}
    if not _has_keys(entry, rebuilt):
        changes["keys"] = tuple(dict.fromkeys((*expected.keys, *entry.keys)))
    if "thoughts" in different and rebuilt.recorded:
        names = ("shape", "thoughts", "calls", "text_digest", "phases", "chars")
        changes |= {name: getattr(expected, name) for name in names}
    if "outcome" in different:
        changes["outcome"] = expected.outcome
    if "parent" in different:
        changes["parent"] = expected.parent
    changes["quarantined"] = entry.quarantined | expected.quarantined
    return replace(entry, **changes)
