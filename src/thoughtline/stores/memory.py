"""A store in plain dictionaries: the reference that every other store is compared with.

It is meant for tests, for trying things out, and for a gateway that shall leave nothing on disk. It
keeps the promises of the port except one: when the process ends, everything is gone. All methods
run in one event loop and change state between two awaits, so there is nothing to lock.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import islice

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Unavailable
from thoughtline.log.events import Event, TurnStarted
from thoughtline.log.index import IndexEntry
from thoughtline.log.turn_counts import (
    TYPES,
    TurnCounter,
    TurnCounts,
    add_up,
    body_of,
    kept_length,
)
from thoughtline.stores import rules, search
from thoughtline.stores.base import (
    ALL_ENTRIES,
    ANY_SESSION,
    INTERNAL_PREFIX,
    Batch,
    EntryFilter,
    EventPage,
    FiledEntry,
    Progress,
    SessionCursor,
    SessionListing,
    SessionQuery,
    SessionSummary,
    StoreStats,
    ThoughtEntry,
    TurnCountPage,
)
from thoughtline.stores.damage import DamagedSessions
from thoughtline.stores.deletions import NotedDeletion
from thoughtline.stores.memory_index import MemoryIndex, StoredSession


class _Subscriber:
    """A `watch` of a session, or of all of them (None)."""

    def __init__(self, session: str | None, tenant: str | None) -> None:
        self.session, self.tenant = session, tenant
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def wants(self, batch: Batch) -> bool:
        return self.session in {None, batch.session} and self.tenant in {None, batch.tenant}


class MemoryStore:
    """A store whose content is gone when it is closed or its process ends."""

    retention = 0.0
    trouble = ""
    learned = -1
    shared = False

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.damage = DamagedSessions()
        self._index = MemoryIndex()
        self._sessions = self._index.sessions
        self._counter = TurnCounter(self._find_start)
        self._position = 0  # of the last event, among those of all sessions
        self._order: dict[int, tuple[str, int]] = {}  # position → session and seq
        self._subscribers: set[_Subscriber] = set()
        self._closed = False

    async def append(self, batch: Batch) -> int:
        self._check_open()
        rules.check_batch(batch)
        stored = self._sessions.get(batch.session)
        if stored and stored.tenant == batch.tenant and batch.id in stored.batches:
            return stored.batches[batch.id]
        last = len(stored.events) - 1 if stored else -1
        if problem := rules.find_conflict(batch, stored.tenant if stored else None, last):
            raise problem
        now = self._clock.wall()
        if stored is None:
            stored = self._sessions[batch.session] = StoredSession(batch.tenant, now)
        stored.touched = max(stored.touched, now)
        stored.kept = stored.kept or batch.kept
        stored.counts = stored.counts.plus(rules.count_events(batch.drafts))
        if batch.id:
            stored.batches[batch.id] = last + 1
        events = rules.number_events(batch, last + 1)
        stored.events += events
        for event in events:
            if event.type in TYPES:
                self._counter.add(event)
            self._index.add_event(event)
            self._position += 1
            self._order[self._position] = (event.session, event.seq)
            stored.positions.append(self._position)
        for entry in batch.index:
            self._index.file(stored, entry)
        for subscriber in self._subscribers:
            if subscriber.wants(batch):
                for event in events:
                    subscriber.queue.put_nowait(event)
        return last + 1

    def _find_start(self, session: str, turn: str, _seq: int) -> TurnStarted | None:
        for event in reversed(self._sessions[session].events):
            if event.type == "turn_started" and event.id == turn:
                body = body_of(event)
                return body if isinstance(body, TurnStarted) else None
        return None

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        self._check_open()
        stored = self._sessions.get(session)
        events = stored.events[max(after + 1, 0) :] if stored else []
        return events if limit is None else events[: max(limit, 0)]

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        self._check_open()
        found: dict[bytes, Sequence[IndexEntry]] = {}
        now = self._clock.wall()
        for key in keys:
            filed = self._index.candidates(tenant, key)
            if self.retention:
                filed = [one for one in filed if not self._is_expired(one[0], now)]
            if filed:
                found[key] = [self._index.with_thoughts(tenant, *one) for one in filed]
        return found

    def touch(self, sessions: Collection[str]) -> None:
        for session in sessions:
            if stored := self._sessions.get(session):
                stored.touched = max(stored.touched, self._clock.wall())

    def _is_expired(self, session: str, now: float) -> bool:
        stored = self._sessions[session]
        return stored.touched < now - self.retention and not stored.kept

    def changes(self) -> tuple[int, bool]:
        return 0, True  # no other process sees it

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        self._check_open()
        depths = {turn: self._index.depth_after(tenant, turn) for turn in turns}
        return {turn: depth for turn, depth in depths.items() if depth}

    async def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        self._check_open()
        subscriber = _Subscriber(session, tenant)
        self._subscribers.add(subscriber)
        try:
            stored = self._sessions.get(session) if session is not None else None
            if stored and tenant in {None, stored.tenant}:
                for event in stored.events[max(after + 1, 0) :]:
                    yield event
            while (new := await subscriber.queue.get()) is not None:
                if session is None or new.seq > after:
                    yield new
        finally:
            self._subscribers.discard(subscriber)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        self._check_open()
        listed = [
            SessionSummary(
                session=session,
                tenant=stored.tenant,
                created=stored.created,
                touched=stored.touched,
                events=len(stored.events),
            )
            for session, stored in self._sessions.items()
            if tenant in {None, stored.tenant} and (before is None or stored.touched < before)
        ]
        return sorted(listed, key=lambda s: (-s.touched, s.session))[: max(limit, 0)]

    async def search(
        self,
        query: SessionQuery = ANY_SESSION,
        *,
        limit: int = 50,
        after: SessionCursor | None = None,
    ) -> SessionListing:
        self._check_open()
        found: list[SessionSummary] = []
        scanned, last = 0, after
        for summary in await self.sessions(tenant=query.tenant, limit=len(self._sessions)):
            place = (summary.touched, summary.session)
            if after is not None and (-place[0], place[1]) <= (-after[0], after[1]):
                continue
            if len(found) >= limit or scanned >= search.MAX_SCANNED:
                return SessionListing(sessions=found, after=last)
            scanned += 1
            last = place
            named = query.session in {None, summary.session}
            if named and search.session_matches(query, self._sessions[summary.session].events):
                found.append(summary)
        return SessionListing(sessions=found)

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> EventPage:
        self._check_open()
        wanted = (n for n in range(max(after, 0) + 1, self._position + 1) if n in self._order)
        found: list[Event] = []
        for position in wanted:
            session, seq = self._order[position]
            event = self._sessions[session].events[seq]
            if (types is not None and event.type not in types) or (not after and event.at < since):
                continue
            if len(found) >= max(limit, 0):
                return EventPage(events=found, position=after, more=True)
            found.append(event)
            after = position
        return EventPage(events=found, position=self._position)

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        self._check_open()
        if session is None and tenant is None and untouched_since is None:
            return 0
        matched = {
            id
            for id, stored in self._sessions.items()
            if session in {None, id}
            and tenant in {None, stored.tenant}
            and (untouched_since is None or stored.touched < untouched_since)
            and not (
                session is None
                and tenant is None
                and (stored.kept or id.startswith(INTERNAL_PREFIX))
            )
        }
        count = 0
        while free := {id for id in matched if not self._index.is_forked(id)}:
            for id in free:  # a fork is deleted before its origin
                for position in self._sessions[id].positions:
                    del self._order[position]
                self._index.remove(id)
            matched -= free
            count += len(free)
        _report(progress, count)
        return count

    async def entries(
        self,
        entry_filter: EntryFilter = ALL_ENTRIES,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[ThoughtEntry]:
        self._check_open()
        found = (
            entry
            for entry in self._index.entries(entry_filter, thoughts=thoughts)
            if after is None or (-entry.position[0], entry.position[1]) > (-after[0], after[1])
        )
        return list(islice(found, max(offset, 0), max(offset, 0) + max(limit, 0)))

    async def forget(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        self._check_open()
        count = self._index.forget(entry_filter)
        _report(progress, count)
        return count

    async def erase(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        self._check_open()
        count = self._index.erase(entry_filter)
        _report(progress, count)
        return count

    async def deleted_since(self, tenant: str, moment: float) -> Sequence[NotedDeletion]:
        return ()

    async def count_calls(self, call: str) -> Mapping[str, int]:
        self._check_open()
        found = self._index.entries(EntryFilter(call=call), thoughts=False)
        return Counter(entry.tenant for entry in found)

    async def index(self, session: str) -> list[FiledEntry]:
        self._check_open()
        stored = self._sessions.get(session)
        if stored is None:
            return []
        return [
            FiledEntry(self._index.with_thoughts(stored.tenant, session, turn))
            for turn in stored.index
        ]

    async def reindex(
        self, session: str, entries: Sequence[IndexEntry], *, remove: Collection[str] = ()
    ) -> None:
        self._check_open()
        if stored := self._sessions.get(session):
            for turn in remove:
                self._index.unfile(stored, turn)
            for entry in entries:
                self._index.file(stored, entry)

    async def prune_index(self, *, dry_run: bool = False) -> int:
        self._check_open()
        return 0  # keys and entries are always deleted together

    async def stats(self, *, tenant: str | None = None, sessions: bool = True) -> StoreStats:
        self._check_open()
        found = [s for s in self._sessions.values() if tenant in {None, s.tenant}]
        counts = [stored.counts for stored in found]
        return rules.make_stats(
            sessions=len(found),
            events=sum(len(stored.events) for stored in found),
            turns=sum(counts.turns for counts in counts),
            span=(
                min((w.oldest for w in counts if w.oldest is not None), default=None),
                max((w.newest for w in counts if w.newest is not None), default=None),
            ),
            summaries=[
                rules.counted_once(rules.entry_summary(e))
                for stored in found
                for e in stored.index.values()
            ],
            listed=sum(
                len(rules.shown_calls(e)) for stored in found for e in stored.index.values()
            ),
        )

    async def turn_counts(self, *, seconds: int, since: float) -> TurnCountPage:
        self._check_open()
        kept = [
            TurnCounts(at=float(at), provider=provider, model=model, counts=counts)
            for (length, at, provider, model), counts in self._counter.counts.items()
            if length == kept_length(seconds) and at >= since
        ]
        return TurnCountPage(counts=add_up(kept, seconds))

    async def lease(self, job: str, seconds: float) -> bool:
        return True

    async def show_running(self, node: str, turns: bytes | None) -> bool:
        return False  # no other node sees it

    async def look_at_running(self, node: str) -> Mapping[str, bytes]:
        return {}

    async def summarise(self) -> None:
        """Drop the counts of long ago; the others are always up to date."""
        self._counter.drop_expired(self._clock.wall())

    async def close(self) -> None:
        self._closed = True
        for subscriber in self._subscribers:
            subscriber.queue.put_nowait(None)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("this store is closed; open it again")


def _report(progress: Progress | None, count: int) -> None:
    if progress is not None:
        progress(count, count)
