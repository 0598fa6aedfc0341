"""The simulated providers on a socket: an ASGI app with one provider per first path segment.

`/deepseek/v1/chat/completions` is answered by the simulator called deepseek. `GET /` lists the
providers and `GET /{name}/_sim` tells what one of them has received. This is the only room that
knows about time and bytes on the wire: pace, cut and stalled streams, WebSockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from thoughtline.testing.sims.base import (
    Lanes,
    Pace,
    Reply,
    Request,
    Simulator,
    Socket,
    json_reply,
)

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

_LOOK = 0.05
"""Seconds between two looks at the world while a stream stalls."""


class SimApp:
    """Serves simulators by name."""

    def __init__(self, simulators: Mapping[str, Simulator], *, pace: Pace | None = None) -> None:
        self.simulators = dict(simulators)
        self.pace = pace or Pace()
        self.closing = False
        """Set it to end stalled streams, so that a server can stop."""
        self.aborted = 0
        """How many replies the client hung up on."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self.socket(scope, receive, send)
        else:
            await self.http(scope, receive, send)

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        body = await _body(receive)
        if body is None:
            return
        name, request = _split(scope, body)
        simulator = self.simulators.get(name)
        if simulator is None:
            reply = self.index() if name == "" else self.unknown(name)
        elif request.path == "/_sim":
            reply = _report(simulator)
        else:
            reply = simulator.answer(request)
        await self.give(reply, receive, send)

    async def give(self, reply: Reply, receive: Receive, send: Send) -> None:
        """Put a reply on the wire, at our pace."""
        headers = [(k.encode(), v.encode()) for k, v in reply.headers.items()]
        if len(reply.chunks) == 1 and reply.ending == "whole":
            headers.append((b"content-length", str(len(reply.body)).encode()))
        start = {"type": "http.response.start", "status": reply.status, "headers": headers}
        await send(start)
        gone = asyncio.ensure_future(_hung_up(receive))
        try:
            for at, piece in enumerate(self.pace.pieces(reply.chunks)):
                if at and self.pace.delay:
                    await asyncio.wait({gone}, timeout=self.pace.delay)
                if gone.done():
                    self.aborted += 1
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            while reply.ending == "stall" and not (gone.done() or self.closing):
                await asyncio.wait({gone}, timeout=_LOOK)
            self.aborted += reply.ending == "stall" and gone.done()
        finally:
            gone.cancel()
        # A reply that is cut or stalled never gets its last event: the server then drops the line.
        if reply.ending == "whole":
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket."""
        await receive()  # websocket.connect
        name, request = _split(scope, b"")
        simulator = self.simulators.get(name)
        accepted = self.unknown(name) if simulator is None else simulator.connect(request)
        if isinstance(accepted, Reply):
            await _reject(accepted, scope, send)
            return
        await send({"type": "websocket.accept"})
        if isinstance(accepted, Lanes):
            await self.interleave(accepted, receive, send)
        else:
            await self.converse(accepted, receive, send)

    async def converse(self, socket: Socket, receive: Receive, send: Send) -> None:
        """Frames in, frames out, until one side closes."""
        while True:
            event = await receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            frames = [] if text is None else socket.receive(text)
            for frame in frames:
                if self.pace.delay:
                    await asyncio.sleep(self.pace.delay)
                await send({"type": "websocket.send", "text": frame})
            code = socket.close_code if text is not None else 1003
            if code is not None:
                await send({"type": "websocket.close", "code": code})
                return

    async def interleave(self, socket: Lanes, receive: Receive, send: Send) -> None:
        """The same for a socket that goes on with its work while frames come in."""
        incoming = asyncio.ensure_future(receive())
        frames: list[str] = []
        try:
            while socket.close_code is None:
                # What is under way but gave nothing has stalled: no need to hurry.
                pace = self.pace.delay if frames else _LOOK
                await asyncio.wait({incoming}, timeout=socket.remaining if socket.idle else pace)
                frames = []
                if incoming.done():
                    event = incoming.result()
                    if event["type"] == "websocket.disconnect":
                        return
                    frames += socket.take(event.get("text") or event.get("bytes") or b"")
                    incoming = asyncio.ensure_future(receive())
                frames += socket.step()
                for frame in frames:
                    await send({"type": "websocket.send", "text": frame})
            await send({"type": "websocket.close", "code": socket.close_code})
        finally:
            incoming.cancel()

    def index(self) -> Reply:
        """What there is."""
        rows = [
            {"name": name, "dialect": sim.dialect, "base_path": sim.base_path, "rule": sim.summary}
            for name, sim in self.simulators.items()
        ]
        return json_reply(200, {"providers": rows})

    def unknown(self, name: str) -> Reply:
        """No such provider."""
        names = ", ".join(self.simulators)
        text = f"no simulated provider is called {name!r}; there are: {names}"
        return json_reply(404, {"error": {"message": text, "type": "not_found_error"}})


def _split(scope: Scope, body: bytes) -> tuple[str, Request]:
    """The provider's name, and the request as it sees it."""
    name, _, rest = scope["path"].lstrip("/").partition("/")
    headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
    query = scope.get("query_string", b"").decode("latin-1")
    return name, Request(scope.get("method", "GET"), f"/{rest}", headers, body, query)


def _report(simulator: Simulator) -> Reply:
    """What a simulator has seen: for people and for tests in other processes."""
    audits = [
        {"path": record.request.path, "status": record.reply.status, "thoughts": str(record.audit)}
        for record in simulator.requests
    ]
    return json_reply(200, {"emitted": len(simulator.emitted), "requests": audits})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None when the client hung up before it was sent."""
    parts = []
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        parts.append(event.get("body", b""))
        if not event.get("more_body"):
            return b"".join(parts)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reject(reply: Reply, scope: Scope, send: Send) -> None:
    """Answer an upgrade with a plain reply."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(k.encode(), v.encode()) for k, v in reply.headers.items()]
    status = {"type": "websocket.http.response.start", "status": reply.status, "headers": headers}
    await send(status)
    await send({"type": "websocket.http.response.body", "body": reply.body})
