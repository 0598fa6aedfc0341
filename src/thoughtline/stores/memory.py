"""Sessions in plain dictionaries: the reference that every other store is compared with.

Good for tests, for trying things out, and for a gateway that shall leave nothing behind. It keeps
the port's promises except one: when the process ends, everything is gone. All of it happens in one
event loop, between two awaits, so there is nothing to lock.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from itertools import count, islice

import msgspec

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import Unavailable
from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores import facts, seeking
from thoughtline.stores.base import (
    ANY,
    CANDIDATES,
    EVERYTHING,
    INTERNAL,
    Batch,
    Chapter,
    Cursor,
    Entry,
    Filter,
    Listing,
    Query,
    Stats,
    Summary,
)


class _Shelf:
    """One session."""

    def __init__(self, tenant: str, created: float) -> None:
        self.tenant = tenant
        self.created = self.touched = created
        self.events: list[Event] = []
        self.positions: list[int] = []  # of the events, among those of all sessions
        self.memories: dict[str, Memory] = {}  # turn → memory
        self.weight = facts.Weight()


class _Ear:
    """Somebody who watches: a session, or all of them (None)."""

    def __init__(self, session: str | None, tenant: str | None) -> None:
        self.session, self.tenant = session, tenant
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def wants(self, batch: Batch) -> bool:
        return self.session in {None, batch.session} and self.tenant in {None, batch.tenant}


class MemoryStore:
    """A store that forgets when it is closed or its process ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._shelves: dict[str, _Shelf] = {}
        # (tenant, name) → (session, turn), the last filed last: a dict is an ordered set
        self._names: dict[tuple[str, bytes], dict[tuple[str, str], None]] = {}
        self._reasoning: dict[tuple[str, str], list[Event]] = {}  # (session, turn) → events
        self._about: dict[str, list[Event]] = {}  # turn → refusals, session → forks
        self._filed: dict[tuple[str, str], int] = {}  # (session, turn) → its number, rising
        self._numbers = count(1)
        self._position = 0  # of the last event
        self._order: dict[int, tuple[str, int]] = {}  # position → session and seq
        self._ears: set[_Ear] = set()
        self._closed = False

    async def append(self, batch: Batch) -> list[Event]:
        self._open()
        facts.check(batch)
        shelf = self._shelves.get(batch.session)
        last = len(shelf.events) - 1 if shelf else -1
        if problem := facts.conflict(batch, shelf.tenant if shelf else None, last):
            raise problem
        now = self._clock.wall()
        if shelf is None:
            shelf = self._shelves[batch.session] = _Shelf(batch.tenant, now)
        shelf.touched = max(shelf.touched, now)
        shelf.weight.add(batch.drafts)
        events = facts.number(batch, last)
        shelf.events += events
        for event in events:
            self._index(event)
            self._position += 1
            self._order[self._position] = (event.session, event.seq)
            shelf.positions.append(self._position)
        for memory in batch.memories:
            self._file(shelf, memory)
        for ear in self._ears:
            if ear.wants(batch):
                for event in events:
                    ear.queue.put_nowait(event)
        return events

    def _index(self, event: Event) -> None:
        if event.type == "reasoning":
            self._reasoning.setdefault((event.session, event.parent), []).append(event)
        elif target := facts.about(event.type, event.data):
            self._about.setdefault(target, []).append(event)

    def _file(self, shelf: _Shelf, memory: Memory) -> None:
        self._unfile(shelf, memory.turn)
        shelf.memories[memory.turn] = msgspec.structs.replace(memory, thoughts=())
        self._filed[memory.session, memory.turn] = next(self._numbers)
        for name in memory.names:
            self._names.setdefault((shelf.tenant, name), {})[memory.session, memory.turn] = None

    def _unfile(self, shelf: _Shelf, turn: str) -> None:
        memory = shelf.memories.pop(turn, None)
        if memory is None:
            return
        del self._filed[memory.session, turn]
        for name in memory.names:
            filed = self._names.get((shelf.tenant, name), {})
            filed.pop((memory.session, turn), None)
            if not filed:
                self._names.pop((shelf.tenant, name), None)

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        self._open()
        shelf = self._shelves.get(session)
        events = shelf.events[max(after + 1, 0) :] if shelf else []
        return events if limit is None else events[: max(limit, 0)]

    async def find(self, tenant: str, names: Sequence[bytes]) -> Mapping[bytes, Sequence[Memory]]:
        self._open()
        found: dict[bytes, Sequence[Memory]] = {}
        now = self._clock.wall()
        for name in names:
            filed = list(self._names.get((tenant, name), ()))[::-1][:CANDIDATES]
            if filed:
                found[name] = [self._recall(tenant, session, turn) for session, turn in filed]
            for session, _ in filed:
                shelf = self._shelves[session]
                shelf.touched = max(shelf.touched, now)
        return found

    def _recall(self, tenant: str, session: str, turn: str) -> Memory:
        reasoning = [(e.version, e.data) for e in self._reasoning.get((session, turn), ())]
        refusals = [
            said
            for event in self._about.get(turn, ())
            if event.type == "quarantined"
            and self._shelves[event.session].tenant == tenant
            and (said := facts.refusal(event.data))
        ]
        return facts.recall(self._shelves[session].memories[turn], reasoning, refusals)

    async def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        self._open()
        ear = _Ear(session, tenant)
        self._ears.add(ear)
        try:
            shelf = self._shelves.get(session) if session is not None else None
            if shelf and tenant in {None, shelf.tenant}:
                for event in shelf.events[max(after + 1, 0) :]:
                    yield event
            while (written := await ear.queue.get()) is not None:
                if session is None or written.seq > after:
                    yield written
        finally:
            self._ears.discard(ear)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[Summary]:
        self._open()
        listed = [
            Summary(
                session=session,
                tenant=shelf.tenant,
                created=shelf.created,
                touched=shelf.touched,
                events=len(shelf.events),
            )
            for session, shelf in self._shelves.items()
            if tenant in {None, shelf.tenant} and (before is None or shelf.touched < before)
        ]
        return sorted(listed, key=lambda s: (-s.touched, s.session))[: max(limit, 0)]

    async def search(
        self, which: Query = ANY, *, limit: int = 50, after: Cursor | None = None
    ) -> Listing:
        self._open()
        found: list[Summary] = []
        looked, last = 0, after
        for summary in await self.sessions(tenant=which.tenant, limit=len(self._shelves)):
            place = (summary.touched, summary.session)
            if after is not None and (-place[0], place[1]) <= (-after[0], after[1]):
                continue
            if len(found) >= limit or looked >= seeking.SCAN:
                return Listing(sessions=found, after=last)
            looked += 1
            last = place
            meant = which.session in {None, summary.session}
            if meant and seeking.matches(which, self._shelves[summary.session].events):
                found.append(summary)
        return Listing(sessions=found)

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> Chapter:
        self._open()
        wanted = (n for n in range(max(after, 0) + 1, self._position + 1) if n in self._order)
        found: list[Event] = []
        for position in wanted:
            session, seq = self._order[position]
            event = self._shelves[session].events[seq]
            if (types is not None and event.type not in types) or (not after and event.at < since):
                continue
            if len(found) >= max(limit, 0):
                return Chapter(events=found, position=after, more=True)
            found.append(event)
            after = position
        return Chapter(events=found, position=self._position)

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
    ) -> int:
        self._open()
        if session is None and tenant is None and untouched_since is None:
            return 0
        doomed = {
            id
            for id, shelf in self._shelves.items()
            if session in {None, id}
            and tenant in {None, shelf.tenant}
            and (untouched_since is None or shelf.touched < untouched_since)
            and not (session is None and tenant is None and id.startswith(INTERNAL))
        }
        count = 0
        while free := {id for id in doomed if not self._referred(id)}:  # forks before origins
            for id in free:
                self._remove(id)
            doomed -= free
            count += len(free)
        return count

    def _referred(self, session: str) -> bool:
        return any(
            event.type == "session_forked" and event.session != session
            for event in self._about.get(session, ())
        )

    def _remove(self, session: str) -> None:
        shelf = self._shelves[session]
        for turn in list(shelf.memories):
            self._unfile(shelf, turn)
        for event in shelf.events:
            if event.type == "reasoning":
                self._reasoning.pop((session, event.parent), None)
            elif target := facts.about(event.type, event.data):
                left = [e for e in self._about.get(target, ()) if e.session != session]
                if left:
                    self._about[target] = left
                else:
                    self._about.pop(target, None)
        for position in shelf.positions:
            del self._order[position]
        del self._shelves[session]

    async def entries(
        self,
        which: Filter = EVERYTHING,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[Entry]:
        self._open()
        found = (
            entry
            for entry in self._entries(which, thoughts=thoughts)
            if after is None or (-entry.position[0], entry.position[1]) > (-after[0], after[1])
        )
        return list(islice(found, max(offset, 0), max(offset, 0) + max(limit, 0)))

    def _entries(self, which: Filter, *, thoughts: bool) -> Iterator[Entry]:
        for (session, turn), number in reversed(self._filed.items()):
            shelf = self._shelves[session]
            memory = shelf.memories[turn]
            if not facts.matches(which, shelf.tenant, memory):
                continue
            known = self._recall(shelf.tenant, session, turn).thoughts if thoughts else ()
            for nth, call in enumerate(memory.calls or ("",)):
                if which.call in {None, call}:
                    at = (number, nth)
                    yield facts.entry(
                        memory, at, call, tenant=shelf.tenant, touched=shelf.touched, thoughts=known
                    )

    async def forget(self, which: Filter) -> int:
        self._open()
        forgotten = 0
        for session, turn in list(self._filed):
            shelf = self._shelves[session]
            memory = shelf.memories[turn]
            if facts.matches(which, shelf.tenant, memory):
                forgotten += facts.filing(memory).entries
                self._unfile(shelf, turn)
                self._blank(shelf, session, turn)
        return forgotten

    def _blank(self, shelf: _Shelf, session: str, turn: str) -> None:
        blanks = [_blanked(event) for event in self._reasoning.get((session, turn), ())]
        for event in blanks:
            shelf.events[event.seq] = event
        if blanks:
            self._reasoning[session, turn] = blanks

    async def stats(self, *, tenant: str | None = None) -> Stats:
        self._open()
        shelves = [s for s in self._shelves.values() if tenant in {None, s.tenant}]
        weights = [shelf.weight for shelf in shelves]
        return facts.stats(
            sessions=len(shelves),
            events=sum(len(shelf.events) for shelf in shelves),
            turns=sum(weight.turns for weight in weights),
            span=(
                min((w.oldest for w in weights if w.oldest is not None), default=None),
                max((w.newest for w in weights if w.newest is not None), default=None),
            ),
            filings=[facts.filing(m) for shelf in shelves for m in shelf.memories.values()],
        )

    async def close(self) -> None:
        self._closed = True
        for ear in self._ears:
            ear.queue.put_nowait(None)

    def _open(self) -> None:
        if self._closed:
            raise Unavailable("this store is closed; open it again")


def _blanked(event: Event) -> Event:
    version, data = facts.blank(event.version, event.data)
    return msgspec.structs.replace(event, version=version, data=data)
