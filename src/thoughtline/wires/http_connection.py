"""One HTTP/1.1 connection to an upstream, and the response that is arriving on it.

A connection carries one request at a time. Incoming bytes are parsed at once (httptools) and
buffered until the reader asks for them; when the buffer is full, reading stops, which slows the
upstream down. A reader that can take them at once gets them in the connection's own callback
(`push`). The timeout is one deadline that moves with each read: a timer checks it when it is due,
so that no timer is set per chunk.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Self, cast

import httptools

from thoughtline.errors import WireError
from thoughtline.wires.base import Headers, WireTimeouts

MAX_BUFFERED = 256 << 10
"""Bytes that a connection buffers before it stops reading."""

LARGE_READ = 64 << 10
"""Bytes that come at once, after which others have their turn."""

IDLE_BEFORE_CHECK = 1.0
"""Seconds without a request after which a connection is checked before it is used again."""

MAX_HEAD = 1 << 20
"""Bytes that the status line and headers of a response may have, and its trailers."""

Sink = Callable[[bytes], bool]
"""Takes a piece of a body in the callback in which it came; False: it cannot, or may not."""

_NO_BODY = (204, 304)


class ConnectionLost(WireError):
    """The connection ended before the response did."""


class ReadTimeout(WireError):
    """The upstream sent nothing for too long."""


class HttpConnection(asyncio.Protocol):
    """A connection, and the inbound response on it (`wires.base.Inbound`)."""

    _transport: asyncio.Transport  # set by `connection_made`, before anything else happens

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._giving_way = False  # reading goes on when the loop has come round
        self.busy = False  # a request is under way
        self.error: Exception | None = None  # why there is no connection any more
        self.idle_since = 0.0  # by the loop's clock
        self._buffer: list[bytes] = []  # pieces of the body that nobody has read
        self.on_body = self._buffer.append  # a callback of the parser that takes no time
        self._parser = httptools.HttpResponseParser(self)  # for one response after the other
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.raw_headers: list[tuple[bytes, bytes]] = []  # with names in lower case
        self._buffer.clear()
        self._buffered = 0  # bytes that brought them
        self._sink: Sink | None = None  # gets what comes, as long as it takes it
        self._head_size = 0  # bytes of the head; after it, those since the last byte of the body
        self._complete = False  # the response has ended
        self._keep_alive = False  # the connection can carry another request
        self.answered = False  # some byte of the response has arrived

    # -- for the wire ----------------------------------------------------------------------------

    async def request(
        self, head: bytes, body: bytes, timeouts: WireTimeouts, *, head_only: bool
    ) -> None:
        """Send a request; return when the head of its response has arrived.

        `head_only` says that the response has no body, whatever its headers say. A connection
        that failed, or whose caller was cancelled, is closed.
        """
        self._reset()
        self.busy = True
        self._head_only = head_only
        self._idle_timeout = timeouts.idle
        self._arm(timeouts.first_byte)
        if len(body) > MAX_BUFFERED:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)
        try:
            while not self.status:
                await self._data()
        except BaseException:
            self.close()
            raise

    def reusable(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether another request of this event loop may be sent."""
        sound = self._keep_alive and not self._paused and self._loop is loop
        return sound and not self._transport.is_closing()

    def closed_by_peer(self) -> bool:
        """Whether the upstream closed an idle connection, even if the loop did not see it yet."""
        checked = self._loop.time() - self.idle_since >= IDLE_BEFORE_CHECK
        if not checked or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))  # no request is under way: anything to read is the end

    def release(self) -> None:
        """Mark the connection as idle: no request is under way any more."""
        self.busy = False
        self.idle_since = self._loop.time()

    def detach(self) -> asyncio.Transport:
        """Give up the transport, for a protocol that takes it over (TLS through a tunnel)."""
        self.busy = False
        self._disarm()
        return self._transport

    def close(self) -> None:
        """Close the connection at once."""
        self.busy = self._keep_alive = False
        self._sink = None
        self._transport.abort()

    # -- the response ----------------------------------------------------------------------------

    @property
    def headers(self) -> Headers:
        """The headers as text."""
        return [(n.decode("latin-1"), v.decode("latin-1")) for n, v in self.raw_headers]

    def chunks(self) -> Self:
        """The body as it arrives; what arrived together is given together."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        buffer = self._buffer
        while not buffer:
            if self._complete:
                raise StopAsyncIteration
            await self._data()
        chunk = b"".join(buffer)
        buffer.clear()
        self._buffered = 0
        if self._paused:
            self._resume()
        return chunk

    def push(self, sink: Sink) -> None:
        """Give what comes to the sink at once, until it refuses a piece: that one is a chunk again.

        While chunks wait to be read, nothing overtakes them.
        """
        self._sink = None if self._buffer else sink

    def _data(self) -> asyncio.Future[None]:
        """A future that is done when something arrived, or the connection ended."""
        if self.error is not None and not self._complete:
            raise self.error
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        self._paused = False
        if self.error is None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._arm(self._idle_timeout)  # the time until now was the reader's, not the upstream's

    # -- asyncio.Protocol ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has its own class

    def data_received(self, data: bytes) -> None:
        if self._sink is not None:
            self._deadline = self._loop.time() + self._idle_timeout
        elif not self._expected():
            return
        if len(data) >= LARGE_READ:
            self._give_way()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("the upstream switched to another protocol (101), without being asked")
            return
        except httptools.HttpParserError as error:
            self._fail(f"the upstream's answer is not HTTP: {error}")
            return
        sink, buffer = self._sink, self._buffer
        if sink is not None and buffer and sink(b"".join(buffer)):
            buffer.clear()
            self._head_size = 0
        else:
            self._keep(len(data))

    def _expected(self) -> bool:
        """Whether a request asked for what comes; otherwise the connection is closed."""
        if self.busy and not self._complete:
            self.answered = True
            return True
        self.close()
        return False

    def _keep(self, size: int) -> None:
        """Count the bytes received, and keep what they brought for the reader."""
        if self._head_only:
            self._buffer.clear()  # whatever it is, it is no body
        if self._buffer:
            self._buffered += size
            self._head_size, self._sink = 0, None
        elif not self._head_fits(size):
            return
        if not self.status:
            return
        if not self._complete:
            self._arm(self._idle_timeout)
        if self._buffered > MAX_BUFFERED and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _head_fits(self, size: int) -> bool:
        """Count bytes that have no part of a body: they are of the head, or trailers."""
        self._head_size += size
        if self._head_size > MAX_HEAD:
            part = "trailers" if self.status else "head"
            self._fail(f"the {part} of the upstream's answer: longer than {MAX_HEAD} bytes")
        return self._head_size <= MAX_HEAD

    def _give_way(self) -> None:
        """Let others have their turn: a loop may read a fast upstream 32 times in one round."""
        if not self._giving_way:
            self._giving_way = True
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._giving_way = False
        if not self._paused and self.error is None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._keep_alive = False
        if self.error is None:  # otherwise this side gave up first
            why = f"connection lost: {exc}" if exc else "the connection was closed"
            self.error = ConnectionLost(why)
            if self.status and exc is None and not _has_length(self.headers):
                self._complete = True  # a response without a length ends with its connection
        self._wake()

    def _fail(self, why: str, kind: type[WireError] = ConnectionLost) -> None:
        self.error = kind(why)
        self._keep_alive = False
        self._transport.abort()
        self._wake()

    # -- callbacks of the parser -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._pairs: list[tuple[bytes, bytes]] = []
        if self._complete:  # however little of it is here
            raise ValueError("a second response to one request")  # stops the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:  # an interim response: the final one is to come
            return
        self.status, self.raw_headers = status, self._pairs
        self._pairs = []  # trailers, after the body, are not headers
        if self._head_only or status in _NO_BODY:
            self._end(keep_alive=status in _NO_BODY and not self._head_only)

    def on_message_complete(self) -> None:
        if self.status and not self._complete:
            self._end(keep_alive=self._parser.should_keep_alive())

    def _end(self, *, keep_alive: bool) -> None:
        self._complete = True
        self._sink = None  # the last piece is the reader's, who sees the end as well
        unsent = self._transport.get_write_buffer_size()  # answered before all of it was sent
        self._keep_alive = keep_alive and not unsent

    # -- the timeout -----------------------------------------------------------------------------

    def _arm(self, seconds: float) -> None:
        """Expect the next bytes within this time."""
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._disarm()
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if not self.busy or self._complete:
            return
        if self._loop.time() < self._deadline or self._paused:
            at = max(self._deadline, self._loop.time() + 1.0) if self._paused else self._deadline
            self._timer = self._loop.call_at(at, self._check_deadline)
        elif self.status:
            self._fail("the upstream stalled in the middle of its answer", ReadTimeout)
        else:
            self._fail("timed out", ReadTimeout)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _has_length(headers: Headers) -> bool:
    """Whether a response with these headers says where its body ends."""
    for name, value in headers:
        if name == "content-length":
            return True
        if name == "transfer-encoding" and value.rpartition(",")[2].strip().lower() == "chunked":
            return True
    return False
