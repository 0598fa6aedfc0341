"""The tree: a session's events folded into turns, its paths and branches.

Folding is incremental: `apply` takes one event in constant time, whatever came before, so that a
live session and one read from disk are the same code. A fork refers to a turn of another session
and copies nothing; `path` follows such a reference through a look-up the caller gives.
Events of unknown types are counted and skipped.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from msgspec.structs import replace

from thoughtline.errors import ThoughtlineError
from thoughtline.events import (
    AssistantMessage,
    Body,
    Event,
    PermissionDecision,
    Quarantined,
    Reasoning,
    SessionForked,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from thoughtline.parts import Part
from thoughtline.turns import Turn

_ALL = -1
"""In the place of positions: every thought of the turn."""


class _Draft:
    """A turn while its events arrive; frozen on demand."""

    __slots__ = ("facts", "input", "lost", "output", "quarantined", "turn")

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        self.input: list[Part] = []
        self.output: list[Part] = []
        self.quarantined: set[int] = set()
        self.lost = 0  # rulings that it repeats, and that no turn of this log has
        self.turn: Turn | None = None

    def frozen(self) -> Turn:
        if self.turn is None:
            turn = Turn(input=tuple(self.input), output=tuple(self.output), **self.facts)
            self.turn = _barred(turn, self.quarantined)
        return self.turn


def _barred(turn: Turn, positions: Collection[int]) -> Turn:
    """The turn with these of its thoughts in quarantine, too."""
    if not positions:
        return turn
    named = frozenset(positions) - {_ALL}
    if _ALL in positions:
        named |= frozenset(range(len(turn.thoughts)))
    return replace(turn, quarantined=turn.quarantined | named)


def _replayed(before: _Draft | None, body: TurnStarted) -> tuple[Any, ...]:
    """All rulings of a turn: those it repeats stand with the turn before."""
    if before is None or not body.repeated:
        return body.replay
    return (*before.facts["replay"][: max(0, body.repeated - before.lost)], *body.replay)


class Session:
    """A session as folded so far."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.seq = -1  # of the last event applied
        self.origin: SessionForked | None = None  # where this session was forked from
        self.skipped = 0  # events this version does not know, or that belong to no turn
        self._drafts: dict[str, _Draft] = {}
        self._children: dict[str, list[str]] = {}
        self.barred: dict[str, set[int]] = {}  # quarantined thoughts of turns it goes on from

    def apply(self, event: Event) -> None:
        """Take in the next event. Raises when one is missing: a log has no gaps."""
        if event.seq != self.seq + 1:
            raise ThoughtlineError(
                f"session {self.id!r}: expected event {self.seq + 1}, got {event.seq}; "
                "read the session again from the start"
            )
        body = event.body()
        self.seq = event.seq
        if body is None:
            self.skipped += 1
        elif isinstance(body, TurnStarted):
            self._start(event, body)
        elif isinstance(body, SessionForked):
            self.origin = body
        elif isinstance(body, Quarantined):
            self._quarantine(body)
        else:
            self._extend(event, body)

    def extend(self, events: Iterable[Event]) -> "Session":
        """Take in many events; returns itself, so that folding reads as one expression."""
        for event in events:
            self.apply(event)
        return self

    def _start(self, event: Event, body: TurnStarted) -> None:
        if event.id in self._drafts:
            self.skipped += 1  # a turn starts once
            return
        before = self._drafts.get(event.parent)
        draft = self._drafts[event.id] = _Draft(
            id=event.id,
            parent=event.parent,
            session=self.id,
            target=body.target,
            started=event.at,
            replay=_replayed(before, body),
        )
        draft.lost = min(before.lost, body.repeated) if before else body.repeated
        self._children.setdefault(event.parent, []).append(event.id)

    def _quarantine(self, body: Quarantined) -> None:
        if draft := self._drafts.get(body.turn):
            draft.quarantined.update(body.thoughts or (_ALL,))
            draft.turn = None
        else:
            self.barred.setdefault(body.turn, set()).update(body.thoughts or (_ALL,))

    def _extend(self, event: Event, body: Body) -> None:
        draft = self._drafts.get(event.parent)
        if draft is None:
            self.skipped += 1
            return
        draft.turn = None
        match body:
            case UserMessage():
                draft.input.extend(body.parts)
            case ToolResult():
                draft.input.append(body.result)
            case PermissionDecision():
                draft.input.append(body.decision)
            case Reasoning():
                draft.output.append(body.thought)
            case AssistantMessage():
                draft.output.extend(body.parts)
            case ToolCall():
                draft.output.append(body.call)
            case TurnEnded():
                draft.facts |= {
                    "outcome": body.outcome,
                    "reason": body.reason,
                    "usage": body.usage,
                    "response": body.response,
                    "ended": event.at,
                }

    # -- reading the tree --------------------------------------------------------------------

    def turn(self, id: str) -> Turn:
        """One turn by its id."""
        if id not in self._drafts:
            raise ThoughtlineError(f"session {self.id!r} has no turn {id!r}")
        return self._drafts[id].frozen()

    @property
    def turns(self) -> list[Turn]:
        """All turns in the order they started."""
        return [draft.frozen() for draft in self._drafts.values()]

    def children(self, turn: str) -> list[str]:
        """Ids of the turns that go on from this one; more than one is a branch."""
        return list(self._children.get(turn, ()))

    @property
    def heads(self) -> list[str]:
        """Ids of the turns that nothing goes on from, in the order they started."""
        return [id for id in self._drafts if id not in self._children]

    @property
    def branches(self) -> list[str]:
        """Ids of the turns after which the conversation divides."""
        return [id for id, kids in self._children.items() if id and len(kids) > 1]

    def path(self, turn: str, elsewhere: "Callable[[str], Session] | None" = None) -> list[Turn]:
        """The turns from the root to this one; `elsewhere` finds the session a fork refers to."""
        back: list[Turn] = []
        barred = dict(self.barred)
        session: Session = self
        seen: set[tuple[str, str]] = set()
        while turn:
            if (session.id, turn) in seen:
                raise ThoughtlineError(f"session {session.id!r}: turn {turn!r} is its own ancestor")
            seen.add((session.id, turn))
            if draft := session._drafts.get(turn):
                back.append(_barred(draft.frozen(), barred.get(turn, ())))
                turn = back[-1].parent
            elif session.origin is not None and elsewhere is not None:
                session = elsewhere(session.origin.session)
                for id, positions in session.barred.items():
                    barred[id] = barred.get(id, set()) | positions
            else:
                raise ThoughtlineError(f"session {session.id!r} has no turn {turn!r}")
        return back[::-1]
