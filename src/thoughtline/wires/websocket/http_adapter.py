"""Between frames and HTTP, both ways: a WebSocket's stream as a plain `Wire`, and the fallback.

`StreamAdapter` serves code that knows HTTP and no frames: it gives the answer to a POST, with a
status and server-sent events or the error's JSON. `http_fallback` serves the wire itself while no
WebSocket can be had: it sends the same request over HTTP and gives its events as frames, with
errors in the WebSocket's envelope, so that a reader needs to know one shape.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.sse import SseEvent, SseParser
from thoughtline.errors import Unreadable
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire, read_up_to
from thoughtline.wires.websocket.continuation import LogPosition
from thoughtline.wires.websocket.response import SentRequest, WireResponse

MAX_ERROR_BYTES = 1 << 20

_Send = Callable[[Outbound, LogPosition], AbstractAsyncContextManager[WireResponse]]

# -- a stream as a plain wire --------------------------------------------------------------------


class StreamAdapter:
    """A plain `Wire` for the requests of one turn; `commit` says that the turn is written."""

    def __init__(self, send: _Send, position: LogPosition) -> None:
        self._send = send
        self._position = position
        self._response: WireResponse | None = None

    @property
    def sent(self) -> SentRequest | None:
        """How the last request was sent, and why so."""
        return self._response.sent if self._response is not None else None

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        async with self._send(request, self._position) as response:
            self._response = response
            yield _HttpResponse(response)

    def commit(self, turn: str | None = None) -> bool:
        """Allow the next request to continue this turn. See `WireResponse.commit`."""
        return self._response is not None and self._response.commit(turn)

    async def close(self) -> None:
        """Do nothing: the connection is the stream's, and stays open."""


class _HttpResponse:
    """One response as HTTP would give it."""

    def __init__(self, response: WireResponse) -> None:
        self._response = response
        self.status = response.status
        kind = "application/json" if response.refusal else "text/event-stream"
        self.headers: Headers = [("content-type", kind), *_error_headers(response)]

    async def chunks(self) -> AsyncIterator[bytes]:
        async for event in self._response:
            yield event if self._response.refusal else sse_event(event)


def sse_event(event: bytes) -> bytes:
    """A server-sent event with this JSON; line ends inside of it are kept."""
    return b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"


def _error_headers(response: WireResponse) -> list[tuple[str, str]]:
    """The headers that a refusal's frame brings along: when to try again, and such."""
    if response.refusal is None:
        return []
    try:
        headers = splice.loads(response.refusal.data)["error"]["headers"]
        return [(str(name).lower(), str(value)) for name, value in headers.items()]
    except (Unreadable, LookupError, TypeError, AttributeError):
        return []


# -- a request over HTTP instead of a WebSocket --------------------------------------------------

Fallback = Callable[[Outbound], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Sends a full request; gives its events as JSON. Raises `WireError`, also in mid-stream."""


def http_fallback(wire: Wire) -> Fallback:
    """A fallback that sends over this wire."""

    @asynccontextmanager
    async def send(outbound: Outbound) -> AsyncIterator[AsyncIterator[bytes]]:
        async with wire.send(outbound) as inbound:
            yield _events(inbound) if inbound.status == 200 else _refusal(inbound)

    return send


async def _events(inbound: Inbound) -> AsyncIterator[bytes]:
    splitter = SseParser()
    async for chunk in inbound.chunks():
        for event in splitter.feed(chunk):
            if (data := _frame(event)) is not None:
                yield data
    for event in splitter.finish():
        if (data := _frame(event)) is not None:
            yield data


async def _refusal(inbound: Inbound) -> AsyncIterator[bytes]:
    yield envelope(inbound.status, await read_up_to(inbound, MAX_ERROR_BYTES))


def _frame(event: SseEvent) -> bytes | None:
    """The event's JSON with its type inside; errors as a WebSocket spells them."""
    if event.data == b"[DONE]":
        return None
    if event.name == "error" or b'"error"' in event.data[:64]:
        return _error_frame(event)
    if event.name and b'"type"' not in event.data and event.data[:1] == b"{":
        return b'{"type":' + splice.dumps(event.name) + b"," + event.data[1:]
    return event.data


def _error_frame(event: SseEvent) -> bytes:
    try:
        body = splice.loads(event.data)
    except Unreadable:
        return event.data
    if not isinstance(body, dict) or body.get("type", event.name) not in ("error", ""):
        return event.data
    if isinstance(body.get("error"), dict):
        status = body.get("status", 500)
        return envelope(status if isinstance(status, int) else 500, event.data)
    error = {key: body.get(key) for key in ("message", "code", "param")}
    return envelope(500, splice.dumps({"error": {"type": "server_error", **error}}))


def envelope(status: int, body: bytes) -> bytes:
    """An HTTP error as a frame."""
    try:
        document = splice.loads(body)
    except Unreadable:
        document = None
    error: Any = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict):
        text = error or (document.get("detail") if isinstance(document, dict) else None)
        message = text if isinstance(text, str) else body[:2000].decode("utf-8", "replace")
        kind = "invalid_request_error" if status < 500 else "server_error"
        error = {"type": kind, "code": None, "message": message, "param": None}
    return splice.dumps({"type": "error", "status": status, "error": error})
