"""The request cycle: one request and its response, between a connection and an ASGI application.

Every request and every chunk of a stream goes through here, so it does what the gateway needs and
no more: there is no access log, and the server adds no headers of its own.

The response's head is held back until the first chunk of its body: one packet instead of two saves
a system call, and does not wake the client for bytes it can do nothing with. A head that is still
alone at the event loop's next iteration is sent by itself, so that no status waits for a model's
first word.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from thoughtline.errors import fault
from thoughtline.gateway.asgi import OWN_SERVER, App, Scope

if TYPE_CHECKING:
    from thoughtline.gateway.server.protocol import HttpProtocol

MAX_JOINED = 64 << 10
"""Bytes of a chunk that are copied behind the head to save a packet."""

_NO_BODY = (204, 304)
_CONNECTION_HEADERS = frozenset({b"connection", b"transfer-encoding"})
"""Headers of a response that the server writes by itself."""
_LEGAL = b"\t" + bytes(byte for byte in range(0x20, 0x100) if byte != 0x7F)
"""Bytes that a header may consist of."""

_log = logging.getLogger("uvicorn.error")


class RequestCycle:
    """Receives a request and sends its response."""

    __slots__ = (
        "_body_left",
        "_chunked",
        "_chunks",
        "_connection",
        "_expects_continue",
        "_head",
        "_head_only",
        "_left",
        "_message_event",
        "_more_body",
        "_size",
        "_unread",
        "complete",
        "disconnected",
        "keep_alive",
        "started",
        "takes_interim",
    )

    def __init__(
        self,
        connection: "HttpProtocol",
        *,
        head_only: bool,
        keep_alive: bool,
        takes_interim: bool,
        expects_continue: bool,
    ) -> None:
        self._connection = connection
        self.keep_alive = keep_alive  # the connection stays open for another request
        self.takes_interim = takes_interim  # the client understands interim responses (HTTP/1.1)
        self.disconnected = False
        self._left: Callable[[], None] | None = None  # for whoever wants to know of that
        # the request
        self._expects_continue = expects_continue  # the client waits for 100 before its body
        self._chunks: list[bytes] = []
        self._size = 0
        self._more_body = True
        self._unread = False  # something came that the application has not received
        self._message_event: asyncio.Event | None = None  # set for an application that waits
        # the response
        self._head_only = head_only  # to a HEAD request
        self.started = False  # its head is made
        self._head = b""  # while it is held back
        self._chunked = False  # its body is sent in chunks, and has not ended
        self._body_left = -1  # bytes of the body still to be sent; below 0: unknown
        self.complete = False

    async def run(self, app: App, scope: Scope) -> None:
        """Run the application; where it fails, answer 500 or close the connection."""
        scope["extensions"] = {OWN_SERVER: self}
        try:
            await app(scope, self.receive, self.send)
        except asyncio.CancelledError:  # the server has stopped, and waited for long enough
            await self._fail()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the client is answered)
            # Without its own words, which may quote a body.
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("Exception in ASGI application: %s\n%s", fault(error), frames)
            await self._fail()
        else:
            if not self.complete and not self.disconnected:
                _log.error("ASGI callable returned without completing response.")
                await self._fail()

    async def _fail(self) -> None:
        if self.started:
            self._flush()
            self._connection.transport.close()
            return
        body = b"Internal Server Error"
        head = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": head})
        await self.send({"type": "http.response.body", "body": body})

    # -- for the connection ----------------------------------------------------------------------

    def feed(self, chunk: bytes) -> None:
        """Take a chunk of the request's body; reading pauses while too much of it is unread."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > HIGH_WATER_LIMIT:
            self._connection.flow.pause_reading()
        self._notify()

    def feed_eof(self) -> None:
        """The request is complete."""
        self._more_body = False
        self._notify()

    def disconnect(self) -> None:
        """The client disconnected."""
        self.disconnected, self._chunked = True, False
        self._notify()
        if self._left is not None:
            self._left()

    def abort(self) -> bool:
        """Give up the response; returns whether the connection may send an error in its place."""
        self.disconnect()
        return not self.started

    def _notify(self) -> None:
        self._unread = True
        if self._message_event is not None:
            self._message_event.set()

    # -- for the application: the request --------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """The body's chunks since the last call, or `http.disconnect`."""
        connection = self._connection
        if self._expects_continue and not connection.transport.is_closing():
            self._expects_continue = False
            connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._unread or self.complete or self.disconnected):
            connection.flow.resume_reading()
            if self._message_event is None:
                self._message_event = asyncio.Event()
            self._message_event.clear()
            await self._message_event.wait()
        if self.complete or self.disconnected:
            return {"type": "http.disconnect"}
        chunks = self._chunks
        self._chunks, self._size, self._unread = [], 0, False
        return {
            "type": "http.request",
            "body": b"".join(chunks),  # of one, that is itself
            "more_body": self._more_body,
        }

    def take_body(self) -> bytes | None:
        """The whole body if it has arrived and nobody has called `receive`; else None."""
        if self._more_body or not self._unread or self.disconnected:
            return None
        body = b"".join(self._chunks)
        self._chunks.clear()
        self._size, self._unread = 0, False
        return body

    def watch(self, left: Callable[[], None] | None) -> None:
        """Call this when the client disconnects, or has; None: nobody asks any more."""
        self._left = left
        if left is not None:
            self._connection.flow.resume_reading()  # otherwise nobody hears of it
            if self.disconnected:
                left()

    # -- for the application: the response -------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send the head or a chunk of the body; waits for a client that reads slowly."""
        flow = self._connection.flow
        if flow.write_paused and not self.disconnected:
            await flow.drain()
        if self.disconnected:
            return
        wanted = "http.response.body" if self.started else "http.response.start"
        if message["type"] != wanted or self.complete:
            state = "the response is complete" if self.complete else f"expected {wanted!r}"
            raise RuntimeError(f"unexpected ASGI message {message['type']!r}: {state}")
        if self.started:
            self._send_body(message.get("body", b""), last=not message.get("more_body", False))
        else:
            self._send_head(message["status"], message.get("headers", ()))
            if "body" in message:  # all of it: no message of the standard, but one less
                self._send_body(message["body"], last=True)
            else:
                self._connection.loop.call_soon(self._flush)

    def write_now(self, chunk: bytes) -> bool:
        """Send a chunk of a stream at once; False where the client has to be waited for."""
        if not self._chunked or self._connection.flow.write_paused:
            return False
        framed = b"%x\r\n%b\r\n" % (len(chunk), chunk)
        if self._head:
            self._write(framed)
        else:
            self._connection.transport.write(framed)
        return True

    def _send_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.started, self._expects_continue = True, False
        if self._more_body:  # nobody will read the rest of the request
            self.keep_alive = False
        pairs = list(headers)
        known = dict(pairs)
        if not b"".join(known).islower():
            pairs = [(name.lower(), value) for name, value in pairs]
            known = dict(pairs)
        if not _CONNECTION_HEADERS.isdisjoint(known):
            closes = [b"close" in v.lower() for n, v in pairs if n in _CONNECTION_HEADERS]
            self.keep_alive = self.keep_alive and not any(closes)
            pairs = [pair for pair in pairs if pair[0] not in _CONNECTION_HEADERS]
        lines = [*map(b": ".join, pairs)]
        if b"content-length" in known:
            self._body_left = int(known[b"content-length"])
        if self._head_only or status in _NO_BODY:
            self._body_left = 0
        elif self._body_left < 0:
            self._chunked = True
            lines.append(b"transfer-encoding: chunked")
        if not self.keep_alive:
            lines.append(b"connection: close")
        lines += (b"", b"")
        first = STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status  # beyond 599: no words
        head = first + b"\r\n".join(lines)
        if head.translate(None, _LEGAL) != b"\r\n" * len(lines):  # header injection
            raise RuntimeError("a header of the response holds a control character")
        self._head = head

    def _send_body(self, chunk: bytes, *, last: bool) -> None:
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
            self._write(framed + b"0\r\n\r\n" if last else framed)
        elif not self._head_only:
            self._body_left -= len(chunk)
            if self._body_left < 0:
                raise RuntimeError("the response is longer than its content-length")
            self._write(chunk)
        if last:
            self._complete()

    def _complete(self) -> None:
        self._flush()
        if self._body_left > 0:
            raise RuntimeError("the response is shorter than its content-length")
        self.complete, self._chunked = True, False
        self._notify()
        if not self.keep_alive:
            self._connection.close_gently()
        self._connection.response_complete()

    def _write(self, data: bytes) -> None:
        """Write; a head that was held back goes first, in the same packet."""
        if self._head:
            if len(data) > MAX_JOINED:
                self._flush()
            else:
                data, self._head = self._head + data, b""
        self._connection.transport.write(data)

    def _flush(self) -> None:
        """Write a head that was held back."""
        if self._head and not self.disconnected:
            head, self._head = self._head, b""
            self._connection.transport.write(head)
