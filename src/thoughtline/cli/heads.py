"""Requests as they come in: a connection of a client, up to the request it brings.

uvicorn's fast protocol, but for what it does not do for us. It takes a head of any size: here its
bytes are counted. It waits for a head as long as it takes: here not for ever. It loses the body of
a request that offers another protocol, as every client on Java's `HttpClient` does
(`Upgrade: h2c`): here that offer is passed over. What it answers by itself is plain text: here it
is JSON, in the dialect that is spoken on that path. And it sets a timer for every request: here
patience is one deadline that moves, and a timer that looks at it now and then.

How a request is answered is the matter of `cycles`.
"""

import asyncio
from collections import deque
from math import inf
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.cli.cycles import Cycle
from thoughtline.dialects import DIALECTS
from thoughtline.gateway.proxy import App, Receive, Scope, Send
from thoughtline.gateway.routes import parse

PATIENCE = 30.0
"""How long a connection may take to bring a head, in seconds."""
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_FRAMING = (b"content-length", b"transfer-encoding")
_REASONS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
}


class Bounded(HttpToolsProtocol):
    """A connection of one client."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.limit = self.config.h11_max_incomplete_event_size or 64 << 10  # bytes of a head
        self._fed = 0  # bytes that came last
        self._heading = False  # a head has begun, and not ended
        self._come = 0  # bytes of it before those; where it began, only those of whole fields
        self._polite = False  # the client asks before it sends its body
        self._offered = False  # another protocol is
        self._passing_over = False  # the parser is told anew what it was told already
        self._refused = False
        self._reading: Cycle | None = None  # the request that came last
        self._answering: Cycle | None = None
        self._early: deque[tuple[Cycle, App, Scope]] = deque()  # requests whose turn is to come
        self._deadline = inf  # the next head has to be here by then
        self._timer: asyncio.TimerHandle | None = None

    # -- bytes -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._allow(PATIENCE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._early.clear()
        if self._answering is not None:
            self._answering.leave()
        self._reading = self._answering = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._fed = len(data)
        self._feed(data)
        if self._heading and not self._refused:
            self._wait()

    def _wait(self) -> None:
        """The head goes on: not without end, and not for ever."""
        if not self._come:
            if self._reading is not None and self._answering is None:
                self._allow(PATIENCE)  # the first one's time is counted already
            self._come = self._size() or 1  # the rest of those bytes may be another one's body
        else:
            self._come += self._fed
        if self._come > self.limit:
            self._too_large()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self._refused:
                said = f"this is no HTTP request ({error}); is it TLS, or cut?"
                self._refuse(400, said, "bad_request")
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._disarm()
                self.handle_websocket_upgrade()
            else:
                self._pass_over(data[upgrade.args[0] :])

    def _pass_over(self, rest: bytes) -> None:
        """Another protocol was offered, and the parser stopped: read the body as if it was not."""
        framing = [b"%s: %s\r\n" % pair for pair in self.headers if pair[0] in _FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._offered, self._passing_over = False, True
        self._feed(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n" + rest)

    # -- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._passing_over:
            self._heading, self._come, self._polite = True, 0, False
            self.url = b""
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heading:  # otherwise it is told anew, or comes after a body, where nobody looks
            name = name.lower()
            if name == b"expect":
                self._polite = value.lower() == b"100-continue"
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._passing_over:
            self._passing_over = False
            return
        self._heading, self._deadline = False, inf
        if (self._come or self._fed > self.limit) and self._size() > self.limit:
            self._too_large()
            raise ValueError("the head is too large")  # the parser stops
        method, version = self.parser.get_method().decode("ascii"), self.parser.get_http_version()
        self._offered = self.parser.should_upgrade()
        if self._offered and self._should_upgrade():
            self.scope = {"method": method, "headers": self.headers}  # type: ignore[typeddict-item]
            return
        scope = self._scope(method, version)
        keep = version != "1.0" and self.parser.should_keep_alive()
        cycle = Cycle(self, bare=method == "HEAD", keep_alive=keep, polite=self._polite)
        self._reading = cycle
        app: App = crowded if self._crowded() else self.app
        if self._answering is None:
            self._answer(cycle, app, scope)
        else:
            self.flow.pause_reading()
            self._early.append((cycle, app, scope))

    def _scope(self, method: str, version: str) -> Scope:
        raw, query = _split(self.url)
        path = raw.decode("ascii")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method,
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw,
            "query_string": query,
            "headers": self.headers,
        }

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _crowded(self) -> bool:
        most = self.limit_concurrency
        return most is not None and (len(self.connections) >= most or len(self.tasks) >= most)

    def on_body(self, body: bytes) -> None:
        if self._reading is not None and not self._reading.complete:
            self._reading.take(body)

    def on_message_complete(self) -> None:
        if self._offered:  # its body is still to come, or there is none
            return
        if self._reading is not None and not self._reading.complete:
            self._reading.end()

    # -- answers ---------------------------------------------------------------------------------

    def _answer(self, cycle: Cycle, app: App, scope: Scope) -> None:
        self._answering = cycle
        task = self.loop.create_task(cycle.run(app, scope))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def answered(self) -> None:
        """An answer is out: the next request may have its own."""
        self._answering = None
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._early:
            self._answer(*self._early.popleft())
        else:
            self._allow(PATIENCE if self._heading else self.timeout_keep_alive)

    def shutdown(self) -> None:
        """The server wants to end: what is asked already is still answered."""
        if self._answering is None or self._reading is None:
            self.transport.close()
        else:
            self._reading.keep_alive = False

    def _too_large(self) -> None:
        self._refuse(
            431,
            f"the head of the request is larger than {self.limit} bytes; send fewer or shorter "
            "headers, or raise `server.max_header_bytes`",
            "head_too_large",
        )

    def _refuse(self, status: int, message: str, code: str) -> None:
        self._refused = True
        body = DIALECTS["chat"].error(status, message, code=code)
        if self._answering is None or self._answering.refused():
            self.transport.write(
                b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\nconnection: close\r\n"
                b"content-length: %d\r\n\r\n%s" % (status, _REASONS[status], len(body), body)
            )
        self.transport.close()

    # -- patience --------------------------------------------------------------------------------

    def _allow(self, seconds: float) -> None:
        """The next head must be here within so long."""
        self._deadline = self.loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._disarm()
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._deadline == inf:  # a request is being read or answered
            return
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._look)
        elif self._heading or self._reading is None:
            said = f"no complete request head came within {PATIENCE:g} seconds"
            self._refuse(408, said, "head_too_slow")
        else:
            self.transport.close()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _split(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of what is asked for."""
    if url.startswith(b"/") and b"#" not in url:  # as everybody asks who is not a proxy
        path, _, query = url.partition(b"?")
        return path, query
    parsed = httptools.parse_url(url)
    return parsed.path, parsed.query or b""


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
