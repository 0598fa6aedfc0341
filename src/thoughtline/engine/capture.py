"""Turns what a reader saw of one answer into events, a turn and an index entry.

The client has its bytes before any of this runs. `take` keeps what is canonical and lets the rest
pass; `finish` gives the one batch that is written: the turn's start, the new input, the output in
arrival order, the turn's end, and the index entry under which its thoughts will be found again. No
I/O here: the caller appends the batch.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.engine.translation import Translation, shown_output
from thoughtline.log.decisions import mark, tally
from thoughtline.log.decisions import repeated as marked
from thoughtline.log.events import (
    TYPE_NAMES,
    AssistantMessage,
    Body,
    Draft,
    Outcome,
    PermissionDecision,
    Quarantined,
    Reasoning,
    StreamEvent,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.index import IndexEntry, index_entry
from thoughtline.log.keys import TurnKeys, rolling_keys, session_key, string_digest
from thoughtline.log.parts import Blob, Call, Decision, Origin, Part, Result, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay.match import RequestPath
from thoughtline.replay.plan import ReplayPlan
from thoughtline.stores.base import Batch

NOT_UTF_8 = "not UTF-8"
"""Why a thought is quarantined that cannot be sent back as it came."""
_REPLACED = re.compile(r"\ufffd|\\u[fF]{3}[dD]")


class Capture(Struct, kw_only=True, eq=False):
    """The turn of one exchange, while its answer arrives."""

    path: RequestPath
    replay_plan: ReplayPlan
    origin: Origin
    tenant: str
    clock: Clock
    session: str = ""  # empty: the parent's, or a new one
    turn: str = ""
    parent: str = ""
    wire: str = ""  # how the request went out, where there is more than one way
    ended: TurnEnded | None = None  # how the turn ended, once that is known
    damaged: bool = False  # something in the answer was not UTF-8
    translation: Translation | None = None  # where the client speaks another dialect
    decisions_mark: str = ""  # mark of the decisions that its start was written with, if it was
    _unfinished: Turn | None = None
    _started: float = 0.0
    _bodies: list[Body] = []
    _output: list[Part] = []  # the parts of the bodies

    __repr__ = object.__repr__  # nothing of what is said in it, wherever it is printed

    def __post_init__(self) -> None:
        parent, clock, path = self.replay_plan.parent, self.clock, self.path
        if parent is not None:
            self.parent = parent.turn
        if not self.session:
            self.session = parent.session if parent is not None else clock.new_id()
        if not self.turn:
            self.turn = clock.new_id()
        if path.turns and path.turns[-1].output:
            speaks = self.translation.client.name if self.translation else self.origin.dialect
            self._unfinished = _unfinished_turn(path, speaks)
        self._started = clock.wall()

    @property
    def started(self) -> float:
        """When the request left, by the wall clock."""
        return self._started

    def take(self, events: Iterable[StreamEvent]) -> None:
        """Keep what is canonical; deltas were shown live and are gone."""
        for event in events:
            if type(event) not in TYPE_NAMES:
                continue
            if type(event) is TurnEnded:
                self.ended = event
            elif type(event) is Reasoning:
                body = self._bound(event)
                self._bodies.append(body)
                self._output.append(body.thought)
            else:
                self._bodies.append(event)  # type: ignore[arg-type]
                if type(event) is AssistantMessage:
                    self._output += event.parts
                elif type(event) is ToolCall:
                    self._output.append(event.call)

    def snapshot(self, parts: Sequence[Part]) -> Turn:
        """The turn while it runs, with this for an output."""
        return Turn(
            input=self._new_input(),
            output=tuple(parts),
            id=self.turn,
            parent=self.parent,
            session=self.session,
            target=self.origin,
            started=self._started,
            replay=self.replay_plan.decisions,
            thinking_off=self.replay_plan.thinking_off,
            tools=self._begins_with_tools,
        )

    @property
    def _begins_with_tools(self) -> bool:
        """Whether a conversation begins here, and with tools."""
        return self.path.tools and not self.parent

    @property
    def output(self) -> Sequence[Part]:
        """What the model has said so far that is complete."""
        return self._output

    def _bound(self, body: Reasoning) -> Reasoning:
        """A thought learns what came before it, where its provider binds it to that."""
        prefixes = self.path.prefixes
        return Reasoning(thought=replace(body.thought, prefix=prefixes[-1])) if prefixes else body

    def finish(self, *, started: bool = False) -> Batch:
        """Everything about the turn, to be written in one transaction.

        `started`: its start and its input are in the log already.
        """
        now = self.clock.wall()
        ended = self.ended or TurnEnded(outcome=Outcome.ABORTED)
        if self.wire:
            ended = replace(ended, wire=self.wire)
        turn, new_id = self.turn, self.clock.new_id
        new_input = self._new_input()
        facts = [] if started else self._beginning(new_input)
        for body in self._bodies:
            facts.append(draft(body, new_id(), turn, now))
        facts.append(draft(ended, new_id(), turn, now))
        if self.damaged and (positions := self._unsendable()):
            thoughts = tuple(sorted(positions))
            lost = Quarantined(turn=turn, thoughts=thoughts, reason=NOT_UTF_8)
            facts.append(draft(lost, new_id(), turn, now))
        return Batch(
            id=facts[0].id,
            session=self.session,
            tenant=self.tenant,
            drafts=tuple(facts),
            index=(self._entry(new_input, ended, now),),
        )

    def _beginning(self, new_input: Sequence[Part]) -> list[Draft]:
        """The turn's start, and what is newly said in its request."""
        turn, begun, new_id = self.turn, self._started, self.clock.new_id
        facts = [draft(self._started_turn(), turn, self.parent, begun)]
        for body in input_events(new_input):
            facts.append(draft(body, new_id(), turn, begun))  # noqa: PERF401 (few)
        return facts

    def extend(self, events: Iterable[StreamEvent]) -> Batch | None:
        """What came after the turn's end, and its entry again; None where that says nothing.

        A client may have stopped at the end, or read on: the turn is found by both.
        """
        more = [event for event in events if type(event) in (Reasoning, AssistantMessage, ToolCall)]
        if not more or self.ended is None:
            return None
        now, new_input = self.clock.wall(), self._new_input()
        before = self._entry(new_input, self.ended, now)
        self.take(more)
        after = self._entry(new_input, self.ended, now)
        keys = tuple(dict.fromkeys((*after.keys, *before.keys)))
        said = self._bodies[-len(more) :]
        made = [draft(body, id=self.clock.new_id(), parent=self.turn, at=now) for body in said]
        return Batch(
            id=made[0].id,
            session=self.session,
            tenant=self.tenant,
            drafts=tuple(made),
            index=(replace(after, keys=keys),),
        )

    def _started_turn(self) -> TurnStarted:
        made = started_turn(self.origin, self.replay_plan, self._repeated())
        if self.translation:
            made = replace(made, client=self.translation.view)
        return replace(made, tools=True) if self._begins_with_tools else made

    def _entry(self, new_input: tuple[Part, ...], ended: TurnEnded, now: float) -> IndexEntry:
        turn = Turn(
            input=new_input,
            output=tuple(self._output),
            id=self.turn,
            parent=self.parent,
            session=self.session,
            target=self.origin,
            outcome=ended.outcome,
            response=ended.response,
            client=self.translation.view if self.translation else None,
            ended=now,
            unread=ended.unread,
            quarantined=self._unsendable() if self.damaged else frozenset(),
        )
        entry = index_entry(
            turn if self._unfinished is None and not self.translation else self._echoed(turn),
            self._keys(turn),
            hints=self.path.hints,
            skipped=self.replay_plan.skipped,
            decisions_mark=self.decisions_mark
            or mark(self.replay_plan.decisions, self.replay_plan.first_mark),
            spoken=True,
        )
        if self.parent:
            return entry
        names = (string_digest(self.session), *self.path.unique_hints)
        return replace(entry, keys=(*entry.keys, *[session_key(name) for name in names]))

    def _unsendable(self) -> frozenset[int]:
        """The positions of thoughts that are not what the provider sent: bytes of them are lost."""
        thoughts = [body.thought for body in self._bodies if type(body) is Reasoning]
        bad = [n for n, one in enumerate(thoughts) if _REPLACED.search(one.raw)]
        return frozenset(bad)

    def _keys(self, turn: Turn) -> TurnKeys:
        """How the turn is found again: as it stands in the next request."""
        unfinished = self._unfinished
        if unfinished is None:
            shown = self._shown(turn.output) if self.translation else turn.output
            return self.path.rolling_key.keys_for(shown)
        before = rolling_keys(self.path.turns[:-1])[1]
        before.add_input(unfinished.input)
        return before.keys_for((*unfinished.output, *turn.output))

    def _echoed(self, turn: Turn) -> Turn:
        """The turn as it will stand in the next request, behind the output that it continues."""
        if self._unfinished is None:
            return replace(turn, output=self._shown(turn.output))
        before = [_without_ids(p) for p in self._unfinished.output if type(p) is not Thought]
        return replace(turn, output=(*before, *turn.output))

    def _shown(self, output: tuple[Part, ...]) -> tuple[Part, ...]:
        """An output as the client has it, which may know tools and calls by other names."""
        translation = self.translation
        return shown_output(output, self.turn, translation.view) if translation else output

    def _repeated(self) -> int:
        """How many decisions the log has already, with the turn before."""
        before = self.replay_plan.parent
        if before is None or not before.decisions_mark or before.session != self.session:
            return 0
        plan = self.replay_plan
        return marked(plan.decisions, before.decisions_mark, plan.first_mark)

    def _new_input(self) -> tuple[Part, ...]:
        """What of the request's last input is not in the log yet."""
        if not self.path.turns:
            return ()
        last = self.path.turns[-1]
        if not last.output:
            return last.input
        if self._unfinished is None:
            return ()
        place = self.path.settled + len(self.path.turns) - 1
        known = any(r.entry for r in self.replay_plan.decisions if r.turn == place)
        return () if known else last.input


def _unfinished_turn(path: RequestPath, dialect: str) -> Turn | None:
    """The turn in whose output the request ends, where the answer goes on in that output.

    A list of items may end inside an output (a compacted history does), and the answer is echoed
    right behind it: one output of one turn.
    """
    if path.previous or not DIALECTS.get(dialect, DEFAULT).item_list:
        return None
    return path.turns[-1]


def _without_ids(part: Part) -> Part:
    """A part without the ids by which its own turn is found."""
    match part:
        case Text():
            return replace(part, id="")
        case Call():
            return replace(part, item="")
        case Blob():
            return replace(part, sealed=False)
    return part


def input_events(parts: Sequence[Part]) -> list[Body]:
    """The events of an input, in order; texts that follow one another are one message."""
    bodies: list[Body] = []
    words: list[Text | Blob] = []
    for part in parts:
        if type(part) is Text or type(part) is Blob:
            words.append(part)
            continue
        if words:
            bodies.append(UserMessage(parts=tuple(words)))
            words = []
        if type(part) is Result:
            bodies.append(ToolResult(result=part))
        elif type(part) is Decision:
            bodies.append(PermissionDecision(decision=part))
    if words:
        bodies.append(UserMessage(parts=tuple(words)))
    return bodies


def output_parts(events: Iterable[StreamEvent]) -> list[Part]:
    """The parts of an output, thoughts included, in order."""
    parts: list[Part] = []
    for event in events:
        if type(event) is Reasoning:
            parts.append(event.thought)
        elif type(event) is AssistantMessage:
            parts += event.parts
        elif type(event) is ToolCall:
            parts.append(event.call)
    return parts


def started_turn(target: Origin, replay_plan: ReplayPlan, repeated: int) -> TurnStarted:
    """The start of a turn; its first `repeated` decisions are those of the turn before."""
    made, off = replay_plan.decisions, bool(replay_plan.fields)
    if not repeated:
        return TurnStarted(target=target, replay=made, thinking_off=off)
    return TurnStarted(
        target=target,
        replay=made[repeated:],
        repeated=repeated,
        tally=tally((), replay_plan.kinds()),
        thinking_off=off,
    )
