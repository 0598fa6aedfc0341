"""The index of a memory store: turns by their keys, thoughts by turn, who continues whom."""

from collections.abc import Iterator
from itertools import count

import msgspec

from thoughtline.log.events import Event
from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter, ThoughtEntry
from thoughtline.stores.erased import erased, is_erased, unfiled_entry


class StoredSession:
    """A session and its index entries."""

    def __init__(self, tenant: str, created: float) -> None:
        self.tenant = tenant
        self.created = self.touched = created
        self.events: list[Event] = []
        self.positions: list[int] = []  # of the events, among those of all sessions
        self.index: dict[str, IndexEntry] = {}  # turn → index entry
        self.counts = rules.NO_EVENTS
        self.kept = False  # a person's own: it does not expire
        self.batches: dict[str, int] = {}  # id of a batch → seq of its first event


class MemoryIndex:
    """The sessions of a memory store, and everything in them that is looked up."""

    def __init__(self) -> None:
        self.sessions: dict[str, StoredSession] = {}
        # (tenant, key) → (session, turn), the last filed last: a dict is an ordered set
        self._by_key: dict[tuple[str, bytes], dict[tuple[str, str], None]] = {}
        self._reasoning: dict[tuple[str, str], list[Event]] = {}  # (session, turn) → events
        self._continuing: dict[str, dict[str, str]] = {}  # turn → turns after it → their sessions
        self._referring: dict[str, list[Event]] = {}  # turn → quarantines, session → forks
        self._filed: dict[tuple[str, str], int] = {}  # (session, turn) → its number, rising
        self._numbers = count(1)

    def add_event(self, event: Event) -> None:
        """Note what an event says about a turn or a session."""
        if event.type == "reasoning":
            self._reasoning.setdefault((event.session, event.parent), []).append(event)
        elif event.type == "turn_started" and event.parent:
            self._continuing.setdefault(event.parent, {})[event.id] = event.session
        elif target := rules.referred_id(event.type, event.data):
            self._referring.setdefault(target, []).append(event)

    def file(self, stored: StoredSession, entry: IndexEntry) -> None:
        """File an index entry, in place of an older one of its turn."""
        self.unfile(stored, entry.turn)
        stored.index[entry.turn] = msgspec.structs.replace(entry, thoughts=())
        self._filed[entry.session, entry.turn] = next(self._numbers)
        for key in entry.keys:
            self._by_key.setdefault((stored.tenant, key), {})[entry.session, entry.turn] = None

    def unfile(self, stored: StoredSession, turn: str) -> None:
        """Delete the index entry of a turn, and its keys."""
        entry = stored.index.pop(turn, None)
        if entry is None:
            return
        del self._filed[entry.session, turn]
        for key in entry.keys:
            filed = self._by_key.get((stored.tenant, key), {})
            filed.pop((entry.session, turn), None)
            if not filed:
                self._by_key.pop((stored.tenant, key), None)

    def candidates(self, tenant: str, key: bytes) -> list[tuple[str, str]]:
        """Return session and turn of what is filed under a key, the last filed first."""
        return list(self._by_key.get((tenant, key), ()))[::-1][:MAX_CANDIDATES]

    def depth_after(self, tenant: str, turn: str) -> int:
        """Return how far a turn was continued, as `Store.continued` counts it."""
        after = [
            later
            for later, session in self._continuing.get(turn, {}).items()
            if self.sessions[session].tenant == tenant
        ]
        if not after:
            return 0
        return 2 if any(self._continuing.get(later) for later in after) else 1

    def with_thoughts(self, tenant: str, session: str, turn: str) -> IndexEntry:
        """Return the index entry of a turn with its thoughts, as a look-up gives it."""
        reasoning = [(e.version, e.data) for e in self._reasoning.get((session, turn), ())]
        quarantines = [
            record
            for event in self._referring.get(turn, ())
            if event.type == "quarantined"
            and self.sessions[event.session].tenant == tenant
            and (record := rules.read_quarantine(event.data))
        ]
        return rules.with_thoughts(self.sessions[session].index[turn], reasoning, quarantines)

    def is_forked(self, session: str) -> bool:
        """Whether another session was forked from this one."""
        return any(
            event.type == "session_forked" and event.session != session
            for event in self._referring.get(session, ())
        )

    def remove(self, session: str) -> None:
        """Delete a session, and all that leads to it."""
        stored = self.sessions[session]
        for turn in list(stored.index):
            self.unfile(stored, turn)
        for event in stored.events:
            if event.type == "reasoning":
                self._reasoning.pop((session, event.parent), None)
            elif event.type == "turn_started" and event.parent:
                after = self._continuing.get(event.parent, {})
                after.pop(event.id, None)
                if not after:
                    self._continuing.pop(event.parent, None)
            elif target := rules.referred_id(event.type, event.data):
                left = [e for e in self._referring.get(target, ()) if e.session != session]
                if left:
                    self._referring[target] = left
                else:
                    self._referring.pop(target, None)
        del self.sessions[session]

    # -- thought entries -------------------------------------------------------------------------

    def entries(self, entry_filter: EntryFilter, *, thoughts: bool) -> Iterator[ThoughtEntry]:
        """Yield the thought entries that match, the last filed first."""
        for (session, turn), number in reversed(self._filed.items()):
            stored = self.sessions[session]
            entry = stored.index[turn]
            if not rules.entry_matches(entry_filter, stored.tenant, entry):
                continue
            known = self.with_thoughts(stored.tenant, session, turn).thoughts if thoughts else ()
            for nth, call in rules.shown_calls(entry):
                if entry_filter.call in {None, call}:
                    at = (number, nth)
                    yield rules.thought_entry(
                        entry,
                        at,
                        call,
                        tenant=stored.tenant,
                        touched=stored.touched,
                        kept=stored.kept,
                        thoughts=known,
                    )

    def forget(self, entry_filter: EntryFilter) -> int:
        """Clear thought entries; returns how many."""
        count = 0
        for session, turn in self._filed:
            stored = self.sessions[session]
            entry = stored.index[turn]
            if rules.entry_matches(entry_filter, stored.tenant, entry):
                stored.index[turn], cleared = rules.forget_entry(entry, entry_filter)
                count += cleared
        return count

    def erase(self, entry_filter: EntryFilter) -> int:
        """Erase thoughts from the log, and forget their entries; returns how many thoughts."""
        count = 0
        for (session, turn), events in self._reasoning.items():
            stored = self.sessions[session]
            entry = stored.index.get(turn)
            if entry is None:
                thoughts = [(event.version, event.data) for event in events]
                entry = unfiled_entry(session, turn, thoughts)
            if not rules.filter_matches(entry_filter, stored.tenant, entry):
                continue
            for n, event in enumerate(events):
                if not is_erased(event.version, event.data):
                    events[n] = stored.events[event.seq] = _erased(event)
                    count += 1
            if turn in stored.index:
                stored.index[turn], _ = rules.forget_entry(entry, ALL_ENTRIES)
        return count


def _erased(event: Event) -> Event:
    version, data = erased(event.version, event.data)
    return msgspec.structs.replace(event, version=version, data=data)
