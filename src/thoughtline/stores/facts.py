"""What a store has to know of a batch beyond its bytes: the same for every store.

Pure functions and one counter: whether a batch may be written, how its drafts become events, how
much they weigh in the statistics, which other thing an event is about, how a memory gets its
thoughts back from the log, which entries it makes, and what is left of a thought that is to be
forgotten. No I/O, no layout: each store keeps these facts in its own way.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from thoughtline.errors import Conflict, StoreError, Unreadable
from thoughtline.events import VERSIONS, Draft, Event, Reasoning, decode
from thoughtline.memories import Memory
from thoughtline.parts import Carrier, Thought
from thoughtline.stores.base import Batch, Entry, Filter, Stats, Tally

SEPARATOR = "\x1e"
"""Never part of a JSON text (control characters are escaped there), so stores may use it."""


class Refusal(Struct, frozen=True):
    """The part of a `quarantined` body that is the same in every version."""

    turn: str
    thoughts: tuple[int, ...] = ()


class _Fork(Struct, frozen=True):
    session: str


_refusals = msgspec.json.Decoder(Refusal)
_forks = msgspec.json.Decoder(_Fork)
_UNCLEAR = (msgspec.MsgspecError, ValueError, RecursionError)


def check(batch: Batch) -> None:
    """Refuse what no store can keep: the caller made a mistake, trying again will not help."""
    for memory in batch.memories:
        if memory.session != batch.session:
            raise StoreError(
                f"a memory of session {memory.session!r} cannot be filed "
                f"with session {batch.session!r}"
            )
    for draft in batch.drafts:
        if SEPARATOR in draft.data:
            raise StoreError(f"the data of event {draft.id!r} is not JSON text")


def conflict(batch: Batch, tenant: str | None, last: int) -> Conflict | None:
    """Why the batch may not follow event `last`; `tenant` is the session's, None if it is new."""
    if tenant is not None and tenant != batch.tenant:
        return Conflict(f"session {batch.session!r} belongs to somebody else; choose another id")
    if batch.expect is not None and batch.expect != last:
        return Conflict(
            f"session {batch.session!r} stands at event {last}, not {batch.expect}: "
            "somebody else wrote to it; read it again and retry"
        )
    return None


def number(batch: Batch, last: int) -> list[Event]:
    """The batch's events, numbered on from `last`."""
    return [
        Event(
            session=batch.session,
            seq=seq,
            id=draft.id,
            parent=draft.parent,
            at=draft.at,
            type=draft.type,
            version=draft.version,
            data=draft.data,
        )
        for seq, draft in enumerate(batch.drafts, last + 1)
    ]


POINTING = frozenset({"quarantined", "session_forked"})
"""Events that are about something else."""


def about(type: str, data: str) -> str | None:
    """The turn a refusal is about, or the session a fork goes on from; None for other events."""
    if type == "quarantined":
        found = refusal(data)
        return found.turn if found else None
    if type == "session_forked":
        try:
            return _forks.decode(data).session
        except _UNCLEAR:
            return None
    return None


def refusal(data: str) -> Refusal | None:
    """What a `quarantined` event says, whatever its version; None when it says nothing clear."""
    try:
        return _refusals.decode(data)
    except _UNCLEAR:
        return None


def thought(version: int, data: str) -> Thought | None:
    """The thought of a reasoning event, or None when this version cannot read it."""
    try:
        body = decode("reasoning", version, data)
    except Unreadable:
        return None
    return body.thought if isinstance(body, Reasoning) else None


def recall(
    memory: Memory, reasoning: Iterable[tuple[int, str]], refusals: Sequence[Refusal] = ()
) -> Memory:
    """A memory with the thoughts that the log has for its turn, and what was refused of them."""
    thoughts: list[Thought] = []
    for version, data in reasoning:
        found = thought(version, data)
        if found is None:  # with one missing, no position is certain: better none than a wrong one
            thoughts = []
            break
        thoughts.append(found)
    quarantined = memory.quarantined
    for said in refusals:
        quarantined |= frozenset(said.thoughts or range(len(thoughts)))
    return msgspec.structs.replace(memory, thoughts=tuple(thoughts), quarantined=quarantined)


def forgotten(batch: Batch, which: Filter) -> tuple[Batch, int]:
    """A batch without the memories that are meant, their thoughts blank, and how many entries."""
    doomed = [memory for memory in batch.memories if matches(which, batch.tenant, memory)]
    turns = {memory.turn for memory in doomed}
    drafts: list[Draft] = []
    for draft in batch.drafts:
        if draft.type == "reasoning" and draft.parent in turns:
            version, data = blank(draft.version, draft.data)
            drafts.append(msgspec.structs.replace(draft, version=version, data=data))
        else:
            drafts.append(draft)
    memories = tuple(memory for memory in batch.memories if memory.turn not in turns)
    kept = msgspec.structs.replace(batch, drafts=tuple(drafts), memories=memories)
    return kept, sum(filing(memory).entries for memory in doomed)


class Weight(Struct):
    """What some events add to the statistics of their session."""

    turns: int = 0
    oldest: float | None = None
    newest: float | None = None

    def add(self, drafts: Sequence[Draft]) -> None:
        """Count these too."""
        if drafts:
            times = [draft.at for draft in drafts]
            turns = [draft.type for draft in drafts].count("turn_started")
            self._count(turns, min(times), max(times))

    def join(self, other: "Weight") -> None:
        """Count what another one has counted."""
        if other.oldest is not None and other.newest is not None:
            self._count(other.turns, other.oldest, other.newest)

    def _count(self, turns: int, oldest: float, newest: float) -> None:
        self.turns += turns
        self.oldest = oldest if self.oldest is None else min(self.oldest, oldest)
        self.newest = newest if self.newest is None else max(self.newest, newest)


class Filing(Struct, frozen=True, gc=False):
    """What of a memory the statistics and filters look at."""

    provider: str
    model: str
    entries: int  # one for each tool call, or one; none without a thought
    chars: int
    first: float  # when it was filed, the first and the last of them where these are sums
    last: float


def filing(memory: Memory) -> Filing:
    """The facts under which a memory is counted and filtered."""
    origin = memory.origin
    entries = max(1, len(memory.calls)) if "t" in memory.outline else 0
    model = origin.asked or origin.model
    return Filing(origin.provider, model, entries, memory.chars * entries, memory.at, memory.at)


def matches(which: Filter, tenant: str, memory: Memory) -> bool:
    """Whether a filter means the entries of this memory."""
    found = filing(memory)
    return (
        found.entries > 0
        and which.tenant in {None, tenant}
        and which.provider in {None, found.provider}
        and which.model in {None, found.model}
        and (which.call is None or which.call in memory.calls)
    )


def entry(
    memory: Memory,
    position: tuple[int, int],
    call: str,
    *,
    tenant: str,
    touched: float,
    thoughts: tuple[Thought, ...] = (),
) -> Entry:
    """A memory as it is listed, under one of its calls."""
    found = filing(memory)
    return Entry(
        position=position,
        tenant=tenant,
        session=memory.session,
        turn=memory.turn,
        call=call,
        provider=found.provider,
        model=found.model,
        outcome=memory.outcome,
        chars=memory.chars,
        at=memory.at,
        touched=touched,
        thoughts=thoughts,
    )


_encode = msgspec.json.Encoder().encode


def blank(version: int, data: str) -> tuple[int, str]:
    """What is left of a reasoning event's data, and its version: when and where, but not what."""
    found = thought(version, data)
    left = Thought(
        carrier=found.carrier if found else Carrier.REASONING_CONTENT,
        raw="null",
        origin=found.origin if found else None,
        timing=found.timing if found else None,
        forgotten=True,
    )
    return VERSIONS["reasoning"], _encode(Reasoning(thought=left)).decode()


def stats(
    *,
    sessions: int,
    events: int,
    turns: int,
    span: tuple[float | None, float | None],
    filings: Iterable[Filing],
) -> Stats:
    """The statistics from their parts; filings may be sums of several."""
    held = [filing for filing in filings if filing.entries]
    return Stats(
        sessions=sessions,
        events=events,
        turns=turns,
        oldest=span[0],
        newest=span[1],
        entries=sum(filing.entries for filing in held),
        chars=sum(filing.chars for filing in held),
        oldest_entry=min((filing.first for filing in held), default=None),
        newest_entry=max((filing.last for filing in held), default=None),
        by_provider=_by((filing.provider, filing) for filing in held),
        by_model=_by((filing.model, filing) for filing in held),
    )


def _by(filings: Iterable[tuple[str, Filing]]) -> dict[str, Tally]:
    """Counts and characters summed up by name."""
    sums: dict[str, Tally] = {}
    for name, filing in filings:
        have = sums.get(name, Tally())
        sums[name] = Tally(entries=have.entries + filing.entries, chars=have.chars + filing.chars)
    return sums
