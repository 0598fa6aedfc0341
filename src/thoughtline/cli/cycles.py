"""One request and the answer to it, between a connection and an ASGI application.

Every request and every piece of a stream goes through here, so it does what our applications need
and no more: there is no access log, and there are no headers of the server's own.

The head of an answer is held back until the first piece of its body: one packet, not two, which
saves a system call here and does not wake the client for bytes it can do nothing with. A head that
is still alone when the loop comes round goes out as it is: nobody waits for a model's first word
to see a status.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from thoughtline.gateway.proxy import App, Scope

MOST = 64 << 10  # bytes that are copied to save a packet

_NO_BODY = (204, 304)
_THE_SERVERS = frozenset({b"connection", b"transfer-encoding"})
"""Headers by which an application says what is for the server to say."""
_LEGAL = b"\t" + bytes(byte for byte in range(0x20, 0x100) if byte != 0x7F)
"""What a header may be made of."""

_log = logging.getLogger("uvicorn.error")


class Line(Protocol):
    """The connection of a client, as a cycle sees it."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop

    def answered(self) -> None:
        """An answer is out: the next request may have its own."""


class Cycle:
    """A request that comes in, and an answer that goes out."""

    __slots__ = (
        "_bare",
        "_chunked",
        "_fresh",
        "_head",
        "_left",
        "_line",
        "_more",
        "_news",
        "_pieces",
        "_polite",
        "_size",
        "_started",
        "complete",
        "gone",
        "keep_alive",
    )

    def __init__(self, line: Line, *, bare: bool, keep_alive: bool, polite: bool) -> None:
        self._line = line
        self.keep_alive = keep_alive  # the connection is good for another request
        self.gone = False  # the client left
        # the request
        self._polite = polite  # the client asks before it sends its body
        self._pieces: list[bytes] = []
        self._size = 0
        self._more = True  # of it is to come
        self._fresh = False  # something came that nobody was told
        self._news: asyncio.Event | None = None  # for those who wait
        # the answer
        self._bare = bare  # only its head is asked for
        self._started = False
        self._head = b""  # as long as it is held back
        self._chunked = False
        self._left = -1  # bytes of the body that are to come; below 0: nobody knows
        self.complete = False

    async def run(self, app: App, scope: Scope) -> None:
        """Have it answered; if it is not, the client is told, or cut off."""
        try:
            await app(scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001 (also when the time of its task is over)
            _log.error("Exception in ASGI application\n", exc_info=error)
            await self._fail()
        else:
            if not self.complete and not self.gone:
                _log.error("ASGI callable returned without completing response.")
                await self._fail()

    async def _fail(self) -> None:
        if self._started:
            self._flush()
            self._line.transport.close()
            return
        said = b"Internal Server Error"
        head = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(said)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": head})
        await self.send({"type": "http.response.body", "body": said})

    # -- for the connection ----------------------------------------------------------------------

    def take(self, body: bytes) -> None:
        """A piece of the request's body; when too much of it waits, nothing more is read."""
        self._pieces.append(body)
        self._size += len(body)
        if self._size > HIGH_WATER_LIMIT:
            self._line.flow.pause_reading()
        self._tell()

    def end(self) -> None:
        """The request is complete."""
        self._more = False
        self._tell()

    def leave(self) -> None:
        """The client is not there any more."""
        self.gone = True
        self._tell()

    def refused(self) -> bool:
        """The connection ends with other words: whether there is still room for them."""
        self.leave()
        return not self._started

    def _tell(self) -> None:
        self._fresh = True
        if self._news is not None:
            self._news.set()

    # -- for the application: the request --------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        """What came of the request since last time, or the news that nobody listens any more."""
        line = self._line
        if self._polite and not line.transport.is_closing():
            self._polite = False
            line.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._fresh or self.complete or self.gone):
            line.flow.resume_reading()
            if self._news is None:
                self._news = asyncio.Event()
            self._news.clear()
            await self._news.wait()
        if self.complete or self.gone:
            return {"type": "http.disconnect"}
        pieces = self._pieces
        self._pieces, self._size, self._fresh = [], 0, False
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self._more}

    # -- for the application: the answer ---------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send the head, or a piece of the body; waits for a client that reads slowly."""
        flow = self._line.flow
        if flow.write_paused and not self.gone:
            await flow.drain()
        if self.gone:
            return
        wanted = "http.response.body" if self._started else "http.response.start"
        if message["type"] != wanted or self.complete:
            state = "the response is complete" if self.complete else f"expected {wanted!r}"
            raise RuntimeError(f"unexpected ASGI message {message['type']!r}: {state}")
        if self._started:
            self._say(message.get("body", b""), last=not message.get("more_body", False))
        else:
            self._start(message["status"], message.get("headers", ()))

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._started, self._polite = True, False
        lines = [STATUS_LINE[status]]
        for spelled, value in headers:
            name = spelled.lower()
            if name in _THE_SERVERS:
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
                continue
            if name == b"content-length":
                self._left = int(value)
            lines.append(b"%b: %b\r\n" % (name, value))
        if self._bare or status in _NO_BODY:
            self._left = 0
        elif self._left < 0:
            self._chunked = True
            lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        if head.translate(None, _LEGAL) != b"\r\n" * len(lines):  # no header begins another one
            raise RuntimeError("a header of the response holds a control character")
        self._head = head
        self._line.loop.call_soon(self._flush)

    def _say(self, body: bytes, *, last: bool) -> None:
        if self._chunked:
            framed = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._write(framed + b"0\r\n\r\n" if last else framed)
        elif not self._bare:
            self._left -= len(body)
            if self._left < 0:
                raise RuntimeError("the response is longer than its content-length")
            self._write(body)
        if last:
            self._complete()

    def _complete(self) -> None:
        self._flush()
        if self._left > 0:
            raise RuntimeError("the response is shorter than its content-length")
        self.complete = True
        self._tell()
        if not self.keep_alive:
            self._line.transport.close()
        self._line.answered()

    def _write(self, data: bytes) -> None:
        """Write; a head that was held goes first, in the same packet."""
        if self._head:
            if len(data) > MOST:
                self._flush()
            else:
                data, self._head = self._head + data, b""
        self._line.transport.write(data)

    def _flush(self) -> None:
        """The head alone: nothing came with it."""
        if self._head and not self.gone:
            head, self._head = self._head, b""
            self._line.transport.write(head)
