"""A session: its events folded into a tree of turns, with paths and branches.

Folding is incremental: `apply` takes one event in constant time, so a live session and one read
from disk use the same code. A fork refers to a turn of another session and copies nothing; `path`
follows the reference with a look-up function that the caller gives. Events of unknown types, and
those that cannot be read, are counted and skipped: one that is damaged does not hide the others.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from thoughtline.errors import TurnNotFound, Unreadable
from thoughtline.log.decisions import ReplayDecision
from thoughtline.log.events import (
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
from thoughtline.log.parts import UNREADABLE_THOUGHT, Origin, Part
from thoughtline.log.turns import Turn
from thoughtline.log.usage import Usage, usage_of

T = TypeVar("T")

ALL_THOUGHTS = -1
"""Stands among positions for every thought of the turn."""


class TurnTree(Generic[T]):
    """The tree of a session's turns, whatever is kept of each turn."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.seq = -1  # of the last event applied
        self.origin: SessionForked | None = None  # where this session was forked from
        self._turns: dict[str, T] = {}  # in the order they started
        self._children: dict[str, list[str]] = {}
        self._with_tools: set[str] = set()  # turns that a conversation with tools begins with

    def add(self, id: str, parent: str, turn: T, *, tools: bool = False) -> None:
        """Add a turn that goes on from `parent`."""
        self._turns[id] = turn
        self._children.setdefault(parent, []).append(id)
        if tools:
            self._with_tools.add(id)

    def children(self, turn: str) -> list[str]:
        """Return the ids of the turns that go on from this one; more than one is a branch."""
        return list(self._children.get(turn, ()))

    @property
    def heads(self) -> list[str]:
        """Ids of the turns that nothing goes on from, in the order they started."""
        aside = self.side_requests
        return [id for id in self._turns if id not in self._children and id not in aside]

    @property
    def side_requests(self) -> frozenset[str]:
        """Turns beside the conversation: a client asks for a title or a summary, say.

        Such a turn begins again, without the tools that the conversation has, and nothing goes on
        from it.
        """
        begun = self._children.get("", ())
        if len(begun) < 2 or not self._with_tools:
            return frozenset()
        return frozenset(
            id for id in begun if id not in self._with_tools and id not in self._children
        )

    @property
    def branch_points(self) -> dict[str, list[str]]:
        """The turns after which the conversation divides ("": the start), and what follows them."""
        aside = self.side_requests
        after = ((id, [k for k in kids if k not in aside]) for id, kids in self._children.items())
        return {id: kids for id, kids in after if len(kids) > 1}


class _Draft:
    """A turn while its events arrive; `frozen` makes the `Turn` on demand."""

    __slots__ = ("fields", "input", "missing", "output", "quarantined", "turn", "whole")

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.input: list[Part] = []
        self.output: list[Part] = []
        self.quarantined: set[int] = set()
        self.missing = 0  # decisions that it repeats and that no turn of this session has
        self.whole = True  # nothing of it but thoughts is unreadable
        self.turn: Turn | None = None

    def frozen(self) -> Turn:
        if self.turn is None:
            turn = Turn(input=tuple(self.input), output=tuple(self.output), **self.fields)
            self.turn = with_quarantine(turn, self.quarantined)
        return self.turn


def _usage(event: Event, body: TurnEnded, target: Origin | None) -> Usage | None:
    dialect = target.dialect if target is not None else ""
    return usage_of(body.usage, version=event.version, dialect=dialect)


def with_quarantine(turn: Turn, positions: Collection[int]) -> Turn:
    """Return the turn with these of its thoughts in quarantine, too."""
    if not positions:
        return turn
    added = frozenset(positions) - {ALL_THOUGHTS}
    if ALL_THOUGHTS in positions:
        added |= frozenset(range(len(turn.thoughts)))
    return replace(turn, quarantined=turn.quarantined | added)


def _all_decisions(before: _Draft | None, body: TurnStarted) -> tuple[ReplayDecision, ...]:
    """Return all decisions of a turn: those that it repeats are written with the turn before."""
    if before is None or not body.repeated:
        return body.replay
    return (*before.fields["replay"][: max(0, body.repeated - before.missing)], *body.replay)


class Session(TurnTree[_Draft]):
    """A session, folded from the events that were applied so far."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.skipped = 0  # events that this version cannot read, or that belong to no turn
        self.damaged = 0  # of those, how many it should be able to read
        self.quarantined: dict[
            str, set[int]
        ] = {}  # thoughts of turns in the sessions it forks from

    def apply(self, event: Event) -> None:
        """Apply the next event. Raises `Unreadable` when one is missing: a log has no gaps."""
        if event.seq != self.seq + 1:
            raise Unreadable(
                f"session {self.id!r}: expected event {self.seq + 1}, got {event.seq}; "
                "read the session again from the start"
            )
        self.seq = event.seq
        try:
            body = event.body()
        except Unreadable:
            self._leave_out(event)
            return
        if body is None:
            self._skip(event)
        elif isinstance(body, TurnStarted):
            self._start(event, body)
        elif isinstance(body, SessionForked):
            self.origin = body
        elif isinstance(body, Quarantined):
            self._quarantine(body)
        else:
            self._extend(event, body)

    def extend(self, events: Iterable[Event]) -> "Session":
        """Apply many events; returns the session itself, so that folding is one expression."""
        for event in events:
            self.apply(event)
        return self

    def _skip(self, event: Event) -> None:
        """Leave out an event of a newer version; the places of a turn's thoughts stay known."""
        self.skipped += 1
        draft = self._turns.get(event.parent)
        if draft is not None and event.type == "reasoning":
            draft.turn = None
            draft.output.append(UNREADABLE_THOUGHT)

    def _leave_out(self, event: Event) -> None:
        """Leave out a damaged event; one that is not known to be of another turn is of the last."""
        self._skip(event)
        self.damaged += 1
        if event.type in ("reasoning", "turn_started"):
            return
        last = next(reversed(self._turns), "")
        draft = self._turns.get(event.parent or last)
        if draft is not None:
            draft.whole = False

    def _start(self, event: Event, body: TurnStarted) -> None:
        if event.id in self._turns:
            self.skipped += 1  # a turn starts once
            return
        before = self._turns.get(event.parent)
        draft = _Draft(
            id=event.id,
            parent=event.parent,
            session=self.id,
            target=body.target,
            started=event.at,
            replay=_all_decisions(before, body),
            thinking_off=body.thinking_off,
            system=body.system,
            client=body.client,
            tools=body.tools,
        )
        draft.missing = min(before.missing, body.repeated) if before else body.repeated
        self.add(event.id, event.parent, draft, tools=body.tools)

    def _quarantine(self, body: Quarantined) -> None:
        if draft := self._turns.get(body.turn):
            draft.quarantined.update(body.thoughts or (ALL_THOUGHTS,))
            draft.turn = None
        else:
            self.quarantined.setdefault(body.turn, set()).update(body.thoughts or (ALL_THOUGHTS,))

    def _extend(self, event: Event, body: Body) -> None:
        draft = self._turns.get(event.parent)
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
                draft.fields |= {
                    "outcome": body.outcome,
                    "reason": body.reason,
                    "usage": _usage(event, body, draft.fields["target"]),
                    "response": body.response,
                    "ended": event.at,
                    "first_output": body.first_output,
                    "unread": body.unread,
                }

    # -- reading the tree --------------------------------------------------------------------

    def turn(self, id: str) -> Turn:
        """Return a turn by its id."""
        if id not in self._turns:
            raise TurnNotFound(f"session {self.id!r} has no turn {id!r}")
        return self._turns[id].frozen()

    @property
    def turns(self) -> list[Turn]:
        """All turns in the order they started."""
        return [draft.frozen() for draft in self._turns.values()]

    @property
    def whole_turns(self) -> list[Turn]:
        """All turns of which everything but thoughts can be read."""
        return [draft.frozen() for draft in self._turns.values() if draft.whole]

    @property
    def branches(self) -> list[str]:
        """Ids of the turns after which the conversation divides."""
        return [id for id in self.branch_points if id]

    def path(self, turn: str, find_session: "Callable[[str], Session] | None" = None) -> list[Turn]:
        """Return the turns from the root to this one.

        `find_session` returns the session that a fork refers to, by its id.
        """
        back: list[Turn] = []
        quarantined = dict(self.quarantined)
        session: Session = self
        seen: set[tuple[str, str]] = set()
        while turn:
            if (session.id, turn) in seen:
                raise Unreadable(f"session {session.id!r}: turn {turn!r} is its own ancestor")
            seen.add((session.id, turn))
            if draft := session._turns.get(turn):
                if not draft.whole:
                    raise Unreadable(
                        f"session {session.id!r}: a part of turn {turn!r} cannot be read"
                    )
                back.append(with_quarantine(draft.frozen(), quarantined.get(turn, ())))
                turn = back[-1].parent
            elif session.origin is not None and find_session is not None:
                session = find_session(session.origin.session)
                for id, positions in session.quarantined.items():
                    quarantined[id] = quarantined.get(id, set()) | positions
            else:
                raise TurnNotFound(f"session {session.id!r} has no turn {turn!r}")
        return back[::-1]
