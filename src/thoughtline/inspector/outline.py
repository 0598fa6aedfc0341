"""A session in outline: its turns, their tree and their counts, without what was said.

An outline is enough for a listing, and tells which events a page of turns is folded from. It is
folded as the log grows, and kept in memory, so it is a second fold beside `log.sessions.Session`:
that one keeps what was said (2,000 turns: 36 MB against 1.5), and repeats each turn's decisions.
The tree of turns is the same code.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import Struct, convert

from thoughtline.errors import Unreadable
from thoughtline.inspector.shapes import DecisionCounts
from thoughtline.log.decisions import ReplayDecision, new_decisions, tally
from thoughtline.log.events import (
    DAMAGED_VERSION,
    AssistantMessage,
    Body,
    Event,
    Quarantined,
    SessionForked,
    ToolCall,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from thoughtline.log.parts import Origin
from thoughtline.log.sessions import ALL_THOUGHTS, TurnTree
from thoughtline.log.titles import raw_title, title_of
from thoughtline.log.turn_counts import ended_counts
from thoughtline.log.usage import Usage, usage_of

_MESSAGES = ("user_message", "assistant_message")
_READ = frozenset({*_MESSAGES, "tool_call", "turn_ended", "quarantined", "session_forked"})
"""Types of the events that an outline is made of, beside the starts of turns."""


class TurnOutline(Struct):
    """One turn in outline."""

    id: str
    parent: str
    first: int  # seq of its first event, and of its last
    last: int
    provider: str = ""
    model: str = ""
    outcome: str | None = None
    counts: DecisionCounts = DecisionCounts()
    replay: tuple[ReplayDecision, ...] = ()  # decisions that are new with this turn
    repeated: int = 0  # how many decisions of the turn before come first
    thinking_off: bool = False
    dialect: str = ""
    endpoint: str = ""
    asked: str = ""  # the model as asked for
    client: str = ""  # the dialect of a client that speaks another one
    started: float = 0.0
    ended: float | None = None
    reason: str = ""
    usage: Usage | None = None
    calls: tuple[str, ...] = ()  # names of the tools that it called
    tools: bool = False  # a conversation begins with it, and the request declared tools


class SessionOutline(TurnTree[TurnOutline]):
    """A session as far as it was read."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.quarantined: dict[str, set[int]] = {}  # turn → positions among its thoughts
        self.title = ""  # the first question; until there is one, the first answer
        self._asked = False
        self._named_by = ""  # the turn whose question that is
        self.thoughts = 0
        self.damaged = False  # an event that an outline is made of, or a thought, is damaged
        self.totals = Counter[str]()  # decisions by kind, each once however often it is repeated
        self.spent: dict[tuple[str, str], Counter[str]] = {}  # provider, model → tokens, turns
        self._resolved = ""  # the turn whose decisions were asked for last
        self._resolved_decisions: tuple[tuple[ReplayDecision, ...], int] = ((), 0)
        self._replayed: dict[str, int] = {}
        self._replayed_turns = 0  # how many turns are counted in that

    @property
    def turns(self) -> dict[str, TurnOutline]:
        """The turns by their ids, in the order they started."""
        return self._turns

    def apply(self, event: Event) -> None:
        """Take in the next event. Bodies that nothing here depends on are not decoded."""
        self.seq = event.seq
        if event.type == "turn_started":
            self._start(event)
            return
        if (turn := self.turns.get(event.parent)) is not None:
            turn.last = event.seq
        if event.version == DAMAGED_VERSION:
            self.damaged = True
        if event.type == "reasoning":
            self.thoughts += 1
        elif event.type in _READ and not (self._asked and event.type in _MESSAGES):
            self._take(turn, event, self._readable_body(event))

    def _take(self, turn: TurnOutline | None, event: Event, body: Body | None) -> None:
        """Take in what an event says; without a body it is damaged, or of a newer version."""
        match body:
            case UserMessage() | AssistantMessage():
                self._name(event.parent, body)
            case ToolCall() if turn is not None:
                turn.calls = (*turn.calls, body.call.name)
            case TurnEnded() if turn is not None:
                self._end(turn, event, body)
            case Quarantined():
                positions = body.thoughts or (ALL_THOUGHTS,)
                self.quarantined.setdefault(body.turn, set()).update(positions)
            case SessionForked():
                self.origin = body

    def _name(self, turn: str, body: UserMessage | AssistantMessage) -> None:
        words = title_of(body.parts)
        self._asked = isinstance(body, UserMessage) and bool(words)
        self._named_by = turn if self._asked else ""
        self.title = words if self._asked else self.title or words or raw_title(body.parts)

    def _end(self, turn: TurnOutline, event: Event, body: TurnEnded) -> None:
        turn.outcome = str(body.outcome)
        turn.reason = body.reason
        turn.ended = event.at
        turn.usage = usage_of(body.usage, version=event.version, dialect=turn.dialect)
        turn.model = body.model or turn.model
        spent = self.spent.setdefault((turn.provider, turn.model), Counter())
        spent.update({"turns": 1, **ended_counts(body, turn.usage, turn.endpoint)})

    def _start(self, event: Event) -> None:
        if event.id in self.turns:
            return  # a turn starts once
        body = self._readable_body(event)
        if not isinstance(body, TurnStarted):  # damaged, or of a newer version
            body = TurnStarted()
        target = body.target or Origin()
        turn = TurnOutline(
            id=event.id,
            parent=event.parent,
            first=event.seq,
            last=event.seq,
            provider=target.provider,
            model=target.model,
            counts=counts_at_start(body),
            replay=body.replay,
            repeated=body.repeated,
            thinking_off=body.thinking_off,
            dialect=target.dialect,
            endpoint=target.endpoint,
            asked=target.asked or target.model,
            client=body.client.dialect if body.client else "",
            started=event.at,
            tools=body.tools,
        )
        self.totals.update(tally(new_decisions(body.replay, event.parent)))
        if body.tools and self._named_by not in self._with_tools:
            self._asked, self._named_by = False, ""  # a client's side request came first
        self.add(event.id, event.parent, turn, tools=body.tools)

    def _readable_body(self, event: Event) -> Body | None:
        """The event's body; None where it is damaged or of a newer version."""
        try:
            return event.body()
        except Unreadable:
            self.damaged = True
            return None

    # -- reading it ------------------------------------------------------------------------------

    def decisions(self, turn: str) -> tuple[ReplayDecision, ...]:
        """All decisions of a turn, also those that it repeats from the turns before it.

        Asked for turn after turn, each goes on from the one before.
        """
        resolved = self._resolve(turn)
        self._resolved, self._resolved_decisions = turn, resolved
        return resolved[0]

    def _resolve(self, turn: str) -> tuple[tuple[ReplayDecision, ...], int]:
        """All decisions of a turn, and how many of the first ones no turn of this session has."""
        pieces: list[tuple[ReplayDecision, ...]] = []
        found, wanted = self.turns.get(turn), sys.maxsize
        while found is not None and wanted:
            if found.id == self._resolved:
                known, lost = self._resolved_decisions
                pieces.append(known[: max(0, wanted - lost)])
                wanted = min(wanted, lost)
                break
            pieces.append(found.replay[: max(0, wanted - found.repeated)])
            wanted = min(wanted, found.repeated)
            found = self._before(found)
        return tuple(chain.from_iterable(reversed(pieces))), wanted

    def _before(self, turn: TurnOutline) -> TurnOutline | None:
        """The turn whose decisions a turn repeats."""
        before = self.turns.get(turn.parent)
        return before if before is not None and before.first < turn.first else None

    @property
    def replayed(self) -> dict[str, int]:
        """How many requests carried the thoughts of each turn back."""
        if self._replayed_turns != len(self.turns):
            after: dict[str, list[TurnOutline]] = {}
            for turn in self.turns.values():
                before = self._before(turn)
                after.setdefault(before.id if before else "", []).append(turn)
            self._replayed = count_replayed(after)
            self._replayed_turns = len(self.turns)
        return self._replayed

    def carried(self, turns: Sequence[TurnOutline]) -> dict[str, int]:
        """The turns whose thoughts these turns sent back, and how many requests did so by now."""
        back = {one.entry for turn in turns for one in self.decisions(turn.id) if one.carried}
        return {id: n for id in back if (n := self.replayed.get(id))}

    @property
    def status(self) -> str | None:
        """How the last turn ended; `running`: it has not; None without turns."""
        last = next(reversed(self.turns.values()), None)
        return None if last is None else last.outcome or "running"


class _CarriedEntries:
    """The entries that a request carries, while requests are gone through branch by branch.

    Each is counted from when it comes in until it goes, not once per request: a request repeats
    nearly everything of the one before.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.path: list[str] = []  # by position; empty: nothing was carried there
        self._requests = 0
        self._since: dict[str, tuple[int, int]] = {}  # entry → how often in the path, since when

    def enter(self, turn: TurnOutline) -> list[str]:
        """Go on to a turn; returns what it does not repeat."""
        left = self.path[turn.repeated :]
        self.cut(turn.repeated)
        self.path += [""] * (turn.repeated - len(self.path))  # of a turn that is not here
        for one in turn.replay:
            self._add(one.entry if one.carried else "")
        self._requests += 1
        return left

    def leave(self, turn: TurnOutline, left: list[str], length: int) -> None:
        """Go back to before a turn."""
        self.cut(min(turn.repeated, length))
        for entry in left:
            self._add(entry)

    def cut(self, length: int) -> None:
        """Truncate the path to this length."""
        while len(self.path) > length:
            entry = self.path.pop()
            if entry:
                times, since = self._since.pop(entry)
                if times > 1:
                    self._since[entry] = (times - 1, since)
                else:
                    self.counts[entry] = self.counts.get(entry, 0) + self._requests - since

    def _add(self, entry: str) -> None:
        self.path.append(entry)
        if entry:
            times, since = self._since.get(entry, (0, self._requests))
            self._since[entry] = (times + 1, since)


def count_replayed(after: Mapping[str, Sequence[TurnOutline]]) -> dict[str, int]:
    """Count the requests that carried each entry back; `after` are the turns after each turn."""
    carried = _CarriedEntries()
    steps: list[tuple[TurnOutline, list[str] | None, int]] = [
        (turn, None, 0) for turn in reversed(after.get("", ()))
    ]
    while steps:
        turn, left, length = steps.pop()
        if left is not None:
            carried.leave(turn, left, length)
            continue
        length = len(carried.path)
        left = carried.enter(turn)
        steps.append((turn, left, length))
        steps += [(later, None, 0) for later in reversed(after.get(turn.id, ()))]
    carried.cut(0)
    return {entry: count for entry, count in carried.counts.items() if count}


def counts_at_start(body: TurnStarted) -> DecisionCounts:
    """How many of a turn's decisions are of each kind, the repeated ones included."""
    return convert(body.tally if body.repeated else tally(body.replay), DecisionCounts)
