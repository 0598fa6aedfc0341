"""The turn loop: fold the log, send, record; run the tools that were called; again.

One exchange is one turn, and its record (`records`) is written step by step. The results of its
calls are input of the next turn, written as they come in. So whenever the process dies, the log is
whole: what had happened is there, and a call without a result is one that nobody will run again
unasked. The loop ends with an answer, with the limit of exchanges, with a failure or a cancel,
and each of them is how the last turn ended.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.errors import StoreError, WireError
from thoughtline.events import Outcome, Quarantined, TurnEnded
from thoughtline.library.healing import Plan
from thoughtline.library.histories import unanswered
from thoughtline.library.histories import waiting as without_result
from thoughtline.library.ledgers import Ledger
from thoughtline.library.permits import Permits
from thoughtline.library.providers import Endpoint
from thoughtline.library.records import Emit, Record
from thoughtline.library.sending import Sending
from thoughtline.library.transcripts import Terms, decide
from thoughtline.parts import Blob, Call, Text
from thoughtline.tools import Permission, Toolbox, running
from thoughtline.turns import Turn
from thoughtline.wires.base import Wire
from thoughtline.wires.continuation import Guard, Position
from thoughtline.wires.lanes import Lane
from thoughtline.wires.placed import Placed
from thoughtline.wires.websocket import ResponsesWire

Line = ResponsesWire | Lane
"""A WebSocket: what it has seen it need not be told again."""

CANCELLED = "No result: the run was cancelled."
CAPPED = "Not run: the limit of {} exchanges was reached."
FAILED = "No result: the run failed."
_BROKE_OFF = "the provider's answer broke off"


class Setup(Struct, frozen=True, kw_only=True):
    """What a run works with."""

    endpoint: Endpoint
    terms: Terms
    tools: Toolbox
    permit: Permission | None = None
    limits: running.Limits = running.Limits()
    most: int = 50  # exchanges


class Loop:
    """One run, from a message to the answer."""

    def __init__(
        self, ledger: Ledger, wire: Wire | Line, setup: Setup, *, head: str, emit: Emit
    ) -> None:
        self.ledger = ledger
        self.wire = wire
        self.setup = setup
        self.terms = setup.terms  # as amended by what the provider taught
        self.records: list[Record] = []
        self._head = head
        self._emit = emit
        self._sending: Sending | None = None
        self._placed: Placed | None = None  # the turn's own place on a line that remembers
        self._permits = Permits(setup.permit, ledger.session)

    @property
    def head(self) -> str:
        """The last turn that is in the log."""
        started = [record.id for record in self.records if self.ledger.has(record.id)]
        return started[-1] if started else self._head

    async def run(self, words: Sequence[Text | Blob]) -> None:
        """Go on until the last turn has ended; raises only what is no part of a conversation."""
        try:
            await self._run(words)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await self._end(Outcome.ABORTED, "cancelled", CANCELLED)
            raise
        except BaseException as error:
            with suppress(StoreError):  # which would hide what happened first
                await self._end(Outcome.FAILED, f"{type(error).__name__}: {error}", FAILED)
            raise

    async def _run(self, words: Sequence[Text | Blob]) -> None:
        await self._start(words)
        for number in range(1, self.setup.most + 1):
            calls = await self._exchange()
            if not calls:
                return
            await self._start((), waiting=calls)
            if number == self.setup.most:
                reason = f"{number} exchanges, and no answer"
                await self._end(Outcome.CAPPED, reason, CAPPED.format(number))
                return
            await self._use(calls)

    async def _start(self, words: Sequence[Text | Blob], waiting: Sequence[Call] = ()) -> None:
        head = self.head
        before = self.ledger.path(head)
        orphans = () if waiting else map(unanswered, without_result(before))
        input = (*orphans, *words)
        decided = decide([*before, Turn(input=input)], self.terms)
        record = Record(self.ledger, self._emit, parent=head, waiting=waiting)
        self.records.append(record)
        self._sending = None
        await record.start(input, decided, self.terms.target.origin)

    # -- a request, and its answer ---------------------------------------------------------------

    async def _exchange(self) -> Sequence[Call]:
        """One request; the calls that want a result."""
        record = self.records[-1]
        sending = self._sending = Sending(
            self.setup.endpoint,
            self.terms,
            wire=self._wire(record),
            clock=self.ledger.clock,
            record=record,
        )
        try:
            refusal = await sending.send(self.ledger.path(record.id), self._adopt)
            reason = str(refusal) if refusal else _BROKE_OFF
        except WireError as error:
            reason = str(error)
        await self._end(Outcome.FAILED, reason)
        turn = self.ledger.session.turn(record.id)
        if turn.outcome is not Outcome.COMPLETED:
            return ()
        if self._placed is not None:
            self._placed.commit()
        return turn.calls

    def _wire(self, record: Record) -> Wire:
        """The wire for one exchange; a line that remembers is told where it stands in the log."""
        if not isinstance(self.wire, ResponsesWire | Lane):
            return self.wire
        origin = self.terms.target.origin
        position = Position(
            guard=Guard(endpoint=origin.endpoint, account=origin.account, model=origin.model),
            turn=record.id,
            head=record.parent,
            ancestors=frozenset(turn.id for turn in self.ledger.path(record.id)),
        )
        self._placed = self.wire.at(position)
        return self._placed

    async def _adopt(self, plan: Plan, why: str) -> None:
        """The provider accepts the request on these terms: remember that."""
        self.terms = replace(plan.terms, full=False)
        by_turn: dict[str, list[int]] = {}
        for id, position in sorted(plan.barred):
            by_turn.setdefault(id, []).append(position)
        refused = [
            Quarantined(turn=id, thoughts=tuple(positions), reason=why)
            for id, positions in by_turn.items()
        ]
        if refused:
            await self.records[-1].note(*refused)

    async def _end(self, otherwise: Outcome, reason: str, why: str = "") -> None:
        """The turn is over; what the provider said about its end counts, if it said anything."""
        if not self.records:
            return
        record, sending = self.records[-1], self._sending
        reader = sending.reader if sending else None
        if reader is not None:
            record.take(reader.close())
        ended = record.said or TurnEnded(outcome=otherwise, reason=reason)
        if reader is not None and not reader.done and ended.outcome is Outcome.ABORTED:
            ended = replace(ended, outcome=otherwise, reason=reason)
        if sending is not None and self._placed is not None and self._placed.sent is not None:
            ended = replace(ended, wire=str(self._placed.sent.plan))
        await record.end(ended, sending.fold if sending else None, why)

    # -- tools -----------------------------------------------------------------------------------

    async def _use(self, calls: Sequence[Call]) -> None:
        """Run all calls at once, as far as they are allowed; write each result as it comes.

        Where ids do not tell the calls apart, results are written in the order of the calls.
        """
        ids = [call.id for call in calls]
        gates: list[asyncio.Event | None] = [None] * (len(calls) + 1)
        if "" in ids or len(set(ids)) < len(ids):
            gates[1:] = [asyncio.Event() for _ in calls]
        tasks = [
            asyncio.ensure_future(self._answer(place, call, gates[place], gates[place + 1]))
            for place, call in enumerate(calls)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _answer(
        self, place: int, call: Call, turn: asyncio.Event | None, done: asyncio.Event | None
    ) -> None:
        record, tools = self.records[-1], self.setup.tools
        denied = await self._permits.decide(record, place, call) if call.name in tools else None
        result = denied or await running.run(tools, call, self.setup.limits)
        if turn is not None:
            await turn.wait()
        await record.answer(place, result)
        if done is not None:
            done.set()
