"""What every store does alike with a batch and an index entry. Pure functions, no I/O.

Whether a batch may be written, how its drafts become events, what they add to the statistics, which
other turn or session an event refers to, how an index entry gets its thoughts from the log, which
thought entries it makes, and what remains of a thought that is to be forgotten.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from thoughtline.errors import Conflict, StoreError, Unreadable
from thoughtline.log.events import VERSIONS, Draft, Event, Outcome, Reasoning, decode
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import UNREADABLE_THOUGHT, Carrier, Origin, Thought
from thoughtline.stores.base import (
    ALL_ENTRIES,
    CLIENTS_OWN,
    Batch,
    EntryCount,
    EntryFilter,
    StoreStats,
    ThoughtEntry,
)


class QuarantineRecord(Struct, frozen=True):
    """The part of a `quarantined` body that is the same in every version."""

    turn: str
    thoughts: tuple[int, ...] = ()


class _Fork(Struct, frozen=True):
    session: str


_quarantines = msgspec.json.Decoder(QuarantineRecord)
_forks = msgspec.json.Decoder(_Fork)
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_TIMES = (float, int)


def check_batch(batch: Batch) -> None:
    """Raise `StoreError` for a batch that no store can keep: a mistake of the caller."""
    for entry in batch.index:
        if entry.session != batch.session:
            raise StoreError(
                f"an index entry of session {entry.session!r} cannot be filed "
                f"with session {batch.session!r}"
            )
    for one in batch.drafts:
        texts = type(one.id) is type(one.parent) is type(one.type) is type(one.data) is str
        if not texts or type(one.version) is not int or type(one.at) not in _TIMES:
            raise StoreError("an event has a value of another type than its field")


def find_conflict(batch: Batch, tenant: str | None, last: int) -> Conflict | None:
    """Return why the batch may not follow event `last`; `tenant` is None for a new session."""
    if tenant is not None and tenant != batch.tenant:
        return Conflict(f"session {batch.session!r} belongs to another tenant; choose another id")
    if batch.expect is not None and batch.expect != last:
        return Conflict(
            f"session {batch.session!r} is at event {last}, not {batch.expect}: "
            "another writer was first; read it again and retry"
        )
    return None


def number_events(batch: Batch, first: int) -> list[Event]:
    """Return the events of a batch whose first one has this seq."""
    return [
        Event(batch.session, seq, *astuple(draft)) for seq, draft in enumerate(batch.drafts, first)
    ]


REFERRING_TYPES = frozenset({"quarantined", "session_forked"})
"""Types of events that refer to another turn or session."""


def referred_id(type: str, data: str) -> str | None:
    """Return the turn of a quarantine or the origin of a fork; None for other events."""
    if type == "quarantined":
        found = read_quarantine(data)
        return found.turn if found else None
    if type == "session_forked":
        try:
            return _forks.decode(data).session
        except UNREADABLE:
            return None
    return None


def read_quarantine(data: str) -> QuarantineRecord | None:
    """Read a `quarantined` event of any version; None when it cannot be read."""
    try:
        return _quarantines.decode(data)
    except UNREADABLE:
        return None


def read_thought(version: int, data: str) -> Thought | None:
    """Return the thought of a reasoning event; None when this version cannot read it."""
    try:
        body = decode("reasoning", version, data)
    except Unreadable:
        return None
    return body.thought if isinstance(body, Reasoning) else None


def with_thoughts(
    entry: IndexEntry,
    reasoning: Iterable[tuple[int, str]] | None,
    quarantines: Sequence[QuarantineRecord] = (),
) -> IndexEntry:
    """Return an index entry with the thoughts that the log has for it, and their quarantine.

    None: they are damaged. What cannot be read keeps its place among them.
    """
    if reasoning is None:
        thoughts = [UNREADABLE_THOUGHT] * entry.shape.count("t")
    else:
        thoughts = [read_thought(*stored) or UNREADABLE_THOUGHT for stored in reasoning]
    quarantined = entry.quarantined
    for record in quarantines:
        quarantined |= frozenset(record.thoughts or range(len(thoughts)))
    if entry.forgotten and is_forgotten(entry):
        thoughts = [_blank(thought) for thought in thoughts]
    return msgspec.structs.replace(entry, thoughts=tuple(thoughts), quarantined=quarantined)


def forget_in_batch(batch: Batch, entry_filter: EntryFilter) -> tuple[Batch, int]:
    """Return the batch with these entries forgotten, and how many thought entries those were."""
    index: list[IndexEntry] = []
    count = 0
    for entry in batch.index:
        if entry_matches(entry_filter, batch.tenant, entry):
            forgotten, cleared = forget_entry(entry, entry_filter)
            index.append(forgotten)
            count += cleared
        else:
            index.append(entry)
    return msgspec.structs.replace(batch, index=tuple(index)), count


def erase_in_batch(batch: Batch, entry_filter: EntryFilter) -> tuple[Batch, int]:
    """Return the batch without these thoughts, and how many they were."""
    turns = {e.turn for e in batch.index if filter_matches(entry_filter, batch.tenant, e)}
    drafts: list[Draft] = []
    count = 0
    for draft in batch.drafts:
        if draft.type == "reasoning" and draft.parent in turns:
            version, data = blank_thought(draft.version, draft.data)
            drafts.append(msgspec.structs.replace(draft, version=version, data=data))
            count += 1
        else:
            drafts.append(draft)
    index = tuple(forget_entry(e, ALL_ENTRIES)[0] if e.turn in turns else e for e in batch.index)
    return msgspec.structs.replace(batch, drafts=tuple(drafts), index=index), count


class SessionCounts(Struct, frozen=True):
    """How many turns a session has, and the times of its first and last event."""

    turns: int = 0
    oldest: float | None = None
    newest: float | None = None

    def plus(self, other: "SessionCounts") -> "SessionCounts":
        """Return the counts of these events and of others of the session."""
        if self.oldest is None or self.newest is None:
            return other
        if other.oldest is None or other.newest is None:
            return self
        oldest, newest = min(self.oldest, other.oldest), max(self.newest, other.newest)
        return SessionCounts(self.turns + other.turns, oldest, newest)


NO_EVENTS = SessionCounts()


def count_events(drafts: Sequence[Draft]) -> SessionCounts:
    """Return the counts of some events of a session."""
    if not drafts:
        return NO_EVENTS
    turns, oldest, newest = 0, drafts[0].at, drafts[0].at
    for one in drafts:
        if one.type == "turn_started":
            turns += 1
        if one.at < oldest:
            oldest = one.at
        elif one.at > newest:
            newest = one.at
    return SessionCounts(turns, oldest, newest)


class EntrySummary(Struct, frozen=True, gc=False):
    """What the statistics and the filters need of an index entry, or the sum of several."""

    provider: str
    model: str
    entries: int  # one per tool call, or one without calls; none without a thought
    chars: int  # of all of these entries together
    first: float  # when the turn ended; of a sum, the first and the last
    last: float


def entry_summary(entry: IndexEntry) -> EntrySummary:
    """Summarise an index entry for statistics and filters."""
    origin = entry.origin
    entries = len(shown_calls(entry))
    model = origin.asked or origin.model
    return EntrySummary(origin.provider, model, entries, entry.chars * entries, entry.at, entry.at)


def shown_calls(entry: IndexEntry) -> list[tuple[int, str]]:
    """Return the calls under which an index entry is listed, with their places: one entry each.

    Without calls it is listed once, under no id. An empty thought is not listed, and neither is
    one that is never put back: that of a turn that did not complete.
    """
    if not entry.chars or "t" not in entry.shape or entry.outcome is not Outcome.COMPLETED:
        return []
    calls = enumerate(entry.calls or ("",))
    if not entry.forgotten:
        return list(calls)
    return [(nth, call) for nth, call in calls if call not in entry.forgotten]


def is_forgotten(entry: IndexEntry) -> bool:
    """Whether all entries of a turn were cleared from the index."""
    return bool(entry.forgotten) and all(call in entry.forgotten for call in entry.calls or ("",))


def forget_entry(entry: IndexEntry, entry_filter: EntryFilter) -> tuple[IndexEntry, int]:
    """Return an index entry with those of its calls forgotten that match, and how many."""
    shown = [call for _, call in shown_calls(entry) if entry_filter.call in {None, call}]
    more = shown if entry_filter.call is not None else list(entry.calls or ("",))
    forgotten = tuple(dict.fromkeys((*entry.forgotten, *more)))
    marked = msgspec.structs.replace(entry, forgotten=forgotten)
    if marked.thoughts and is_forgotten(marked):
        thoughts = tuple(_blank(thought) for thought in marked.thoughts)
        marked = msgspec.structs.replace(marked, thoughts=thoughts)
    return marked, len(shown)


def entry_matches(entry_filter: EntryFilter, tenant: str, entry: IndexEntry) -> bool:
    """Whether thought entries of an index entry are listed and match the filter."""
    shown = [call for _, call in shown_calls(entry)]
    return (
        bool(shown)
        and (entry_filter.call is None or entry_filter.call in shown)
        and filter_matches(entry_filter, tenant, entry)
    )


def filter_matches(entry_filter: EntryFilter, tenant: str, entry: IndexEntry) -> bool:
    """Whether an index entry matches the filter, listed or not."""
    origin = entry.origin
    return (
        entry_filter.tenant in {None, tenant}
        and entry_filter.session in {None, entry.session}
        and entry_filter.turn in {None, entry.turn}
        and entry_filter.model in {None, origin.asked or origin.model}
        and (
            entry_filter.provider in {None, origin.provider}
            or (
                origin.endpoint in entry_filter.endpoints
                and entry_filter.providers.get(origin.endpoint) in {None, origin.provider}
                and is_of_account(origin, entry_filter.accounts.get(origin.endpoint), tenant)
            )
        )
        and (entry_filter.call is None or entry_filter.call in entry.calls)
    )


def is_of_account(made: Origin | ThoughtEntry, account: str | None, tenant: str) -> bool:
    """Whether a thought of this tenant was made for an account; None: for any."""
    if account == CLIENTS_OWN:
        return made.account in {"", tenant}
    return account in {None, made.account}


def thought_entry(
    entry: IndexEntry,
    position: tuple[int, int],
    call: str,
    *,
    tenant: str,
    touched: float,
    kept: bool = False,
    thoughts: tuple[Thought, ...] = (),
) -> ThoughtEntry:
    """Make the entry of a listing, under one of the turn's calls."""
    found = entry_summary(entry)
    return ThoughtEntry(
        position=position,
        tenant=tenant,
        session=entry.session,
        turn=entry.turn,
        call=call,
        provider=found.provider,
        endpoint=entry.origin.endpoint,
        account=entry.origin.account,
        model=found.model,
        outcome=entry.outcome,
        chars=entry.chars,
        at=entry.at,
        touched=touched,
        kept=kept,
        thoughts=thoughts,
    )


_encode = msgspec.json.Encoder().encode


def blank_thought(version: int, data: str) -> tuple[int, str]:
    """Erase the thought of a reasoning event: when and where it was made remains."""
    found = read_thought(version, data) or Thought(carrier=Carrier.REASONING_CONTENT, raw="null")
    return VERSIONS["reasoning"], _encode(Reasoning(thought=_blank(found))).decode()


def _blank(thought: Thought) -> Thought:
    """Return a thought without anything in it that could be sent or read."""
    return Thought(
        carrier=thought.carrier,
        raw="null",
        origin=thought.origin,
        timing=thought.timing,
        forgotten=True,
    )


def make_stats(
    *,
    sessions: int,
    events: int,
    turns: int,
    span: tuple[float | None, float | None],
    summaries: Iterable[EntrySummary],
    listed: int,
) -> StoreStats:
    """Make the statistics of a store from their parts; a summary may be a sum of several.

    Here the `entries` of a summary count turns, each once; `listed` counts one for each call.
    """
    counted = [summary for summary in summaries if summary.entries]
    return StoreStats(
        sessions=sessions,
        events=events,
        turns=turns,
        oldest=span[0],
        newest=span[1],
        entries=sum(summary.entries for summary in counted),
        listed=listed,
        chars=sum(summary.chars for summary in counted),
        oldest_entry=min((summary.first for summary in counted), default=None),
        newest_entry=max((summary.last for summary in counted), default=None),
        by_provider=_sum_by((summary.provider, summary) for summary in counted),
        by_model=_sum_by((summary.model, summary) for summary in counted),
    )


def _sum_by(summaries: Iterable[tuple[str, EntrySummary]]) -> dict[str, EntryCount]:
    """Add up entries and characters by name."""
    sums: dict[str, EntryCount] = {}
    for name, more in summaries:
        have = sums.get(name, EntryCount())
        sums[name] = EntryCount(entries=have.entries + more.entries, chars=have.chars + more.chars)
    return sums
