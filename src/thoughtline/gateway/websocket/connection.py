"""The Responses API over a WebSocket, for clients that speak it: `GET /v1/responses`.

A connection is authenticated once. Then come frames: each `response.create` goes to its stream
(`stream`), where it is handled like a request that was posted; streams work at the same time, and
a stream answers in order. A connection lives for 60 minutes, as at the provider, and the number of
streams and the size of frames are limited. Errors come in the protocol's envelope.
"""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import WEBSOCKET_DIALECT, splice
from thoughtline.dialects.limits import TooComplex, is_heavy
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.offload import run_aside
from thoughtline.engine.routes import Route, asked, climbs
from thoughtline.errors import Unreadable
from thoughtline.gateway import headers
from thoughtline.gateway.asgi import Receive, Scope, Send
from thoughtline.gateway.auth import Principal
from thoughtline.gateway.credentials import without_key
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.failed_requests import refused
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.websocket import transcript as transcripts
from thoughtline.gateway.websocket.posted import PostedWire
from thoughtline.gateway.websocket.stream import ClientStream
from thoughtline.gateway.websocket.transcript import Create, Transcript
from thoughtline.wires.base import Outbound, Wire, with_appended

LIFETIME = 60 * 60.0
MAX_STREAMS = 32  # beside the one without a name
MAX_CONCURRENT = 16
MAX_WAITING = 64

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_GOING_AWAY, _TOO_BIG = 1001, 1009
_BETA = "responses_websockets"


class WebSocketGateway:
    """Serves WebSockets."""

    def __init__(self, proxy: Proxy, *, lifetime: float = LIFETIME) -> None:
        self.proxy = proxy
        self._lifetime = lifetime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its upgrade to its end."""
        await receive()  # websocket.connect
        try:
            route, principal = self._authenticate(scope)
        except GatewayError as refusal:
            self.proxy.failed.record("", refused(refusal, "WEBSOCKET", scope["path"]))
            await _deny(refusal, scope, send)
            return
        await send({"type": "websocket.accept"})
        connection = _Connection(self.proxy, scope, send, route, principal)
        try:
            await connection.run(receive, self._lifetime)
        finally:
            await connection.close()

    def _authenticate(self, scope: Scope) -> tuple[Route, Principal]:
        route = asked(scope, "POST")
        query = scope.get("query_string", b"").decode("latin-1")
        if route.dialect != WEBSOCKET_DIALECT.name or route.counts or climbs(route.path):
            raise GatewayError(
                404, "only the Responses API is served over a WebSocket", "not_found"
            )
        if refusal := self.proxy.auth.foreign_host(scope["headers"]):
            raise refusal
        principal = self.proxy.auth.require_principal(scope["headers"], query)
        if self.proxy.draining:
            raise GatewayError(503, "this gateway is shutting down; connect again", "going_down")
        if route.upstream:
            self.proxy.upstream(route, "")
        return route, principal


class _Connection:
    """One connection; what a `ClientStream` is part of."""

    def __init__(
        self, proxy: Proxy, scope: Scope, send: Send, route: Route, principal: Principal
    ) -> None:
        self.proxy, self.route, self.principal = proxy, route, principal
        shown = [one for one in scope["headers"] if not one[0].startswith(b"sec-websocket-")]
        known = dict(shown)
        self.hints = headers.session_hints(known)
        self.replay = headers.replay_mode(known)
        self.reports = headers.wants_report(known)
        self._headers = shown
        self._query: str = scope.get("query_string", b"").decode("latin-1")
        self._send = send
        self._streams: dict[str | None, ClientStream] = {None: ClientStream(self, None)}
        self._queues: dict[str | None, asyncio.Queue[Create]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._places = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0  # requests that are not answered yet
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._left = False

    async def run(self, receive: Receive, lifetime: float) -> None:
        """Take frames until one side has had enough."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + lifetime
        incoming = asyncio.ensure_future(receive())
        try:
            while True:
                left = deadline - loop.time()
                await asyncio.wait({incoming}, timeout=left if left > 0 else 0.05)
                if incoming.done():
                    message = incoming.result()
                    if message["type"] == "websocket.disconnect":
                        self._left = True
                        return
                    if loop.time() < deadline and not await self._take(message):
                        return
                    incoming = asyncio.ensure_future(receive())
                if loop.time() >= deadline and self._quiet.is_set():
                    await self._expire()
                    return
        finally:
            incoming.cancel()

    async def close(self) -> None:
        """The client is gone: so is everything that was done for it, unless it is to be kept."""
        if self.proxy.options.finish_on_disconnect:
            await self._quiet.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams.values():
            await stream.close()

    # -- frames in -------------------------------------------------------------------------------

    async def _take(self, message: dict[str, Any]) -> bool:
        """Take one frame; False: that was the last one."""
        text = message.get("text")
        data = message.get("bytes") or b""
        if text is not None:
            data = text.encode("utf-8", "surrogatepass")
        if len(data) > self.proxy.options.max_body_bytes:
            limit = self.proxy.options.max_body_bytes
            said = f"the frame is larger than {limit} bytes; raise `server.max_body_bytes`"
            await self.refuse(GatewayError(413, said, "request_too_large"), None)
            await self._close(_TOO_BIG, "frame too large")
            return False
        name: str | None = None
        try:
            reading = partial(transcripts.read, data)
            kind, name, create = await run_aside(reading) if is_heavy(data) else reading()
            if kind == "response.steer":
                await self.tell(transcripts.unsteered(create), name)
                return True
            _check(kind, name)
            self._enter(name, create)
        except TooComplex as error:
            await self.refuse(GatewayError(413, str(error), "request_too_large"), None)
        except Unreadable as error:
            await self.refuse(GatewayError(400, str(error), "invalid_request"), None)
        except GatewayError as refusal:
            await self.refuse(refusal, name)
        return True

    def _enter(self, name: str | None, create: Create) -> None:
        if name not in self._queues:
            if len(self._queues.keys() - {None}) >= MAX_STREAMS and name is not None:
                raise GatewayError(
                    400,
                    "This WebSocket connection has reached its maximum number of distinct stream "
                    f"IDs ({MAX_STREAMS}). Reuse an existing stream_id or open a new connection.",
                    "websocket_stream_limit_reached",
                )
            self._streams.setdefault(name, ClientStream(self, name))
            self._queues[name] = asyncio.Queue()
            self._tasks.append(asyncio.ensure_future(self._work(name)))
        if self._waiting >= MAX_WAITING:
            raise GatewayError(
                429, f"{MAX_WAITING} requests are waiting already", "too_many_requests"
            )
        self._waiting += 1
        self._quiet.clear()
        self._queues[name].put_nowait(create)

    async def _work(self, name: str | None) -> None:
        """Answer the requests of one stream, in their order."""
        queue, stream = self._queues[name], self._streams[name]
        while True:
            create = await queue.get()
            try:
                async with self._places:
                    await stream.serve(create)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._quiet.set()

    # -- for streams -------------------------------------------------------------------------------

    async def tell(self, event: bytes, stream: str | None) -> None:
        """Send an event to the client; nothing happens when it is gone."""
        if self._left:
            return
        text = transcripts.tagged(event, stream).decode("utf-8", "replace")
        with contextlib.suppress(OSError, RuntimeError):  # it left just now
            await self._send({"type": "websocket.send", "text": text})

    async def refuse(
        self,
        refusal: GatewayError,
        stream: str | None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Send an error answer in the protocol's envelope, which has room for headers."""
        await self.tell(_envelope(refusal, headers), stream)

    def find(self, response: str) -> Transcript | None:
        """The transcript of a response in any stream."""
        held = (stream.latest for stream in self._streams.values())
        return next((one for one in held if one is not None and one.response == response), None)

    def outbound(self, body: bytes, upstream: Upstream, exchange: Exchange | None) -> Outbound:
        """A request on its way to the upstream, as a POST."""
        keyed = bool(self.principal.client)
        query = self._query
        if upstream.key or keyed or upstream.foreign:
            query = without_key(query, others=upstream.foreign)
        made = headers.to_upstream(
            self._headers,
            dialect=WEBSOCKET_DIALECT.name,
            key=upstream.key,
            decompressed=True,
            gateway_key=keyed,
            foreign=upstream.foreign,
            identity=self.proxy.auth.identity_header,
        )
        if not upstream.supports_websockets:
            made = [one for one in made if not one[1].startswith(_BETA)]
        named = {name for name, _ in made}
        own = [("content-type", "application/json"), ("accept", "text/event-stream")]
        made += [(name, value) for name, value in own if name not in named]
        outbound = Outbound(
            method="POST",
            url=upstream.url(WEBSOCKET_DIALECT.name, self.route.path, query),
            headers=headers.with_configured(made, upstream.headers),
            body=body,
            timeouts=upstream.timeouts,
        )
        if exchange is None or not exchange.decision.overrides.headers:
            return outbound
        return replace(
            outbound,
            headers=with_appended(outbound.headers, exchange.decision.overrides.headers),
        )

    def posted(self) -> Wire:
        """The wire to this gateway itself, for upstreams that are reached by translation."""
        return PostedWire(self.proxy, self._headers, self._query, self.route)

    # -- the end ---------------------------------------------------------------------------------

    async def _expire(self) -> None:
        said = (
            "Responses websocket connection limit reached (60 minutes). "
            "Create a new websocket connection to continue."
        )
        await self.refuse(GatewayError(400, said, "websocket_connection_limit_reached"), None)
        await self._close(_GOING_AWAY, "connection limit reached")

    async def _close(self, code: int, reason: str) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        self._left = True


def _check(kind: str, name: str | None) -> None:
    if name is not None and not _NAME.fullmatch(name):
        raise GatewayError(
            400,
            "The 'stream_id' field must be a non-empty string with at most 256 characters and may "
            "only contain letters, numbers, underscores, hyphens, and periods.",
            "invalid_stream_id",
        )
    if kind != "response.create":
        raise GatewayError(
            400, f"Invalid value: {kind!r}. Expected 'response.create'.", "invalid_value"
        )


def _envelope(refusal: GatewayError, added: Sequence[tuple[str, str]]) -> bytes:
    body = WEBSOCKET_DIALECT.error(refusal.status, refusal.message, code=refusal.code)
    error = splice.loads(body)["error"]
    said = dict(added or headers.failure_headers(None, code=refusal.code))
    return splice.dumps(
        {"type": "error", "status": refusal.status, "error": error, "headers": said}
    )


async def _deny(refusal: GatewayError, scope: Scope, send: Send) -> None:
    """Answer the upgrade with a plain reply, where the server can."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
        return
    body = WEBSOCKET_DIALECT.error(refusal.status, refusal.message, code=refusal.code)
    made = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        headers.refusal_header(refusal.code),
    ]
    start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": made}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})
