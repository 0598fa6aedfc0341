"""One stream of a connection: requests one after the other, each continuing the last if it may.

The main stream has no `stream_id`. A fork gets one, and with it the source's baseline: a server
remembers the latest response of each stream, so a fork's request must be under way before its
source sends the next one, and the source waits for that. Where a server knows no streams, a fork
gets a connection of its own. Recovery from failures before the first output is here as well.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound
from thoughtline.wires.websocket import frames, requests
from thoughtline.wires.websocket.connection import WebSocketConnection
from thoughtline.wires.websocket.continuation import (
    Continuation,
    LogPosition,
    SendPlan,
    SendReason,
)
from thoughtline.wires.websocket.frames import ServerFrame
from thoughtline.wires.websocket.http_adapter import StreamAdapter
from thoughtline.wires.websocket.requests import ResponsesRequest
from thoughtline.wires.websocket.response import ResponseState, SentRequest, WireResponse

if TYPE_CHECKING:
    from thoughtline.wires.websocket.wire import ResponsesWire

_NOT_RETRIED = frozenset({401, 403, 429})
"""Refusals that a full send would get as well."""


class WireStream:
    """Requests of one branch of a session."""

    def __init__(
        self,
        wire: "ResponsesWire",
        stream_id: str | None = None,
        source: "WireStream | None" = None,
    ) -> None:
        self.wire = wire
        self.stream_id = stream_id
        self.continuation: Continuation = source.continuation.branch() if source else Continuation()
        self.begun = asyncio.Event()  # of a fork: the server needs its source's response no more
        self.sending = False  # of a fork: its first request is on the way
        self.forks: set[WireStream] = set()  # whose first request is to come, or under way
        self._source = source
        self._order = asyncio.Lock()
        self._last_request: ResponsesRequest | None = None
        self._last_response: WireResponse | None = None  # the only one that can be committed

    @asynccontextmanager
    async def send(self, outbound: Outbound, position: LogPosition) -> AsyncIterator[WireResponse]:
        """Send a request; see `ResponsesWire.send`."""
        async with self._order, AsyncExitStack() as stack:
            yield await self._send(outbound, position, stack)

    async def warm(self, outbound: Outbound, position: LogPosition) -> bool:
        """Send a request ahead that asks for no answer; see `ResponsesWire.warm`."""
        async with self._order:
            if self._http_only:
                return False
            request = self._read(outbound)
            try:
                response, connection = await self._attempt(
                    request, outbound, position, warm_up=True
                )
            except WireError:
                return False
            try:
                with suppress(WireError):
                    async for _ in response:
                        pass
                return response.commit()
            finally:
                self._leave(response, connection)

    def at(self, position: LogPosition) -> StreamAdapter:
        """This stream as a plain `Wire`, for requests at one position of the log."""
        return StreamAdapter(self.send, position)

    def fork(self) -> "WireStream":
        """A stream that continues the latest response of this one.

        It must be used before this one sends its next request; later, it sends everything.
        """
        if not self.wire.stream_ids:
            return self.wire.separate(SendReason.STREAM_UNAVAILABLE).main
        stream = WireStream(self.wire, self.wire.new_stream_id(), self)
        self.forks.add(stream)
        return stream

    def _read(self, outbound: Outbound) -> ResponsesRequest:
        self._last_request = requests.read(outbound.body, self._last_request)
        return self._last_request

    @property
    def _http_only(self) -> bool:
        return self.wire.fallback is not None and self.wire.breaker.is_open

    # -- before the first output -----------------------------------------------------------------

    async def _send(
        self, outbound: Outbound, position: LogPosition, stack: AsyncExitStack
    ) -> WireResponse:
        """Send; send again where that helps, as long as nothing was shown; at last over HTTP."""
        request = self._read(outbound)
        max_attempts = self.wire.options.max_attempts
        tried, failures = set[SendReason](), 0  # each reason to send again counts once
        while failures < max_attempts and not self._http_only:
            try:
                response, connection = await self._attempt(request, outbound, position)
            except WireError:
                failures += 1
                if self.wire.fallback is None:
                    if failures == max_attempts:
                        raise
                    await asyncio.sleep(self.wire.breaker.retry_delay)
                continue
            reason = self._retry_reason(response)
            if reason is None or reason in tried:
                stack.callback(self._leave, response, connection)
                return response
            tried.add(reason)
            self._leave(response, connection)
            self.continuation.drop(reason)
            if reason is SendReason.STREAM_UNAVAILABLE:
                self._stream_refused(limit=response.error_code == frames.STREAM_LIMIT)
                self._separate(reason)
        return await self._send_over_http(request, outbound, stack)

    async def _attempt(
        self,
        request: ResponsesRequest,
        outbound: Outbound,
        position: LogPosition,
        *,
        warm_up: bool = False,
    ) -> tuple[WireResponse, WebSocketConnection]:
        """Send a request over the WebSocket, and wait for the first output."""
        connection = await self._free_connection(outbound, position)
        await self._wait_for_forks()
        plan = self.continuation.plan(
            request, position, generation=connection.generation, ended=self.wire.ended
        )
        if self.stream_id is not None:
            self.sending, self.wire.probe = True, self
        since, previous = plan.since, plan.previous
        frame = requests.create_frame(
            request,
            since=since,
            previous=previous,
            stream_id=self.stream_id,
            generate=not warm_up,
        )
        sent = SentRequest(
            plan=plan,
            transport="websocket",
            size=len(frame),
            full_size=requests.full_frame_size(request, len(frame), since=since, previous=previous),
            generation=connection.generation,
            stream_id=self.stream_id,
            warm_up=warm_up,
        )
        self.wire.on_send(sent)

        def on_commit(response: WireResponse, turn: str | None) -> bool:
            at = position if turn is None else replace(position, turn=turn)
            return self._commit(response, request, at)

        response = WireResponse(sent, lambda: self._receive(connection), on_commit)
        self._last_response = response
        try:
            await connection.send(frame, self.stream_id)
            await response.open()
        except BaseException:
            self._leave(response, connection)
            raise
        return response, connection

    async def _free_connection(
        self, outbound: Outbound, position: LogPosition
    ) -> WebSocketConnection:
        """A connection in which this stream is free."""
        destination = position.destination
        if self.wire.occupied(outbound, destination):
            self._separate(SendReason.DESTINATION_CHANGED)
        if self.stream_id is not None and not self.wire.stream_ids:
            self._separate(SendReason.STREAM_UNAVAILABLE)
        connection = await self.wire.connection(outbound, destination)
        if self.stream_id is not None and connection.busy and not connection.multiplexes:
            # Until a server has shown that it keeps streams apart, no fork runs beside another.
            if self.wire.probe is not None:
                await self.wire.probe.wait_until_begun()
            if not connection.multiplexes:
                self._separate(SendReason.STREAM_UNAVAILABLE)
            connection = await self.wire.connection(outbound, destination)
        try:
            await connection.wait_until_free(self.stream_id, self.wire.options.idle_timeout)
        except WireError as error:
            self.wire.discard(connection, SendReason.RECONNECTED)
            self.wire.record_failure(error)
            raise
        return connection

    async def _receive(self, connection: WebSocketConnection) -> ServerFrame:
        frame = await connection.receive(self.stream_id, self.wire.options.idle_timeout)
        of_response = frame.type.startswith("response.")
        if self.stream_id is not None and frame.stream_id is None and of_response:
            self.wire.stream_ids = False  # the server ignores them: one response at a time, then
        if frame.terminal or (frame.type == "response.in_progress" and self.wire.stream_ids):
            self.begun.set()
        return frame

    async def _wait_for_forks(self) -> None:
        """Let forks begin first: the next request makes the server forget the latest response."""
        forks, self.forks = self.forks, set()
        for fork in forks:
            if not fork.sending:
                fork.continuation.drop(SendReason.SOURCE_ADVANCED)
            else:
                await fork.wait_until_begun()

    async def wait_until_begun(self) -> None:
        """Wait until the server has begun to answer this stream's first request, or ended it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.begun.wait(), self.wire.options.idle_timeout)

    def _retry_reason(self, response: WireResponse) -> SendReason | None:
        """Why a refused request should be sent again, in full; None: it should not."""
        refusal = response.refusal
        if refusal is None:
            return None
        if refusal.code == frames.CONNECTION_LIMIT:
            return SendReason.CONNECTION_LIMIT
        if self.stream_id is not None and refusal.refuses_stream:
            return SendReason.STREAM_UNAVAILABLE
        if response.sent.plan.full:
            return None
        if refusal.code == frames.RESPONSE_NOT_FOUND:
            return SendReason.NOT_FOUND
        return None if refusal.status in _NOT_RETRIED else SendReason.ERROR

    def _stream_refused(self, *, limit: bool) -> None:
        """Note that the server has no more streams (`limit`), or knows none at all."""
        self.wire.stream_ids = limit
        if self._source is not None and not limit:
            # It was taken for a continuation of the source, and failed: that is forgotten.
            self._source.continuation.drop(SendReason.STREAM_UNAVAILABLE)

    def _separate(self, reason: SendReason) -> None:
        """Leave the shared connection for one of its own."""
        self.wire = self.wire.separate(reason)
        self.stream_id = self._source = None
        self.continuation.drop(reason)

    # -- the end ---------------------------------------------------------------------------------

    def _commit(
        self, response: WireResponse, request: ResponsesRequest, position: LogPosition
    ) -> bool:
        if response is not self._last_response:
            return False
        if not response.continuable:
            named = bool(response.response_id)
            missing = SendReason.MISSING_ITEMS if named else SendReason.MISSING_RESPONSE_ID
            self.continuation.drop(missing)
            return False
        self.continuation.commit(
            request,
            position,
            generation=response.sent.generation,
            response_id=response.response_id,
            items=response.items,
            warm_up=response.sent.warm_up,
        )
        return True

    def _leave(self, response: WireResponse, connection: WebSocketConnection) -> None:
        """Clean up after a response that is over, broken off, or not wanted any more."""
        wire = self.wire
        self.begun.set()
        if self._source is not None:
            self._source.forks.discard(self)
        if response.state in (ResponseState.COMPLETED, ResponseState.ENDED):
            connection.release(self.stream_id)
            wire.breaker.record_success()
            if response.state is ResponseState.ENDED:
                self.continuation.drop(SendReason.ERROR)
            if response.error_code == frames.CONNECTION_LIMIT:
                wire.discard(connection, SendReason.CONNECTION_LIMIT)
        elif response.state is ResponseState.BROKEN or connection.broken:
            self.continuation.drop(SendReason.RECONNECTED)
            connection.release(self.stream_id)
            wire.discard(connection, SendReason.RECONNECTED)
            wire.breaker.record_failure()
        else:
            self.continuation.drop(SendReason.CANCELLED)
            if not connection.abandon(self.stream_id):
                wire.discard(connection, SendReason.CANCELLED)

    async def _send_over_http(
        self, request: ResponsesRequest, outbound: Outbound, stack: AsyncExitStack
    ) -> WireResponse:
        assert self.wire.fallback is not None  # noqa: S101 (the caller checked it)
        self.continuation.drop(SendReason.UNAVAILABLE)
        self._last_response = None
        outbound = replace(outbound, body=requests.http_body(request, outbound.body))
        size, plan = len(outbound.body), SendPlan(reason=SendReason.UNAVAILABLE)
        sent = SentRequest(plan=plan, transport="http", size=size, full_size=size)
        self.wire.on_send(sent)
        events = await stack.enter_async_context(self.wire.fallback(outbound))

        async def receive() -> ServerFrame | None:
            data = await anext(events, None)
            return None if data is None else frames.read(data)

        response = WireResponse(sent, receive, lambda *_: False)
        await response.open()
        return response
