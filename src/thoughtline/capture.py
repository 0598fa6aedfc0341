"""One exchange, recorded: a reader's happenings become events, a turn and a memory.

The client has its bytes before any of this runs. `take` keeps what is canonical and lets the rest
pass; `finish` folds the turn and gives the one batch that the ledger writes: the turn's start, what
was newly said, what came out in arrival order, its end, and the memory under which its thoughts
will be found again. No I/O here: the caller appends the batch.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import repeats
from thoughtline.clock import Clock
from thoughtline.events import (
    NAMES,
    AssistantMessage,
    Body,
    Happening,
    Outcome,
    PermissionDecision,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    UserMessage,
    draft,
)
from thoughtline.keys import Keys, trail
from thoughtline.matching import Path
from thoughtline.memories import remember
from thoughtline.parts import Blob, Call, Decision, Origin, Part, Result, Text, Thought
from thoughtline.replay import Restoration
from thoughtline.stores.base import Batch
from thoughtline.turns import Turn


class Capture(Struct, kw_only=True, eq=False):
    """The record of one exchange while it happens."""

    path: Path
    restoration: Restoration
    origin: Origin
    tenant: str
    clock: Clock
    session: str = ""  # if nothing else is said, the parent's, or a new one
    turn: str = ""
    parent: str = ""
    wire: str = ""  # how the request went out, where there is more than one way
    ended: TurnEnded | None = None  # how the turn ended, once that is known
    _begun: Turn | None = None
    _started: float = 0.0
    _bodies: list[Body] = []

    __repr__ = object.__repr__  # nothing of what is said in it, wherever it is printed

    def __post_init__(self) -> None:
        parent = self.restoration.parent
        self.session = self.session or (parent.session if parent else self.clock.new_id())
        self.turn = self.clock.new_id()
        self.parent = parent.turn if parent else ""
        self._begun = _begun(self.path, self.origin)
        self._started = self.clock.wall()

    def take(self, happenings: Iterable[Happening]) -> None:
        """Keep what is canonical; deltas were shown live and are gone."""
        for happening in happenings:
            if type(happening) is TurnEnded:
                self.ended = happening
            elif type(happening) is Reasoning:
                self._bodies.append(self._bound(happening))
            elif type(happening) in NAMES:
                self._bodies.append(happening)  # type: ignore[arg-type]

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """The thoughts so far."""
        return tuple(body.thought for body in self._bodies if isinstance(body, Reasoning))

    def glimpse(self, parts: Sequence[Part]) -> Turn:
        """The turn while it runs, with this for an output."""
        return Turn(
            input=self._heard(),
            output=tuple(parts),
            id=self.turn,
            parent=self.parent,
            session=self.session,
            target=self.origin,
            started=self._started,
            replay=self.restoration.rulings,
        )

    @property
    def output(self) -> list[Part]:
        """What the model has said so far that is complete."""
        return output(self._bodies)

    def _bound(self, body: Reasoning) -> Reasoning:
        """A thought learns what came before it, where its provider binds it to that."""
        prefixes = self.path.prefixes
        return Reasoning(thought=replace(body.thought, prefix=prefixes[-1])) if prefixes else body

    def finish(self) -> Batch:
        """Everything about the turn, to be written in one transaction."""
        now = self.clock.wall()
        ended = self.ended or TurnEnded(outcome=Outcome.ABORTED)
        if self.wire:
            ended = replace(ended, wire=self.wire)
        heard = self._heard()
        start = draft(
            repeats.started(self.origin, self.restoration, self._repeated()),
            id=self.turn,
            parent=self.parent,
            at=self._started,
        )
        facts = [start]
        for bodies, at in ((said(heard), self._started), (self._bodies, now), ((ended,), now)):
            for body in bodies:
                made = draft(body, id=self.clock.new_id(), parent=self.turn, at=at)
                facts.append(made)
        turn = Turn(
            input=heard,
            output=tuple(output(self._bodies)),
            id=self.turn,
            parent=self.parent,
            session=self.session,
            target=self.origin,
            outcome=ended.outcome,
            usage=ended.usage,
            response=ended.response,
            started=self._started,
            ended=now,
        )
        memory = remember(
            self._echoed(turn),
            self._keys(turn),
            hints=self.path.hints,
            skipped=self.restoration.skipped,
            ruled=repeats.mark(self.restoration.rulings),
        )
        return Batch(
            session=self.session,
            tenant=self.tenant,
            drafts=tuple(facts),
            memories=(memory,),
        )

    def _keys(self, turn: Turn) -> Keys:
        """How the turn is found again: as it stands in the next request."""
        begun = self._begun
        if begun is None:
            return self.path.trail.keys(turn.output)
        before = trail(self.path.turns[:-1])[1]
        before.hear(begun.input)
        return before.keys((*begun.output, *turn.output))

    def _echoed(self, turn: Turn) -> Turn:
        """The turn as it will stand in the next request, what it went on from without a name."""
        if self._begun is None:
            return turn
        before = [_nameless(p) for p in self._begun.output if type(p) is not Thought]
        return replace(turn, output=(*before, *turn.output))

    def _repeated(self) -> int:
        """How many rulings the log has already, with the turn before."""
        before, rulings = self.restoration.parent, self.restoration.rulings
        here = before is not None and before.session == self.session
        return repeats.marked(rulings, before.ruled) if before is not None and here else 0

    def _heard(self) -> tuple[Part, ...]:
        last = self.path.turns[-1] if self.path.turns else None
        if last is None or not last.output:
            return last.input if last else ()
        if self._begun is None:
            return ()
        place = len(self.path.turns) - 1
        known = any(r.memory for r in self.restoration.rulings if r.turn == place)
        return () if known else last.input  # else it is in the log already


def _begun(path: Path, origin: Origin) -> Turn | None:
    """The turn that the request ends in the middle of, if it does.

    A list of items may end in one of an output (a compacted history does), and what comes
    back is echoed right behind it: one output of one turn.
    """
    if origin.dialect != "responses" or path.previous or not path.turns:
        return None
    last = path.turns[-1]
    return last if last.output else None


def _nameless(part: Part) -> Part:
    """A part that is somebody else's to be found by."""
    match part:
        case Text():
            return replace(part, id="")
        case Call():
            return replace(part, item="")
        case Blob():
            return replace(part, sealed=False)
    return part


def said(parts: Sequence[Part]) -> list[Body]:
    """The events of an input, in order: what people said is one message as far as it goes."""
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


def output(told: Iterable[Happening]) -> list[Part]:
    """What the model said, thoughts included, in order."""
    parts: list[Part] = []
    for happening in told:
        if type(happening) is Reasoning:
            parts.append(happening.thought)
        elif type(happening) is AssistantMessage:
            parts += happening.parts
        elif type(happening) is ToolCall:
            parts.append(happening.call)
    return parts
