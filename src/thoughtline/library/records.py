"""One turn while it happens, written to the log step by step.

Its input is written when it starts, what happens on the way as it happens, and its output and end
in one transaction, with the memory under which the gateway would find its thoughts. Partial text
is shown and never written. A turn that started gets an end, whatever happens, and only one.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from thoughtline import repeats
from thoughtline.capture import output, said
from thoughtline.events import (
    NAMES,
    Body,
    Delta,
    Event,
    Happening,
    Outcome,
    Reasoning,
    ToolResult,
    TurnEnded,
)
from thoughtline.library.histories import unanswered
from thoughtline.library.ledgers import Ledger
from thoughtline.library.transcripts import Fold
from thoughtline.memories import Memory, remember
from thoughtline.parts import Call, Origin, Part, Result
from thoughtline.turns import Turn

Emit = Callable[[Event | Delta], None]


class Record:
    """The record of one turn."""

    def __init__(
        self, ledger: Ledger, emit: Emit, *, parent: str, waiting: Sequence[Call] = ()
    ) -> None:
        self.ledger = ledger
        self.parent = parent
        self.id = ledger.clock.new_id()
        self.target: Origin | None = None
        self.waiting = dict(enumerate(waiting))  # calls of the turn before, not answered yet
        self.bodies: list[Body] = []  # the output, as far as it is complete
        self.said: TurnEnded | None = None  # what the provider said about the end
        self._started = ledger.clock.wall()
        self._emit = emit
        self._over = False
        self._ruled = ""  # mark of the rulings that its start was written with

    async def start(self, input: Sequence[Part], decided: Fold, target: Origin) -> None:
        """Write that a request is on its way, and what is newly said in it.

        Raises `Conflict` when somebody else has written to the session.
        """
        self.target = target
        restoration, session = decided.restoration, self.ledger.session
        before = session.turn(self.parent).replay if self.ledger.has(self.parent) else ()
        same = repeats.alike(restoration.rulings, before)
        self._ruled = repeats.mark(restoration.rulings)
        started = repeats.started(target, restoration, same)
        first = replace(self.ledger.draft(started, self.parent), id=self.id)
        rest = [self.ledger.draft(body, self.id) for body in said(input)]
        await self.ledger.write([first, *rest], alone=True, tell=self._emit)

    async def note(self, *bodies: Body) -> None:
        """Write something that happened on the way."""
        drafts = [self.ledger.draft(body, self.id) for body in bodies]
        await self.ledger.write(drafts, tell=self._emit)

    async def answer(self, place: int, result: Result) -> None:
        """Write the result of a call of the turn before."""
        await self.note(ToolResult(result=result))
        self.waiting.pop(place, None)

    def take(self, happenings: Sequence[Happening]) -> None:
        """Show what is live, keep what is canonical."""
        for happening in happenings:
            if isinstance(happening, TurnEnded):
                self.said = happening
            elif type(happening) in NAMES:
                self.bodies.append(happening)  # type: ignore[arg-type]
            else:
                self._emit(happening)  # type: ignore[arg-type]

    def forget(self) -> None:
        """The answer broke off and is asked for anew."""
        self.bodies, self.said = [], None

    async def end(self, ended: TurnEnded, sent: Fold | None = None, why: str = "") -> None:
        """Write the output and the end; `why` stands for results that will not come any more."""
        if self._over or not self.ledger.has(self.id):
            return
        self._over = True
        left = [ToolResult(result=unanswered(call, why)) for call in self.waiting.values()]
        made = [self._bound(body, sent) for body in self.bodies]
        drafts = [self.ledger.draft(body, self.id) for body in (*left, *made, ended)]
        memories = [self._memory(sent, made, ended)] if sent is not None else []
        await self.ledger.write(drafts, memories=memories, tell=self._emit)

    def _bound(self, body: Body, sent: Fold | None) -> Body:
        """A thought learns what came before it, where its provider binds it to that."""
        prefixes = sent.path.prefixes if sent else ()
        if isinstance(body, Reasoning) and prefixes:
            return Reasoning(thought=replace(body.thought, prefix=prefixes[-1]))
        return body

    def _memory(self, sent: Fold, bodies: Sequence[Body], ended: TurnEnded) -> Memory:
        made = tuple(output(bodies))
        turn = Turn(
            input=sent.turns[-1].input,
            output=made,
            id=self.id,
            parent=sent.turns[-2].id if len(sent.turns) > 1 else "",
            session=self.ledger.id,
            target=self.target,
            outcome=ended.outcome,
            usage=ended.usage,
            response=ended.response,
            started=self._started,
            ended=self.ledger.clock.wall(),
        )
        return remember(
            turn,
            sent.path.trail.keys(made),
            skipped=sent.restoration.skipped,
            ruled=self._ruled,  # not of what was sent, which healing may have changed
        )

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not."""
        return self.ledger.session.turn(self.id).outcome if self._over else None
