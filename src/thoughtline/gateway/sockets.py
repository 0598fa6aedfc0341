"""The Responses API over a WebSocket, for clients that speak it: `GET /v1/responses`.

The same door as for any request, once per connection. Then frames: each `response.create` goes to
its lane (`lanes`), where it is walked like a request that was posted; lanes work at the same time,
a lane answers in order. A connection lives for 60 minutes, as at the provider, takes so many
lanes and frames of so many bytes. Errors come in the protocol's envelope.
"""

import asyncio
import contextlib
import re
from typing import Any

from msgspec.structs import replace

from thoughtline import splice
from thoughtline.dialects import DIALECTS
from thoughtline.errors import Unreadable
from thoughtline.exchanges import Exchange
from thoughtline.gateway import headers, transcripts
from thoughtline.gateway.access import Visitor, without_key
from thoughtline.gateway.lanes import Lane
from thoughtline.gateway.proxy import Proxy, Receive, Scope, Send
from thoughtline.gateway.refusals import Refusal, foreign
from thoughtline.gateway.routes import Route, asked, climbs
from thoughtline.gateway.transcripts import Create, Transcript
from thoughtline.gateway.upstreams import Upstream
from thoughtline.wires.base import Outbound

LIFETIME = 60 * 60.0
MOST_LANES = 32  # beside the one without a name
MOST_AT_ONCE = 16
MOST_WAITING = 64

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_GOING_AWAY, _TOO_BIG = 1001, 1009
_BETA = "responses_websockets"


class Sockets:
    """Serves WebSockets."""

    def __init__(self, proxy: Proxy, *, lifetime: float = LIFETIME) -> None:
        self.proxy = proxy
        self._lifetime = lifetime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from the door to its end."""
        await receive()  # websocket.connect
        try:
            route, visitor = self._door(scope)
        except Refusal as refusal:
            await _deny(refusal, scope, send)
            return
        await send({"type": "websocket.accept"})
        visit = _Visit(self.proxy, scope, send, route, visitor)
        try:
            await visit.run(receive, self._lifetime)
        finally:
            await visit.close()

    def _door(self, scope: Scope) -> tuple[Route, Visitor]:
        route = asked(scope, "POST")
        query = scope.get("query_string", b"").decode("latin-1")
        if route.dialect != "responses" or climbs(route.path):
            raise Refusal(404, "only the Responses API is served over a WebSocket", "not_found")
        visitor = self.proxy.door.admit(scope["headers"], query)
        if visitor is None:
            raise Refusal(
                401,
                "this gateway does not know that key; expected one of its client keys",
                "invalid_api_key",
            )
        if page := self.proxy.door.stranger(scope["headers"]):
            raise foreign(page)
        if self.proxy.draining:
            raise Refusal(503, "this gateway is going down; connect again", "going_down")
        if route.upstream:
            self.proxy.upstream(route, "")
        return route, visitor


class _Visit:
    """One connection; what a `Lane` is part of."""

    def __init__(
        self, proxy: Proxy, scope: Scope, send: Send, route: Route, visitor: Visitor
    ) -> None:
        self.proxy, self.route, self.visitor = proxy, route, visitor
        shown = [one for one in scope["headers"] if not one[0].startswith(b"sec-websocket-")]
        known = dict(shown)
        self.hints = headers.hints(known)
        self.asked = headers.wish(known)
        self._headers = shown
        self._query: str = scope.get("query_string", b"").decode("latin-1")
        self._send = send
        self._lanes: dict[str | None, Lane] = {None: Lane(self, None)}
        self._queues: dict[str | None, asyncio.Queue[Create]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._waiting = 0  # requests that are not answered yet
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._left = False

    async def run(self, receive: Receive, lifetime: float) -> None:
        """Take frames until one side has had enough."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + lifetime
        incoming = asyncio.ensure_future(receive())
        try:
            while True:
                left = deadline - clock()
                await asyncio.wait({incoming}, timeout=left if left > 0 else 0.05)
                if incoming.done():
                    message = incoming.result()
                    if message["type"] == "websocket.disconnect":
                        self._left = True
                        return
                    if clock() < deadline and not await self._take(message):
                        return
                    incoming = asyncio.ensure_future(receive())
                if clock() >= deadline and self._quiet.is_set():
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
        for lane in self._lanes.values():
            await lane.close()

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
            await self.refuse(Refusal(413, said, "request_too_large"), None)
            await self._close(_TOO_BIG, "frame too large")
            return False
        name: str | None = None
        try:
            kind, name, create = transcripts.read(data)
            if kind == "response.steer":
                await self.tell(transcripts.unsteered(create), name)
                return True
            _check(kind, name)
            self._enter(name, create)
        except Unreadable as error:
            await self.refuse(Refusal(400, str(error), "invalid_request"), None)
        except Refusal as refusal:
            await self.refuse(refusal, name)
        return True

    def _enter(self, name: str | None, create: Create) -> None:
        if name not in self._queues:
            if len(self._queues.keys() - {None}) >= MOST_LANES and name is not None:
                raise Refusal(
                    400,
                    "This WebSocket connection has reached its maximum number of distinct stream "
                    f"IDs ({MOST_LANES}). Reuse an existing stream_id or open a new connection.",
                    "websocket_stream_limit_reached",
                )
            self._lanes.setdefault(name, Lane(self, name))
            self._queues[name] = asyncio.Queue()
            self._tasks.append(asyncio.ensure_future(self._work(name)))
        if self._waiting >= MOST_WAITING:
            raise Refusal(429, f"{MOST_WAITING} requests are waiting already", "too_many_requests")
        self._waiting += 1
        self._quiet.clear()
        self._queues[name].put_nowait(create)

    async def _work(self, name: str | None) -> None:
        """Answer the requests of one lane, in their order."""
        queue, lane = self._queues[name], self._lanes[name]
        while True:
            create = await queue.get()
            try:
                async with self._places:
                    await lane.serve(create)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._quiet.set()

    # -- for lanes -------------------------------------------------------------------------------

    async def tell(self, event: bytes, lane: str | None) -> None:
        """Send an event to the client; nothing happens when it is gone."""
        if self._left:
            return
        text = transcripts.tagged(event, lane).decode("utf-8", "replace")
        with contextlib.suppress(OSError, RuntimeError):  # it left just now
            await self._send({"type": "websocket.send", "text": text})

    async def refuse(self, refusal: Refusal, lane: str | None) -> None:
        """An error of ours, in the protocol's envelope."""
        await self.tell(_envelope(refusal), lane)

    def find(self, response: str) -> Transcript | None:
        """The transcript of a response in any lane."""
        held = (lane.latest for lane in self._lanes.values())
        return next((one for one in held if one is not None and one.response == response), None)

    def outbound(self, body: bytes, upstream: Upstream, exchange: Exchange | None) -> Outbound:
        """A request on its way to the upstream, as a POST."""
        keyed = bool(self.visitor.client)
        query = without_key(self._query) if upstream.key or keyed else self._query
        made = headers.upstream(
            self._headers, dialect="responses", key=upstream.key, recoded=True, ours=keyed
        )
        if not upstream.supports_websockets:
            made = [one for one in made if not one[1].startswith(_BETA)]
        named = {name for name, _ in made}
        own = [("content-type", "application/json"), ("accept", "text/event-stream")]
        made += [(name, value) for name, value in own if name not in named]
        outbound = Outbound(
            method="POST",
            url=upstream.url("responses", self.route.path, query),
            headers=headers.overlaid(made, upstream.headers),
            body=body,
            patience=upstream.patience,
        )
        if exchange is None or not exchange.terms.headers:
            return outbound
        return replace(outbound, headers=headers.joined(outbound.headers, exchange.terms.headers))

    # -- the end ---------------------------------------------------------------------------------

    async def _expire(self) -> None:
        said = (
            "Responses websocket connection limit reached (60 minutes). "
            "Create a new websocket connection to continue."
        )
        await self.refuse(Refusal(400, said, "websocket_connection_limit_reached"), None)
        await self._close(_GOING_AWAY, "connection limit reached")

    async def _close(self, code: int, reason: str) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})
        self._left = True


def _check(kind: str, name: str | None) -> None:
    if name is not None and not _NAME.fullmatch(name):
        raise Refusal(
            400,
            "The 'stream_id' field must be a non-empty string with at most 256 characters and may "
            "only contain letters, numbers, underscores, hyphens, and periods.",
            "invalid_stream_id",
        )
    if kind != "response.create":
        raise Refusal(400, f"Invalid value: {kind!r}. Expected 'response.create'.", "invalid_value")


_PARAMS = {
    "previous_response_not_found": "previous_response_id",
    "invalid_stream_id": "stream_id",
    "websocket_stream_limit_reached": "stream_id",
    "invalid_value": "type",
}


def _envelope(refusal: Refusal) -> bytes:
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    error = {
        "type": kind,
        "code": refusal.code or None,
        "message": refusal.message,
        "param": _PARAMS.get(refusal.code),
    }
    return splice.dumps({"type": "error", "status": refusal.status, "error": error})


async def _deny(refusal: Refusal, scope: Scope, send: Send) -> None:
    """Answer the upgrade with a plain reply, where the server can."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.message[:120]})
        return
    body = DIALECTS["responses"].error(refusal.status, refusal.message, code=refusal.code)
    made = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": made}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})
