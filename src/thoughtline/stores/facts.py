"""What a store has to know of a batch beyond its bytes: the same for every store.

Pure functions and one counter: whether a batch may be written, how its drafts become events, how
much they weigh in the statistics, which other thing an event is about, and how a memory gets its
thoughts back from the log. No I/O, no layout: each store keeps these facts in its own way.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from thoughtline.errors import Conflict, StoreError, Unreadable
from thoughtline.events import Draft, Event, Reasoning, decode
from thoughtline.memories import Memory
from thoughtline.parts import Thought
from thoughtline.stores.base import Batch, Stats, Tally

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


class Weight:
    """What some events add to the statistics of their session."""

    __slots__ = ("newest", "oldest", "tallies", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.oldest: float | None = None
        self.newest: float | None = None
        self.tallies: dict[tuple[str, str], tuple[int, int]] = {}  # provider, model → count, chars

    def add(self, drafts: Iterable[Draft]) -> None:
        """Count these too."""
        for draft in drafts:
            self.oldest = draft.at if self.oldest is None else min(self.oldest, draft.at)
            self.newest = draft.at if self.newest is None else max(self.newest, draft.at)
            if draft.type == "turn_started":
                self.turns += 1
            elif draft.type == "reasoning":
                self._think(thought(draft.version, draft.data))

    def _think(self, found: Thought | None) -> None:
        origin = found.origin if found else None
        key = (origin.provider, origin.model) if origin else ("", "")
        entries, chars = self.tallies.get(key, (0, 0))
        self.tallies[key] = (entries + 1, chars + (len(found.raw) if found else 0))


def by(rows: Iterable[tuple[str, int, int]]) -> dict[str, Tally]:
    """Counts and characters summed up by name."""
    sums: dict[str, Tally] = {}
    for name, entries, chars in rows:
        have = sums.get(name, Tally())
        sums[name] = Tally(entries=have.entries + entries, chars=have.chars + chars)
    return sums


def stats(
    *,
    sessions: int,
    events: int,
    turns: int,
    span: tuple[float | None, float | None],
    tallies: Sequence[tuple[str, str, int, int]],
) -> Stats:
    """The statistics from their parts; a tally is provider, model, thoughts, characters."""
    return Stats(
        sessions=sessions,
        events=events,
        turns=turns,
        thoughts=sum(t[2] for t in tallies),
        chars=sum(t[3] for t in tallies),
        oldest=span[0],
        newest=span[1],
        by_provider=by((provider, n, chars) for provider, _, n, chars in tallies),
        by_model=by((model, n, chars) for _, model, n, chars in tallies),
    )
