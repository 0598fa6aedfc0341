"""One exchange, recorded: a reader's happenings become events, a turn and a memory.

The client has its bytes before any of this runs. `take` keeps what is canonical and lets the rest
pass; `finish` folds the turn and gives the one batch that the ledger writes: the turn's start, what
was newly said, what came out in arrival order, its end, and the memory under which its thoughts
will be found again. No I/O here: the caller appends the batch.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from thoughtline import repeats
from thoughtline.clock import Clock
from thoughtline.events import (
    NAMES,
    AssistantMessage,
    Body,
    Draft,
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


class Capture:
    """The record of one exchange while it happens."""

    def __init__(
        self,
        *,
        path: Path,
        restoration: Restoration,
        origin: Origin,
        tenant: str,
        clock: Clock,
        session: str = "",
    ) -> None:
        parent = restoration.parent
        self.clock = clock
        self.tenant = tenant
        self.session = session or (parent.session if parent else clock.new_id())
        self.turn = clock.new_id()
        self.parent = parent.turn if parent else ""
        self.origin = origin
        self.wire = ""  # how the request went out, where there is more than one way
        self._path = path
        self._begun = _begun(path, origin)
        self._restoration = restoration
        self._started = clock.wall()
        self._bodies: list[Body] = []
        self._ended: TurnEnded | None = None

    def take(self, happenings: Iterable[Happening]) -> None:
        """Keep what is canonical; deltas were shown live and are gone."""
        for happening in happenings:
            if type(happening) is TurnEnded:
                self._ended = happening
            elif type(happening) is Reasoning:
                self._bodies.append(self._bound(happening))
            elif type(happening) in NAMES:
                self._bodies.append(happening)  # type: ignore[arg-type]

    @property
    def ended(self) -> TurnEnded | None:
        """How the turn ended, once that is known."""
        return self._ended

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
            replay=self._restoration.rulings,
        )

    @property
    def output(self) -> list[Part]:
        """What the model has said so far that is complete."""
        return output(self._bodies)

    def _bound(self, body: Reasoning) -> Reasoning:
        """A thought learns what came before it, where its provider binds it to that."""
        prefixes = self._path.prefixes
        return Reasoning(thought=replace(body.thought, prefix=prefixes[-1])) if prefixes else body

    def finish(self) -> Batch:
        """Everything about the turn, to be written in one transaction."""
        now = self.clock.wall()
        ended = self._ended or TurnEnded(outcome=Outcome.ABORTED)
        if self.wire:
            ended = replace(ended, wire=self.wire)
        heard = self._heard()
        start = draft(
            repeats.started(self.origin, self._restoration, self._repeated()),
            id=self.turn,
            parent=self.parent,
            at=self._started,
        )
        facts = [start]
        facts += [self._draft(body, self._started) for body in said(heard)]
        facts += [self._draft(body, now) for body in (*self._bodies, ended)]
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
            hints=self._path.hints,
            skipped=self._restoration.skipped,
            ruled=repeats.mark(self._restoration.rulings),
        )
        return Batch(
            session=self.session, tenant=self.tenant, drafts=tuple(facts), memories=(memory,)
        )

    def _keys(self, turn: Turn) -> Keys:
        """How the turn is found again: as it stands in the next request."""
        begun = self._begun
        if begun is None:
            return self._path.trail.keys(turn.output)
        before = trail(self._path.turns[:-1])[1]
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
        before, rulings = self._restoration.parent, self._restoration.rulings
        here = before is not None and before.session == self.session
        return repeats.marked(rulings, before.ruled) if before is not None and here else 0

    def _heard(self) -> tuple[Part, ...]:
        last = self._path.turns[-1] if self._path.turns else None
        if last is None or not last.output:
            return last.input if last else ()
        if self._begun is None:
            return ()
        place = len(self._path.turns) - 1
        known = any(r.memory for r in self._restoration.rulings if r.turn == place)
        return () if known else last.input  # else it is in the log already

    def _draft(self, body: Body, at: float) -> Draft:
        return draft(body, id=self.clock.new_id(), parent=self.turn, at=at)


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
