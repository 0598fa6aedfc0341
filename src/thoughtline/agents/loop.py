"""The turn loop: fold the log, send, record; run the tools that were called; again.

One exchange is one turn, and its record is written step by step. The results of its calls are input
of the next turn, written as they come in. So whenever the process dies, the log is whole: what had
happened is there, and a call without a result is one that nobody will run again unasked. The loop
ends with an answer, with the limit of exchanges, with a failure or a cancel, and each of them is
how the last turn ended.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.agents.caller import AgentCaller
from thoughtline.agents.provider import Endpoint
from thoughtline.agents.record import Emit, TurnRecord
from thoughtline.agents.session_writer import SessionWriter
from thoughtline.agents.source import incoming
from thoughtline.agents.tools import Permission, Toolbox
from thoughtline.agents.tools.execute import ToolLimits, execute
from thoughtline.agents.tools.permissions import PermissionChecks
from thoughtline.engine.exchange import Engine, Exchange
from thoughtline.engine.history import missing_result, pending_calls
from thoughtline.engine.request_template import RequestTemplate
from thoughtline.errors import StoreError, WireError
from thoughtline.log.events import Outcome, TurnEnded
from thoughtline.log.parts import Blob, Call, Text
from thoughtline.log.turns import Turn, system_prompt
from thoughtline.replay.plan import ReplayLimits
from thoughtline.wires.base import Wire
from thoughtline.wires.websocket.continuation import Destination, LogPosition
from thoughtline.wires.websocket.http_adapter import StreamAdapter
from thoughtline.wires.websocket.stream import WireStream
from thoughtline.wires.websocket.wire import ResponsesWire

WebSocketLine = ResponsesWire | WireStream
"""A WebSocket: what it has seen it need not be told again."""

CANCELLED = "No result: the run was cancelled."
CAPPED = "Not run: the limit of {} exchanges was reached."
FAILED = "No result: the run failed."
_BROKE_OFF = "the provider's answer broke off"


class Setup(Struct, frozen=True, kw_only=True):
    """What a run works with."""

    engine: Engine
    endpoint: Endpoint
    template: RequestTemplate
    tools: Toolbox
    permit: Permission | None = None
    limits: ToolLimits = ToolLimits()
    replay_limits: ReplayLimits | None = None
    max_exchanges: int = 50


class Loop:
    """One run, from a message to the answer."""

    def __init__(
        self,
        writer: SessionWriter,
        wire: Wire | WebSocketLine,
        setup: Setup,
        *,
        head: str,
        emit: Emit,
    ) -> None:
        self.writer = writer
        self.wire = wire
        self.setup = setup
        self.records: list[TurnRecord] = []
        self._head = head
        self._emit = emit
        self._exchange: Exchange | None = None  # of the last turn
        self._sent = False  # its request is on its way, or was
        self._adapter: StreamAdapter | None = None  # the turn's own place on a WebSocket
        self._permissions = PermissionChecks(setup.permit, writer.session)

    @property
    def head(self) -> str:
        """The last turn that is in the log."""
        started = [record.id for record in self.records if self.writer.has(record.id)]
        return started[-1] if started else self._head

    async def run(self, message: Sequence[Text | Blob]) -> None:
        """Go on until the last turn has ended; raises only what is no part of a conversation."""
        try:
            await self._run(message)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await self._end(Outcome.ABORTED, "cancelled", CANCELLED)
            raise
        except BaseException as error:
            with suppress(StoreError):  # which would hide what happened first
                await self._end(Outcome.FAILED, f"{type(error).__name__}: {error}", FAILED)
            raise

    async def _run(self, message: Sequence[Text | Blob]) -> None:
        await self._start(message)
        for number in range(1, self.setup.max_exchanges + 1):
            calls = await self._complete()
            if not calls:
                return
            await self._start((), pending=calls)
            if number == self.setup.max_exchanges:
                reason = f"{number} exchanges, and no answer"
                await self._end(Outcome.CAPPED, reason, CAPPED.format(number))
                return
            await self._use(calls)
            await self._begin(self.writer.path(self.records[-1].id))  # with the results

    # -- a request, and its answer ---------------------------------------------------------------

    async def _start(self, message: Sequence[Text | Blob], pending: Sequence[Call] = ()) -> None:
        """Write that the next turn has started, and what its request puts back."""
        head = self.head
        before = self.writer.path(head)
        orphans = () if pending else map(missing_result, pending_calls(before))
        input = (*orphans, *message)
        record = TurnRecord(self.writer, self._emit, parent=head, pending=pending)
        self.records.append(record)
        self._sent = False
        exchange = await self._begin([*before, Turn(input=input)], pending=bool(pending))
        system = self.setup.template.system
        changed = system if system != system_prompt(before) else None
        await record.start(input, exchange.decision, changed)

    async def _begin(self, turns: Sequence[Turn], *, pending: bool = False) -> Exchange:
        """Decide what goes upstream with these turns; where nothing is pending, write the body."""
        setup, record = self.setup, self.records[-1]
        quirk = await setup.engine.quirk(setup.template.target.origin)
        asked = incoming(
            turns,
            setup.template,
            quirk=quirk,
            tenant=self.writer.tenant,
            session=self.writer.id,
            turn=record.id,
            note=record.note,
            pending=pending,
        )
        made = self._exchange = await setup.engine.begin(replace(asked, limits=setup.replay_limits))
        return made

    async def _complete(self) -> Sequence[Call]:
        """Send the request and read its answer; the calls that want a result."""
        record, exchange = self.records[-1], self._exchange
        assert exchange is not None  # noqa: S101 (made by `_start`)
        caller = AgentCaller(self.setup.endpoint, self._wire(record), record.show)
        self._sent = True
        try:
            await self.setup.engine.complete(exchange, caller)
            reason = str(caller.refused) if caller.refused else _BROKE_OFF
        except WireError as error:
            reason = str(error)
        await self._end(Outcome.FAILED, reason)
        turn = self.writer.session.turn(record.id)
        if turn.outcome is not Outcome.COMPLETED:
            return ()
        if self._adapter is not None:
            self._adapter.commit()
        return turn.calls

    def _wire(self, record: TurnRecord) -> Wire:
        """The wire for one exchange; a WebSocket is told where the request stands in the log."""
        if not isinstance(self.wire, ResponsesWire | WireStream):
            return self.wire
        position = LogPosition(
            destination=Destination.of(self.setup.template.target.origin),
            turn=record.id,
            parent=record.parent,
            ancestors=frozenset(turn.id for turn in self.writer.path(record.id)),
        )
        self._adapter = self.wire.at(position)
        return self._adapter

    async def _end(self, otherwise: Outcome, reason: str, missing: str = "") -> None:
        """The turn is over; what the provider said about its end counts, if it said anything."""
        if not self.records:
            return
        record, exchange = self.records[-1], self._exchange
        ended = TurnEnded(outcome=otherwise, reason=reason)
        if exchange is None or not self._sent:
            await record.end(ended, None, missing)
            return
        recording = exchange.recording
        record.show(recording.close())
        said = recording.capture.ended
        if said is not None and (recording.done or said.outcome is not Outcome.ABORTED):
            ended = said
        elif said is not None:
            ended = replace(said, outcome=otherwise, reason=reason)
        if self._adapter is not None and self._adapter.sent is not None:
            ended = replace(ended, wire=str(self._adapter.sent.plan))
        await record.end(ended, exchange, missing)

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
        denied = await self._permissions.decide(record, place, call) if call.name in tools else None
        result = denied or await execute(tools, call, self.setup.limits)
        if turn is not None:
            await turn.wait()
        await record.answer(place, result)
        if done is not None:
            done.set()
