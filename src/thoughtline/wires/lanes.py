"""One lane of a connection: requests one after the other, each going on from the last if it may.

The main lane has no name. A fork gets one, and with it the source's baseline: a server remembers
the latest response of each lane, so a fork must be under way before its source goes on, and the
source waits for that. Where a server knows no lanes, a fork gets a connection of its own.
Here is also what happens when a request fails before anything was shown.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from thoughtline.errors import WireError
from thoughtline.wires import frames, requests
from thoughtline.wires.answers import Answer, Sent, State
from thoughtline.wires.base import Outbound
from thoughtline.wires.connections import Connection
from thoughtline.wires.continuation import Continuation, Plan, Position, Reason, completed
from thoughtline.wires.frames import Frame
from thoughtline.wires.placed import Placed
from thoughtline.wires.requests import Request

if TYPE_CHECKING:
    from thoughtline.wires.websocket import ResponsesWire

_HOPELESS = frozenset({401, 403, 429})
"""Refusals that a full send would get as well."""


class Lane:
    """Requests of one branch of a session."""

    def __init__(
        self, wire: "ResponsesWire", name: str | None = None, source: "Lane | None" = None
    ) -> None:
        self.wire = wire
        self.name = name
        self.continuation: Continuation = source.continuation.branch() if source else Continuation()
        self.begun = asyncio.Event()  # of a fork: the server is past looking at its source
        self.leaving = False  # of a fork: its first request is on the way
        self._source = source
        self.forks: set[Lane] = set()  # whose first request is to come, or under way
        self._order = asyncio.Lock()
        self._last: Request | None = None
        self._latest: Answer | None = None  # the only one that may still be committed

    @asynccontextmanager
    async def send(self, outbound: Outbound, position: Position) -> AsyncIterator[Answer]:
        """Send a request; see `ResponsesWire.send`."""
        async with self._order, AsyncExitStack() as stack:
            yield await self._begin(outbound, position, stack)

    async def warm(self, outbound: Outbound, position: Position) -> bool:
        """Send a request ahead that asks for no answer; see `ResponsesWire.warm`."""
        async with self._order:
            if self._resting:
                return False
            request = self._last = requests.read(outbound.body, self._last)
            try:
                answer, connection = await self._try(request, outbound, position, [], warm=True)
            except WireError:
                return False
            try:
                with suppress(WireError):
                    async for _ in answer:
                        pass
                return answer.commit()
            finally:
                self._leave(answer, connection)

    def at(self, position: Position) -> Placed:
        """This lane as a plain `Wire`, for requests at one position of the log."""
        return Placed(self.send, position)

    def fork(self) -> "Lane":
        """A lane that goes on from our latest response; to be used soon, or it is a full send."""
        if not self.wire.lanes:
            return self.wire.beside(Reason.LANE_UNAVAILABLE).main
        lane = Lane(self.wire, self.wire.lane_name(), self)
        self.forks.add(lane)
        return lane

    @property
    def _resting(self) -> bool:
        return self.wire.fallback is not None and self.wire.health.resting

    # -- before anything is shown ----------------------------------------------------------------

    async def _begin(self, outbound: Outbound, position: Position, stack: AsyncExitStack) -> Answer:
        """Send, and send again where that helps and nobody notices; at last over HTTP."""
        request = self._last = requests.read(outbound.body, self._last)
        tried, most = list[Sent](), self.wire.options.attempts
        remedies, failures = set[Reason](), 0  # each remedy helps once, or not at all
        while failures < most and not self._resting:
            try:
                answer, connection = await self._try(request, outbound, position, tried)
            except WireError:
                failures += 1
                if self.wire.fallback is None:
                    if failures == most:
                        raise
                    await asyncio.sleep(self.wire.health.pause)
                continue
            remedy = self._remedy(answer)
            if remedy is None or remedy in remedies:
                stack.callback(self._leave, answer, connection)
                return answer
            remedies.add(remedy)
            self._leave(answer, connection)
            self.continuation.drop(remedy)
            if remedy is Reason.LANE_UNAVAILABLE:
                self._laneless(full=answer.code == frames.FULL)
                self._move(remedy)
        return await self._over_http(request, outbound, stack, tried)

    async def _try(
        self,
        request: Request,
        outbound: Outbound,
        position: Position,
        tried: list[Sent],
        *,
        warm: bool = False,
    ) -> tuple[Answer, Connection]:
        """Send it over the WebSocket, and wait for something to show."""
        connection = await self._connection(outbound, position)
        await self._forks_first()
        plan = self.continuation.plan(
            request, position, generation=connection.generation, ended=self.wire.ended
        )
        if self.name is not None:
            self.leaving, self.wire.probing = True, self
        made = requests.frame(
            request, since=plan.since, previous=plan.previous, lane=self.name, generate=not warm
        )
        sent = Sent(
            plan=plan,
            transport="websocket",
            size=len(made),
            whole=requests.whole_size(request, len(made), since=plan.since, previous=plan.previous),
            generation=connection.generation,
            lane=self.name,
            warm=warm,
        )
        tried.append(sent)
        self.wire.note(sent)

        def keep(answer: Answer, turn: str | None) -> bool:
            where = position if turn is None else replace(position, turn=turn)
            return self._keep(answer, request, where)

        answer = Answer(tuple(tried), lambda: self._receive(connection), keep)
        self._latest = answer
        try:
            await connection.send(made, self.name)
            await answer.open()
        except BaseException:
            self._leave(answer, connection)
            raise
        return answer, connection

    async def _connection(self, outbound: Outbound, position: Position) -> Connection:
        """A connection in which this lane is free."""
        if self.wire.occupied(outbound, position.guard):
            self._move(Reason.GUARD_CHANGED)
        if self.name is not None and not self.wire.lanes:
            self._move(Reason.LANE_UNAVAILABLE)
        connection = await self.wire.connection(outbound, position.guard)
        if self.name is not None and connection.busy and not connection.laned:
            # Until a server has shown that it keeps lanes apart, nothing is mixed with a fork.
            if self.wire.probing is not None:
                await self.wire.probing.under_way()
            if not connection.laned:
                self._move(Reason.LANE_UNAVAILABLE)
            connection = await self.wire.connection(outbound, position.guard)
        try:
            await connection.free(self.name, self.wire.options.idle_timeout)
        except WireError as error:
            self.wire.discard(connection, Reason.RECONNECTED)
            self.wire.failed(error)
            raise
        return connection

    async def _receive(self, connection: Connection) -> Frame:
        frame = await connection.receive(self.name, self.wire.options.idle_timeout)
        if self.name is not None and frame.lane is None and frame.type.startswith("response."):
            self.wire.lanes = False  # it takes no notice of lanes: one after the other, then
        if frame.terminal or (frame.type == "response.in_progress" and self.wire.lanes):
            self.begun.set()
        return frame

    async def _forks_first(self) -> None:
        """Our next request makes the server forget our latest response: forks go before it."""
        forks, self.forks = self.forks, set()
        for fork in forks:
            if not fork.leaving:
                fork.continuation.drop(Reason.SOURCE_ADVANCED)
            else:
                await fork.under_way()

    async def under_way(self) -> None:
        """Wait until the server has begun with our first request, or it is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.begun.wait(), self.wire.options.idle_timeout)

    def _remedy(self, answer: Answer) -> Reason | None:
        """Why a refused request should be sent again, whole; None: it should not."""
        refusal = answer.refusal
        if refusal is None:
            return None
        if refusal.code == frames.LIMIT:
            return Reason.CONNECTION_LIMIT
        if self.name is not None and refusal.laneless:
            return Reason.LANE_UNAVAILABLE
        if answer.sent.plan.full:
            return None
        if refusal.code == frames.NOT_FOUND:
            return Reason.NOT_FOUND
        return None if refusal.status in _HOPELESS else Reason.ERROR

    def _laneless(self, *, full: bool) -> None:
        """The server refused our lane: it has no more of them (`full`), or none at all."""
        self.wire.lanes = full
        if self._source is not None and not full:
            # It was taken for a continuation of the source, and failed: that is forgotten.
            self._source.continuation.drop(Reason.LANE_UNAVAILABLE)

    def _move(self, reason: Reason) -> None:
        """Leave the shared connection for one of our own."""
        self.wire = self.wire.beside(reason)
        self.name = self._source = None
        self.continuation.drop(reason)

    # -- the end ---------------------------------------------------------------------------------

    def _keep(self, answer: Answer, request: Request, position: Position) -> bool:
        if answer is not self._latest:
            return False
        if not answer.sound:
            missing = Reason.MISSING_ITEMS if answer.response else Reason.MISSING_RESPONSE_ID
            self.continuation.drop(missing)
            return False
        self.continuation.commit(
            completed(
                request,
                position,
                generation=answer.sent.generation,
                response=answer.response,
                items=answer.items,
                warm=answer.sent.warm,
            )
        )
        return True

    def _leave(self, answer: Answer, connection: Connection) -> None:
        """The answer is over, broken off, or not wanted any more."""
        wire = self.wire
        self.begun.set()
        if self._source is not None:
            self._source.forks.discard(self)
        if answer.state in (State.COMPLETED, State.ENDED):
            connection.release(self.name)
            wire.health.recovered()
            if answer.state is State.ENDED:
                self.continuation.drop(Reason.ERROR)
            if answer.code == frames.LIMIT:
                wire.discard(connection, Reason.CONNECTION_LIMIT)
        elif answer.state is State.BROKEN or connection.broken:
            self.continuation.drop(Reason.RECONNECTED)
            connection.release(self.name)
            wire.discard(connection, Reason.RECONNECTED)
            wire.health.failed()
        else:
            self.continuation.drop(Reason.CANCELLED)
            if not connection.abandon(self.name):
                wire.discard(connection, Reason.CANCELLED)

    async def _over_http(
        self, request: Request, outbound: Outbound, stack: AsyncExitStack, tried: list[Sent]
    ) -> Answer:
        assert self.wire.fallback is not None  # noqa: S101 (said by the caller)
        self.continuation.drop(Reason.UNAVAILABLE)
        self._latest = None
        posted = replace(outbound, body=requests.posted(request, outbound.body))
        size = len(posted.body)
        sent = Sent(plan=Plan(reason=Reason.UNAVAILABLE), transport="http", size=size, whole=size)
        tried.append(sent)
        self.wire.note(sent)
        events = await stack.enter_async_context(self.wire.fallback(posted))

        async def receive() -> Frame | None:
            data = await anext(events, None)
            return None if data is None else frames.read(data)

        answer = Answer(tuple(tried), receive, lambda *_: False)
        await answer.open()
        return answer
