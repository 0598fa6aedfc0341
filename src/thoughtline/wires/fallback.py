"""The same request over HTTP: a stream of server-sent events as the frames of a WebSocket.

For the time in which a WebSocket is not to be had. Errors come in the WebSocket's envelope,
whether they were a status or an event of the stream, so that a reader needs to know one shape.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from thoughtline import splice
from thoughtline.errors import Unreadable
from thoughtline.wires.base import Inbound, Outbound, Wire, beginning

ERROR_LIMIT = 1 << 20


class Sse(Protocol):
    """One server-sent event."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...


class Splitter(Protocol):
    """Cuts a stream into events (`thoughtline.dialects.sse.Splitter` is one)."""

    def feed(self, data: bytes) -> Iterable[Sse]: ...
    def finish(self) -> Iterable[Sse]: ...


Fallback = Callable[[Outbound], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Sends a full request; gives its events as JSON. Raises `WireError`, also in mid-stream."""


def over_http(wire: Wire, splitter: Callable[[], Splitter]) -> Fallback:
    """A fallback by way of this wire."""

    @asynccontextmanager
    async def send(outbound: Outbound) -> AsyncIterator[AsyncIterator[bytes]]:
        async with wire.send(outbound) as inbound:
            events = _events(inbound, splitter()) if inbound.status == 200 else _refusal(inbound)
            yield events

    return send


async def _events(inbound: Inbound, splitter: Splitter) -> AsyncIterator[bytes]:
    async for chunk in inbound.chunks():
        for event in splitter.feed(chunk):
            if (data := _named(event)) is not None:
                yield data
    for event in splitter.finish():
        if (data := _named(event)) is not None:
            yield data


async def _refusal(inbound: Inbound) -> AsyncIterator[bytes]:
    yield envelope(inbound.status, await beginning(inbound, ERROR_LIMIT))


def _named(event: Sse) -> bytes | None:
    """The event's JSON, its type inside; errors as a WebSocket spells them."""
    if event.data == b"[DONE]":
        return None
    if event.name == "error" or b'"error"' in event.data[:64]:
        return _error(event)
    if event.name and b'"type"' not in event.data and event.data[:1] == b"{":
        return b'{"type":' + splice.dumps(event.name) + b"," + event.data[1:]
    return event.data


def _error(event: Sse) -> bytes:
    try:
        body = splice.loads(event.data)
    except Unreadable:
        return event.data
    if not isinstance(body, dict) or body.get("type", event.name) not in ("error", ""):
        return event.data
    if isinstance(body.get("error"), dict):
        status = body.get("status", 500)
        return envelope(status if isinstance(status, int) else 500, event.data)
    told = {key: body.get(key) for key in ("message", "code", "param")}
    return envelope(500, splice.dumps({"error": {"type": "server_error", **told}}))


def envelope(status: int, body: bytes) -> bytes:
    """An HTTP error as a frame."""
    error: Any
    try:
        document = splice.loads(body)
    except Unreadable:
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        told = error or (document.get("detail") if isinstance(document, dict) else None)
        words = told if isinstance(told, str) else body[:2000].decode("utf-8", "replace")
        kind = "invalid_request_error" if status < 500 else "server_error"
        error = {"type": kind, "code": None, "message": words, "param": None}
    return splice.dumps({"type": "error", "status": status, "error": error})
