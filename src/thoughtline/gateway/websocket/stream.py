"""One stream of a client's WebSocket: requests one after the other, each an exchange of its own.

A `response.create` frame becomes the full request (`transcript`), and then the engine takes it
through the same eight steps as a request that was posted. What goes upstream is decided there:
over a WebSocket, with a continuation where that is proven, or over HTTP.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol

from thoughtline.dialects import WEBSOCKET_DIALECT, splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.effort import with_effort
from thoughtline.dialects.limits import TooComplex, is_heavy
from thoughtline.engine.caller import Incoming
from thoughtline.engine.decision import Fields
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.offload import run_aside
from thoughtline.engine.routes import Route
from thoughtline.engine.settled_prefix import Resumed
from thoughtline.errors import Unreadable, WireError, fault
from thoughtline.gateway import headers
from thoughtline.gateway.asked_model import AskedModel
from thoughtline.gateway.auth import Principal
from thoughtline.gateway.errors import GatewayError, check_lost, check_patchable
from thoughtline.gateway.failed_requests import of_exchange, refusal_words
from thoughtline.gateway.http_caller import LEFT
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.websocket import transcript as transcripts
from thoughtline.gateway.websocket.transcript import Create, Transcript
from thoughtline.log.events import RequestFailed
from thoughtline.wires.base import Headers, Outbound, Wire
from thoughtline.wires.websocket.connection import (
    Connect,
    UpgradeRefused,
    WebSocket,
    WebSocketConnector,
)
from thoughtline.wires.websocket.continuation import Destination, LogPosition
from thoughtline.wires.websocket.http_adapter import http_fallback, sse_event
from thoughtline.wires.websocket.response import ResponseState, SentRequest, WireResponse
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions


class ClientConnection(Protocol):
    """The connection that a stream is part of."""

    proxy: Proxy
    route: Route
    principal: Principal
    hints: list[str]
    replay: str  # `off` or `strict`, where the client says so
    reports: bool  # whether the client wants to hear what became of the thoughts

    async def tell(self, event: bytes, stream: str | None) -> None:
        """Send an event to the client; nothing happens when it is gone."""

    async def refuse(
        self,
        refusal: GatewayError,
        stream: str | None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Send an error answer in the protocol's envelope, which has room for headers."""

    def find(self, response: str) -> Transcript | None:
        """The transcript of a response in any stream."""

    def outbound(self, body: bytes, upstream: Upstream, exchange: Exchange | None) -> Outbound:
        """A request on its way to the upstream, as a POST."""

    def posted(self) -> Wire:
        """The wire to this gateway itself, for upstreams that are reached by translation."""


class ClientStream:
    """Requests of one stream."""

    def __init__(self, connection: ClientConnection, name: str | None) -> None:
        self.connection = connection
        self.name = name
        self.latest: Transcript | None = None
        self._wires: dict[str, ResponsesWire] = {}

    async def serve(self, create: Create) -> None:
        """Answer one request, in whatever way; raises nothing but a cancel."""
        proxy, caller = self.connection.proxy, StreamCaller(self, create)
        with proxy.in_flight:
            try:
                if create.generate:
                    await proxy.engine.run(caller)
                else:
                    await caller.warm_up()
            except asyncio.CancelledError:
                await caller.cancelled()
                raise
            except GatewayError as refusal:
                await caller.refused(refusal)
            except WireError as error:
                message = f"{error}; is the upstream up, and the network?"
                await caller.refused(GatewayError(502, message, "upstream_unreachable"))
            except Exception as error:  # noqa: BLE001 (the next request of the stream must not wait)
                message = f"{fault(error)}: please report it"
                await caller.refused(GatewayError(500, message, "internal_error"))

    async def close(self) -> None:
        """Release the upstreams."""
        for wire in self._wires.values():
            await wire.close()

    def wire(self, upstream: Upstream) -> ResponsesWire:
        """The way to an upstream, which remembers what it has sent."""
        if upstream.name not in self._wires:
            wire = self.connection.posted() if _translated(upstream) else upstream.wire
            self._wires[upstream.name] = _wire(self.connection.proxy, upstream, wire)
        return self._wires[upstream.name]


class StreamCaller:
    """One `response.create` of a stream, for the engine."""

    def __init__(self, stream: ClientStream, create: Create) -> None:
        self.stream = stream
        self.connection = stream.connection
        self.proxy = stream.connection.proxy
        self.upstream: Upstream | None = None  # once it is certain
        self._create = create
        self._transcript: Transcript | None = None  # what the request continues and says
        self._exchange: Exchange | None = None
        self._heavy = False  # reading and deciding may take long
        self._body = b""  # the full request, as it would have been posted
        self._resumed: Resumed | None = None  # it goes on from what is settled

    def authenticate(self) -> None:
        """The connection has done that, for all its requests."""

    async def read(self) -> Incoming | None:
        request, upstream = await self._request()
        if self.connection.replay != "off" and not _translated(upstream):
            return self._incoming(request, upstream)
        async with self._send(self._body, request, upstream, None) as answer:
            await self._events(answer, None)
        return None

    async def _request(self) -> tuple[Request, Upstream]:
        self._body, self._transcript = self._posted()
        if self.connection.replay != "off":
            owner = (self.connection.principal.tenant, WEBSOCKET_DIALECT.name)
            self._resumed = self.proxy.engine.prefixes.resume(owner, self._body)
        text = self._resumed.text if self._resumed is not None else self._body
        self._heavy = is_heavy(text)
        reading = partial(_read, text)
        request = await run_aside(reading) if self._heavy else reading()
        self.upstream = self.proxy.upstream(self.connection.route, request.model)
        passes = self.connection.replay == "off" and not _translated(self.upstream)
        if passes and (fields := _renamed(self.upstream)):
            self._body = splice.with_members(self._body, fields)
        return request, self.upstream

    def _posted(self) -> tuple[bytes, Transcript]:
        """The full request, as it would have been posted, and what it continues and says."""
        create = self._create
        held = self.connection.find(create.previous) if create.previous else None
        if create.previous and held is None and not create.stored:
            raise GatewayError(
                400,
                f"Previous response with id '{create.previous}' not found.",
                "previous_response_not_found",
            )
        transcript = transcripts.continued(create, held)
        body = transcripts.posted(create, transcript)
        limit = self.proxy.options.max_body_bytes
        if len(body) > limit:
            raise GatewayError(
                413,
                f"with all that came before, the request is larger than {limit} bytes; "
                "shorten the history, or raise `server.max_body_bytes`",
                "request_too_large",
            )
        return body, transcript

    def _incoming(self, request: Request, upstream: Upstream) -> Incoming:
        proxy, connection = self.proxy, self.connection
        dialect, principal = WEBSOCKET_DIALECT, connection.principal
        goal = proxy.client_target(upstream, principal, dialect.name, request.model)
        takes = goal.target.policy.takes
        request, said = with_effort(request, dialect, upstream.effort, takes)
        return Incoming(
            request=request,
            dialect=dialect,
            target=goal.target,
            tenant=goal.tenant,
            claimed=goal.claimed,
            effort=upstream.effort,
            fields={**said, **_renamed(upstream)},
            hints=connection.hints,
            strict=proxy.options.strict or connection.replay == "strict",
            received=proxy.clock.mono(),
            heavy=self._heavy,
            owner=(principal.tenant, dialect.name),
            resumed=self._resumed,
        )

    async def decided(self, exchange: Exchange) -> None:
        self._exchange = exchange if self._create.generate else None
        check_patchable(exchange.decision)
        check_lost(exchange.decision, strict=exchange.incoming.strict)
        if self._create.generate:
            self.proxy.observer.replayed(exchange)

    def send(self, exchange: Exchange) -> AbstractAsyncContextManager[WireResponse]:
        assert self.upstream is not None  # noqa: S101 (set by `read`)
        decision = exchange.decision
        return self._send(decision.body, decision.request, self.upstream, exchange)

    @asynccontextmanager
    async def _send(
        self, body: bytes, request: Request, upstream: Upstream, exchange: Exchange | None
    ) -> AsyncIterator[WireResponse]:
        outbound = self.connection.outbound(body, upstream, exchange)
        position = _position(request, upstream, exchange)
        async with self.stream.wire(upstream).send(outbound, position) as response:
            yield response

    async def retries(self, exchange: Exchange, error: WireError) -> bool:
        return False  # the client knows best whether it asks again

    async def refusal(self, answer: WireResponse) -> bytes:
        return answer.refusal.data if answer.refusal is not None else b""

    async def relay(self, exchange: Exchange, answer: WireResponse) -> None:
        if answer.refusal is not None:
            exchange.failed_request = self.proxy.failed.new_id()
        reason = await self._events(answer, exchange)
        if answer.refusal is not None:
            reason = "refused"
            words = refusal_words(answer.refusal.data)
            self._keep_failure(exchange.failed_request, answer.status, words)
        self.proxy.observer.ended(exchange, answer.status, reason)
        self._exchange = None  # the client has its answer, and the observer knows

    async def _events(self, response: WireResponse, exchange: Exchange | None) -> str:
        """Forward events as they come; why they broke off, as a log line says it."""
        name, upstream = self.stream.name, self.upstream
        asked = None
        if upstream is not None and upstream.asked and not _translated(upstream):
            asked = AskedModel(WEBSOCKET_DIALECT, upstream.asked)
        try:
            if self.connection.reports:
                refused = response.refusal is not None
                told = headers.model_header(upstream) if upstream else ()
                await self.connection.tell(_report(exchange, told, refused=refused), name)
            async for event in response:
                if response.ended:
                    await self._ended(response, exchange, event)
                await self.connection.tell(asked.put(event) if asked else event, name)
                if exchange is not None and not response.ended:
                    exchange.recording.feed(sse_event(event))
        except WireError as error:
            if exchange is not None:
                await self.proxy.engine.writer.write(exchange.recording, str(error))
            code = "upstream_broke_off"
            added = headers.broken_off_headers(exchange, code) if exchange else ()
            refusal = GatewayError(502, str(error), code)
            await self.connection.refuse(refusal, name, added)
            return error.log_reason
        return ""

    async def _ended(self, response: WireResponse, exchange: Exchange | None, event: bytes) -> None:
        """The last event waits for the commit; then the client may go on from here."""
        if response.refusal is not None:
            return
        if exchange is not None:
            exchange.recording.feed(sse_event(event))
            exchange.recording.capture.wire = str(response.sent.plan)
            await self.commit(exchange)
        response.commit()
        completed = response.state is ResponseState.COMPLETED or response.incomplete
        if response.continuable and completed and self._transcript is not None:
            self.stream.latest = self._transcript.grown(response.response_id, response.items)

    async def commit(self, exchange: Exchange) -> None:
        await self.proxy.engine.writer.write(exchange.recording)

    async def warm_up(self) -> None:
        """No answer is asked for yet: the upstream may get ready, the client gets an id."""
        request, upstream = await self._request()
        exchange: Exchange | None = None
        body = self._body
        if self.connection.replay != "off" and not _translated(upstream):
            exchange = await self.proxy.engine.begin(self._incoming(request, upstream))
            await self.decided(exchange)
            exchange.record()
            body = exchange.decision.body
        if upstream.supports_websockets:
            outbound = self.connection.outbound(body, upstream, exchange)
            position = _position(request, upstream, exchange)
            await self.stream.wire(upstream).warm(outbound, position)
        clock = self.proxy.clock
        id = f"resp_{clock.new_id()}"
        assert self._transcript is not None  # noqa: S101 (set by `_request`)
        self.stream.latest = self._transcript.grown(id, ())
        for number, event in enumerate(transcripts.empty(id, request.model, clock.wall())):
            numbered = {"sequence_number": number, **event}
            await self.connection.tell(splice.dumps(numbered), self.stream.name)

    async def cancelled(self) -> None:
        """The client left: keep what there is of the answer."""
        if self._exchange is not None:
            recording = self._exchange.recording
            writing = self.proxy.engine.writer.write(recording, LEFT, stopped=True)
            await asyncio.shield(writing)
            self.proxy.observer.ended(self._exchange, 499, LEFT)

    async def refused(self, refusal: GatewayError) -> None:
        """Send an error answer of the gateway."""
        name, request = self.upstream.name if self.upstream else "", self.proxy.failed.new_id()
        status, code = refusal.status, refusal.code
        self.proxy.observer.refused(name, WEBSOCKET_DIALECT.name, status, code, request)
        added = headers.failure_headers(self._exchange, request=request, code=code)
        await self.connection.refuse(refusal, self.stream.name, added)
        self._keep_failure(request, status, refusal.message, code)

    def _keep_failure(self, request: str, status: int, reason: str, code: str = "") -> None:
        """Write down that the request failed, and why."""
        failed = RequestFailed(
            status=status,
            reason=reason,
            code=code,
            method="WEBSOCKET",
            path=self.connection.route.path,
            upstream=self.upstream.name if self.upstream else "",
            tenant=self.connection.principal.tenant,
        )
        self.proxy.failed.record(request, of_exchange(failed, self._exchange))


def _report(exchange: Exchange | None, told: Sequence[tuple[str, str]], *, refused: bool) -> bytes:
    """The event that stands for the headers of an HTTP answer: a WebSocket has none."""
    if exchange is None:
        added = headers.failure_headers(None, passed=headers.PassedThrough.OFF)
    elif refused:
        added = headers.failure_headers(exchange, request=exchange.failed_request)
    else:
        added = headers.thoughtline_headers(exchange, ())
    return splice.dumps({"type": "thoughtline.report", "headers": dict([*added, *told])})


def _read(body: bytes) -> Request:
    try:
        return WEBSOCKET_DIALECT.read(body)
    except TooComplex as error:
        raise GatewayError(413, str(error), "request_too_large") from None
    except Unreadable as error:
        raise GatewayError(400, str(error), "invalid_request") from None


def _position(request: Request, upstream: Upstream, exchange: Exchange | None) -> LogPosition:
    """Where a request stands in the log; without one, only its own words are proof."""
    if exchange is None:
        return LogPosition(destination=Destination(endpoint=upstream.base_url, model=request.model))
    origin, replay_plan = exchange.decision.target.origin, exchange.decision.replay_plan
    return LogPosition(
        destination=Destination.of(origin),
        turn=exchange.recording.turn,
        parent=replay_plan.parent.turn if replay_plan.parent else "",
        ancestors=frozenset(decision.entry for decision in replay_plan.decisions),
    )


def _renamed(upstream: Upstream) -> Fields:
    """The members that say the upstream's name of the model, where the client has another."""
    return {"model": splice.dumps(upstream.served)} if upstream.asked else {}


def _translated(upstream: Upstream) -> bool:
    """Whether an upstream is reached by translation."""
    return bool(upstream.translates(WEBSOCKET_DIALECT.name))


def _wire(proxy: Proxy, upstream: Upstream, wire: Wire | None) -> ResponsesWire:
    """The way to an upstream: its WebSocket if it has one, and HTTP."""
    timeouts = upstream.timeouts
    options = (
        WebSocketOptions(idle_timeout=timeouts.idle) if timeouts is not None else WebSocketOptions()
    )

    def on_send(sent: SentRequest) -> None:
        proxy.observer.sent(upstream.name, sent)

    connect: Connect = _no_websocket
    if upstream.supports_websockets:
        connect = WebSocketConnector(
            open_timeout=timeouts.connect if timeouts is not None else 10.0,
            max_size=proxy.options.max_body_bytes,
        )
    return ResponsesWire(
        fallback=http_fallback(wire or proxy.wire),
        connect=connect,
        clock=proxy.clock,
        options=options,
        on_send=on_send,
    )


async def _no_websocket(_url: str, _headers: Headers) -> WebSocket:
    raise UpgradeRefused(426)  # as a server would answer that has none
