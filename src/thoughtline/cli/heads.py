"""Requests as they come in: what uvicorn's fast protocol does not do for us.

It takes a head of any size: here its bytes are counted, those of a head that does not end as they
arrive, and those of its fields when it is complete. It waits for a head as long as it takes: here
not for ever. It loses the body of a request that offers another protocol, as every client on
Java's `HttpClient` does (`Upgrade: h2c`): here that offer is passed over. And what it answers by
itself is plain text: here it is JSON, in the dialect that is spoken on that path.
"""

import asyncio
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.cli.corks import Corked
from thoughtline.dialects import DIALECTS
from thoughtline.gateway.proxy import Receive, Scope, Send
from thoughtline.gateway.routes import parse

PATIENCE = 30.0
"""How long a connection may take to bring a head, in seconds."""
_FRAMING = (b"content-length", b"transfer-encoding")
_REASONS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
}


class Bounded(HttpToolsProtocol):
    """A connection of one client."""

    _heading = False  # a head has begun, and not ended
    _come = 0  # bytes of it so far, as long as it has not ended
    _refused = False
    _passing_over = False  # the parser is told anew what it was told already
    _late: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """The largest head, in bytes."""
        return self.config.h11_max_incomplete_event_size or 64 << 10

    # -- bytes -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", Corked(transport, self.loop)))
        self._late = self.loop.call_later(PATIENCE, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._feed(data)
        if self._heading and not self._refused:
            self._wait(len(data))

    def _wait(self, come: int) -> None:
        """The head goes on: not without end, and not for ever."""
        self._come += come
        if self._come > self.limit:
            self._too_large()
        elif self._late is None:
            self._late = self.loop.call_later(PATIENCE, self._too_late)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.send_400_response(str(error))
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._in_time()
                self.handle_websocket_upgrade()
            else:
                self._pass_over(data[upgrade.args[0] :])

    def handle_websocket_upgrade(self) -> None:
        self.transport = cast("Corked", self.transport).bare  # no more heads
        super().handle_websocket_upgrade()

    def _pass_over(self, rest: bytes) -> None:
        """Another protocol was offered, and the parser stopped: read the body as if it was not."""
        framing = [b"%s: %s\r\n" % pair for pair in self.headers if pair[0] in _FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._passing_over = True
        self.headers = []  # the request has those it came with
        self._feed(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n" + rest)

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._passing_over:
            self._heading, self._come = True, 0
            super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._passing_over:
            self._passing_over = False
            return
        self._heading = False
        if self._late is not None:
            self._in_time()
        size = sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size + len(self.url) > self.limit:
            self._refused = True
            raise ValueError("the head is too large")  # the parser stops, and a 400 is made
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade() and not self._should_upgrade():
            return  # its body is still to come
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        ours: Any = crowded if app is service_unavailable else app
        super()._start_asgi_task(cycle, ours)

    # -- answers ---------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        if self._refused:
            self._too_large()
        else:
            self._refuse(400, f"this is no HTTP request ({msg}); is it TLS, or cut?", "bad_request")

    def _too_large(self) -> None:
        self._refuse(
            431,
            f"the head of the request is larger than {self.limit} bytes; send fewer or shorter "
            "headers, or raise `server.max_header_bytes`",
            "head_too_large",
        )

    def _too_late(self) -> None:
        self._late = None
        said = f"no complete request head came within {PATIENCE:g} seconds"
        self._refuse(408, said, "head_too_slow")

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, status: int, message: str, code: str) -> None:
        self._refused = True
        body = DIALECTS["chat"].error(status, message, code=code)
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%s" % (status, _REASONS[status], len(body), body)
        )
        self.transport.close()


async def crowded(scope: Scope, _: Receive, send: Send) -> None:
    """Answers where there are more connections than `server.max_connections`."""
    dialect = DIALECTS.get(parse(scope["method"], scope["path"]).dialect, DIALECTS["chat"])
    body = dialect.error(
        503,
        "this gateway has no room for another connection; try again, or raise "
        "`server.max_connections`",
        code="too_many_connections",
    )
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})
