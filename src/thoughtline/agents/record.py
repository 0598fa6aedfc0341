"""One turn of an agent while it happens, written to the log step by step.

Its input is written when it starts, what happens on the way as it happens, and its output and end
in one transaction, with the index entry under which the gateway would find its thoughts. Partial
text is shown and never written. A turn that started gets an end, whatever happens, and only one.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from thoughtline.agents.session_writer import SessionWriter
from thoughtline.engine.capture import input_events, started_turn
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.history import missing_result
from thoughtline.log.decisions import alike, mark
from thoughtline.log.events import (
    TYPE_NAMES,
    Body,
    Delta,
    Event,
    StreamEvent,
    ToolResult,
    TurnEnded,
)
from thoughtline.log.parts import Call, Part, Result

Emit = Callable[[Event | Delta], None]


class TurnRecord:
    """The record of one turn."""

    def __init__(
        self, writer: SessionWriter, emit: Emit, *, parent: str, pending: Sequence[Call] = ()
    ) -> None:
        self.writer = writer
        self.parent = parent
        self.id = writer.clock.new_id()
        self.pending = dict(enumerate(pending))  # calls of the turn before, not answered yet
        self._emit = emit
        self._over = False
        self._mark = ""  # of the decisions that its start was written with

    async def start(
        self, input: Sequence[Part], decision: RequestDecision, system: str | None = None
    ) -> None:
        """Write that a request is on its way, and what is newly said in it.

        `system` is the system prompt where it is another than in the turn before.
        Raises `Conflict` when somebody else has written to the session.
        """
        plan, session = decision.replay_plan, self.writer.session
        before = session.turn(self.parent).replay if self.writer.has(self.parent) else ()
        self._mark = mark(plan.decisions)
        started = started_turn(decision.target.origin, plan, alike(plan.decisions, before))
        started = replace(started, system=system)
        first = replace(self.writer.draft(started, self.parent), id=self.id)
        rest = [self.writer.draft(body, self.id) for body in input_events(input)]
        await self.writer.write([first, *rest], alone=True, tell=self._emit)

    async def note(self, bodies: Sequence[Body]) -> None:
        """Write something that happened on the way."""
        drafts = [self.writer.draft(body, self.id) for body in bodies]
        await self.writer.write(drafts, tell=self._emit)

    async def answer(self, place: int, result: Result) -> None:
        """Write the result of a call of the turn before."""
        await self.note([ToolResult(result=result)])
        self.pending.pop(place, None)

    def show(self, happened: Sequence[StreamEvent]) -> None:
        """Show deltas; what is canonical is written at the end."""
        for event in happened:
            if type(event) not in TYPE_NAMES:
                self._emit(event)  # type: ignore[arg-type]

    async def end(
        self, ended: TurnEnded, exchange: Exchange | None = None, missing: str = ""
    ) -> None:
        """Write the output and the end; `missing` stands for results that will not come any more.

        `exchange` is None where no request was sent.
        """
        if self._over or not self.writer.has(self.id):
            return
        self._over = True
        left = [
            self.writer.draft(ToolResult(result=missing_result(call, missing)), self.id)
            for call in self.pending.values()
        ]
        if exchange is None:
            drafts = [*left, self.writer.draft(ended, self.id)]
            await self.writer.write(drafts, tell=self._emit)
            return
        capture = exchange.recording.capture
        capture.ended, capture.decisions_mark = ended, self._mark
        batch = capture.finish(started=True)
        await self.writer.write([*left, *batch.drafts], index=batch.index, tell=self._emit)
