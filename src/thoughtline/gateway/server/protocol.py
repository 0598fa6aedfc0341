"""The HTTP protocol: a client's connection, and the requests that come over it.

uvicorn's httptools protocol, with these differences. The size of a request's head and trailers is
limited. A head must be complete within a timeout, and a body must make progress. The body of a
request that offers an upgrade is read, and the offer ignored (`Upgrade: h2c`, as every client on
Java's `HttpClient` sends it; uvicorn loses the body). Errors are JSON. A client that has closed its
half of the connection gets its answer. And the timeouts are one deadline that moves, with a timer
that checks it, instead of a new timer for every request.

`cycle` sends the responses, `closing` ends connections.
"""

import asyncio
from math import inf
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.engine.routes import parse
from thoughtline.gateway.asgi import App, Receive, Scope, Send, respond_json
from thoughtline.gateway.client_head import HEAD, ClientHead
from thoughtline.gateway.headers import refusal_header
from thoughtline.gateway.server.closing import DepartureCheck, LingeringClose
from thoughtline.gateway.server.cycle import RequestCycle
from thoughtline.gateway.server.flow import LazyFlowControl

HEAD_TIMEOUT = 30.0
"""Seconds within which a connection must bring a complete head."""
BODY_TIMEOUT = 30.0
"""Seconds within which a body must bring `MIN_PROGRESS` more bytes, or end."""
MIN_PROGRESS = 8 << 10
STOPPING_TIMEOUT = 1.0
"""Seconds that take the place of these while the server is stopping."""
HALF_CLOSE_TIME = 1.0
"""Seconds after which a client that ends its half of the connection in mid-answer has left."""
MAX_PIPELINED = 128
"""Requests that may come before the first of them is answered."""
_MAX_LINGER_BODY = 256 << 20  # bytes of a body that nobody reads
_MAX_LINGER_HEAD = 1 << 20
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_FRAMING = (b"content-length", b"transfer-encoding")
_REASONS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}


class HttpProtocol(HttpToolsProtocol):
    """The connection of one client."""

    def __init__(self, *args: Any, body_timeout: float = BODY_TIMEOUT, **more: Any) -> None:
        super().__init__(*args, **more)
        self._body_timeout = body_timeout
        self.max_head = self.config.h11_max_incomplete_event_size or 64 << 10  # bytes
        self._data_size = 0  # bytes of the data that came last
        self._in_head = False  # a head has begun, and not ended
        self._in_body = False  # a head has ended, and not its request
        self._body_size = 0  # bytes since the deadline of the body was set
        self._unread_size = 0  # bytes since the last byte of a body: trailers
        self._stopping = False
        self._begun = 0.0  # when the response under way was, by the loop's clock
        self._lingering: LingeringClose | None = None
        self._head_size = 0  # its bytes in earlier data; in the first, only those of whole fields
        self._expects_continue = False
        self._upgrade_offered = False
        self._reparsing = False  # the parser is given the framing of a head that it has parsed
        self._failed = False  # an error was answered, and the connection is closing
        self._reading: RequestCycle | None = None  # the request that came last
        self._responding: RequestCycle | None = None
        self._scope_before: Scope = {}  # of the request that came last
        self._head_before: tuple[Any, ...] = ()  # its head, but for the length of the body
        self._length_at = 0  # where that stands among its headers
        self._pipelined: list[tuple[RequestCycle, App, Scope]] = []
        del self.pipeline  # uvicorn's: unused, and as large as many a request
        self._deadline = inf  # by the loop's clock: the next head must be complete
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = inf  # its own `when()` is later on a busy machine

    # -- bytes -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = LazyFlowControl(transport)
        self._set_timeout(HEAD_TIMEOUT)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if self._lingering is not None:
            self._lingering.cancel()
        self._pipelined.clear()
        if self._responding is not None:
            self._responding.disconnect()
        self._reading = self._responding = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingering is not None:
            self._lingering.discard(len(data))
            return
        self._data_size = len(data)
        self._feed(data)
        if self._failed:
            return
        if self._in_head:
            self._limit_head()
        elif self._in_body:
            self._limit_body()

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more; returns whether the connection stays open for its answer."""
        answering = self._responding
        if answering is None or self._in_body or self._reading is None:
            return False  # the connection is idle, or the client left
        if answering.started and self.loop.time() - self._begun > HALF_CLOSE_TIME:
            return False
        self._reading.keep_alive = False
        probe = answering.takes_interim and not answering.started
        DepartureCheck(self.transport, self.loop, probe=probe)
        return True

    def _limit_head(self) -> None:
        """Count the bytes of a head that goes on in the next data, and arm its timeout."""
        if not self._head_size:
            if self._reading is not None and self._responding is None:
                self._set_timeout(HEAD_TIMEOUT)  # that of the first request is set already
            # other bytes of the same data may belong to the body of the request before
            self._head_size = self._parsed_head_size() or 1
        else:
            self._head_size += self._data_size
        if self._head_size > self.max_head:
            self._head_too_large()

    def _limit_body(self) -> None:
        """Expect progress of a body that goes on in the next data; count what is no body."""
        if not self._body_size:
            self._set_timeout(self._current_body_timeout())
        self._body_size += self._data_size
        self._unread_size += self._data_size
        if self._body_size > MIN_PROGRESS:
            self._body_size = 0
        if self._unread_size > self.max_head:
            self._head_too_large()

    def _current_body_timeout(self) -> float:
        return min(self._body_timeout, STOPPING_TIMEOUT) if self._stopping else self._body_timeout

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self._failed:
                message = f"this is not an HTTP request ({error}); it may be TLS, or cut off"
                self._fail(400, message, "bad_request")
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._in_body = False  # nothing more is expected here: it is another protocol's
                self._cancel_timer()
                self.handle_websocket_upgrade()
            else:
                self._ignore_upgrade(data[upgrade.args[0] :])

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Read the body with a new parser: the old one stopped at the offer of an upgrade."""
        framing = [b"%s: %s\r\n" % pair for pair in self.headers if pair[0] in _FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._upgrade_offered, self._reparsing = False, True
        self._feed(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n" + rest)

    # -- callbacks of the parser -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._reparsing:
            self._in_head, self._head_size = True, 0
            self.url = b""
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # otherwise it is parsed again, or a trailer, which is ignored
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._reparsing:
            self._reparsing = False
            return
        self._in_head, self._in_body, self._deadline = False, True, inf
        self._body_size = self._unread_size = 0
        may_exceed = self._head_size or self._data_size > self.max_head
        if may_exceed and self._parsed_head_size() > self.max_head:
            self._head_too_large()
            raise ValueError("the head is too large")  # stops the parser
        parser = self.parser
        method, version = parser.get_method(), parser.get_http_version()
        scope = self._repeated(method, version)
        if scope is None:
            self._check_hosts(version)
        self._upgrade_offered = parser.should_upgrade()
        if self._upgrade_offered and self._should_upgrade():
            self.scope = {"method": method.decode("ascii"), "headers": self.headers}  # type: ignore[typeddict-item]
            return
        if scope is None:
            scope = self._new_scope(method, version)
        cycle = self._reading = RequestCycle(
            self,
            head_only=method == b"HEAD",
            keep_alive=version != "1.0" and parser.should_keep_alive() and not self._stopping,
            takes_interim=version != "1.0",
            expects_continue=self._expects_continue,
        )
        app: App = too_many_connections if self._at_connection_limit() else self._handler(scope)
        if self._responding is None:
            self._run(cycle, app, scope)
        else:
            self.flow.pause_reading()
            self._pipelined.append((cycle, app, scope))
            if len(self._pipelined) > MAX_PIPELINED:
                self._fail(400, "too many requests came before the first answer", "bad_request")
                raise ValueError("too many requests")  # stops the parser

    def _repeated(self, method: bytes, version: str) -> Scope | None:
        """The scope of the request before, with what was worked out for it, if the head is alike.

        Only the length of the body may differ.
        """
        at, sent = self._length_at, self.headers
        if (method, version, self.url, len(sent), sent[:at], sent[at + 1 :]) != self._head_before:
            return None
        if at < len(sent) and sent[at][0] != b"content-length":
            return None
        return {**self._scope_before, "headers": sent}

    def _check_hosts(self, version: str) -> None:
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts == 1 or (not hosts and version != "1.1"):
            return
        which = "no" if not hosts else "more than one"
        self._fail(400, f"the request has {which} Host header; expected exactly one", "bad_request")
        raise ValueError("not one Host header")  # stops the parser

    def _new_scope(self, method: bytes, version: str) -> Scope:
        raw, query = _split(self.url)
        path, sent = raw.decode("ascii"), self.headers
        names = [name for name, _ in sent]
        at = names.index(b"content-length") if b"content-length" in names else len(names)
        self._length_at = at
        self._head_before = (method, version, self.url, len(sent), sent[:at], sent[at + 1 :])
        self._expects_continue = dict(sent).get(b"expect", b"").lower() == b"100-continue"
        scope: Scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method.decode("ascii"),
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw,
            "query_string": query,
            "headers": sent,
        }
        scope[HEAD] = ClientHead(scope)
        self._scope_before = scope
        return scope.copy()  # applications write into theirs

    def _handler(self, scope: Scope) -> App:
        """The application, or whom it has already chosen for requests with this head."""
        head: ClientHead = scope[HEAD]
        return head.handler if head.handler is not None and head.app is self.app else self.app

    def _parsed_head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _at_connection_limit(self) -> bool:
        limit = self.limit_concurrency
        return limit is not None and (len(self.connections) >= limit or len(self.tasks) >= limit)

    def on_body(self, body: bytes) -> None:
        self._unread_size = -self._data_size  # what is left of this data does not count
        if self._reading is not None and not self._reading.complete:
            self._reading.feed(body)

    def on_message_complete(self) -> None:
        if self._upgrade_offered:  # its body is still to come, or there is none
            return
        self._in_body, self._deadline = False, inf
        if self._reading is not None and not self._reading.complete:
            self._reading.feed_eof()

    # -- responses -------------------------------------------------------------------------------

    def _run(self, cycle: RequestCycle, app: App, scope: Scope) -> None:
        self._responding = cycle
        self._begun = self.loop.time()
        task = self.loop.create_task(cycle.run(app, scope))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def response_complete(self) -> None:
        """A response is sent: run the next request, or wait for one."""
        self._responding = None
        if self.transport.is_closing() or self._lingering is not None:
            return
        self.flow.resume_reading()
        if self._pipelined:
            self._run(*self._pipelined.pop(0))
        else:
            self._set_timeout(HEAD_TIMEOUT if self._in_head else self.timeout_keep_alive)

    def shutdown(self) -> None:
        """The server is stopping: close the connection after the requests that are here.

        A load balancer opens a connection and sends at once: a first request that is on its way
        is waited for, because nobody else may send it again.
        """
        self._stopping = True
        if self._responding is None or self._reading is None:
            if self._reading is None or self._in_head:
                self._set_timeout(STOPPING_TIMEOUT)
            else:
                self.transport.close()
            return
        self._reading.keep_alive = False
        if self._in_body:
            self._set_timeout(self._current_body_timeout())

    def _head_too_large(self) -> None:
        self._fail(
            431,
            f"the head of the request is larger than {self.max_head} bytes; send fewer or shorter "
            "headers, or raise `server.max_header_bytes`",
            "head_too_large",
        )

    def _fail(self, status: int, message: str, code: str) -> None:
        """Answer with an error, where no response has begun, and close the connection."""
        self._failed = True
        self._cancel_timer()
        self._pipelined.clear()
        body = DEFAULT.error(status, message, code=code)
        if self._responding is None or self._responding.abort():
            self.transport.write(
                b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\nconnection: close\r\n%s\r\n"
                b"content-length: %d\r\n\r\n%s"
                % (status, _REASONS[status], b": ".join(refusal_header(code)), len(body), body)
            )
        self.close_gently(_MAX_LINGER_HEAD)

    def close_gently(self, max_bytes: int = _MAX_LINGER_BODY) -> None:
        """Close the connection; a client that is still sending has time to read its answer."""
        if self.transport.is_closing():
            return
        self._cancel_timer()
        if self._stopping or not (self._in_body or self._failed):
            self.transport.close()
        else:
            self._lingering = LingeringClose(self.transport, self.loop, max_bytes)
            self.flow.resume_reading()

    # -- timeouts --------------------------------------------------------------------------------

    def _set_timeout(self, seconds: float) -> None:
        """Move the deadline: the next head must be complete within `seconds`."""
        self._deadline = self.loop.time() + seconds
        if self._timer is not None and self._timer_due > self._deadline:
            self._cancel_timer()
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._timer_due = self._deadline
        self._timer = self.loop.call_at(self._timer_due, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline == inf:  # a request is being answered
            return
        if self.loop.time() < self._deadline:
            self._start_timer()
        elif self._in_body:
            self._body_is_late()
        elif self._stopping:
            self.transport.close()
        elif self._in_head or self._reading is None:
            message = f"no complete request head came within {HEAD_TIMEOUT:g} seconds"
            self._fail(408, message, "head_too_slow")
        else:
            self.transport.close()

    def _body_is_late(self) -> None:
        if self.flow.read_paused and not self._stopping:  # the application has to read first
            self._set_timeout(self._body_timeout)
        elif self._stopping:
            self._fail(503, "this gateway is shutting down; send the request again", "going_down")
        else:
            message = (
                f"the body of the request brought less than {MIN_PROGRESS} bytes in "
                f"{self._body_timeout:g} seconds; send it faster, or raise `server.body_timeout`"
            )
            self._fail(408, message, "body_too_slow")

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _split(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of a request's target."""
    if url.startswith(b"/") and b"#" not in url:  # the origin form; a proxy's clients send others
        path, _, query = url.partition(b"?")
        return path, query
    parsed = httptools.parse_url(url)
    return parsed.path, parsed.query or b""


async def too_many_connections(scope: Scope, _: Receive, send: Send) -> None:
    """Answer where there are more connections than `server.max_connections`."""
    dialect = DIALECTS.get(parse(scope["method"], scope["path"]).dialect, DEFAULT)
    code = "too_many_connections"
    message = (
        "this gateway has too many open connections; try again, or raise `server.max_connections`"
    )
    head = [(b"retry-after", b"1"), (b"connection", b"close"), refusal_header(code)]
    await respond_json(send, 503, dialect.error(503, message, code=code), head)
