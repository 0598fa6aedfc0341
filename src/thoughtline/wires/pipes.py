"""One connection to an upstream, and the answer that is coming through it.

A pipe carries one request at a time. What arrives is parsed as it comes (httptools) and waits
until somebody asks for it; when too much waits, the pipe stops reading, and the upstream feels it.
Patience is one deadline that moves: a timer looks at it now and then, and is not set anew for
every piece.
"""

import asyncio
import select
from typing import Self, cast

import httptools

from thoughtline.errors import WireError
from thoughtline.wires.base import Headers, Patience

MOST = 256 << 10
"""Bytes that may wait in a pipe before it stops reading."""

RESTED = 1.0
"""Seconds without a request after which a connection is looked at before it is used again."""

LONGEST_HEAD = 1 << 20
"""Bytes that the head of an answer may have."""

_NO_BODY = (204, 304)


class Broken(WireError):
    """The connection ended before the answer did."""


class Stalled(WireError):
    """Nothing came for too long."""


class Pipe(asyncio.Protocol):
    """A connection, and the inbound response on it (`wires.base.Inbound`)."""

    _transport: asyncio.Transport  # there before anything else happens

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.busy = False  # a request is on it
        self.lost: Exception | None = None  # why there is no connection any more
        self.since = 0.0  # idle since then, by the loop's clock
        self._parser = httptools.HttpResponseParser(self)  # for one answer after the other
        self._clear()

    def _clear(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = 0
        self._whole = False  # the answer has ended
        self._keep = False  # the connection is good for another one
        self.touched = False  # something of the answer has come

    # -- for the wire ----------------------------------------------------------------------------

    async def ask(self, head: bytes, body: bytes, patience: Patience, *, bare: bool) -> None:
        """Send a request; returns when the head of its answer is here. `bare`: it has no body.

        A pipe that was waited for in vain is closed.
        """
        self._clear()
        self.busy = True
        self._bare = bare
        self._idle = patience.idle
        self._allow(patience.first_byte)
        if len(body) > MOST:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)
        try:
            while not self.status:
                await self._news()
        except BaseException:
            self.close()
            raise

    def free(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether another request of this loop may go through."""
        fit = self._whole and self._keep and not self._paused and self.lost is None
        return fit and self._loop is loop and not self._transport.is_closing()

    def ended(self) -> bool:
        """Whether the upstream closed it meanwhile, also where the loop was too busy to say so."""
        rested = self._loop.time() - self.since >= RESTED
        if not rested or not hasattr(select, "poll"):
            return False
        line = select.poll()
        line.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(line.poll(0))  # nobody asked, so what there is to read is the end

    def rest(self) -> None:
        """No request is on it any more."""
        self.busy = False
        self.since = self._loop.time()

    def close(self) -> None:
        """Let go of the connection at once."""
        self.busy = False
        self._transport.abort()

    # -- the answer ------------------------------------------------------------------------------

    def chunks(self) -> Self:
        """The body as it comes; what came together is given together."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._whole:
                raise StopAsyncIteration
            await self._news()
        pieces, self._pieces, self._size = self._pieces, [], 0
        if self._paused:
            self._resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _news(self) -> asyncio.Future[None]:
        """Until something comes, or never will."""
        if self.lost is not None and not self._whole:
            raise self.lost
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        self._paused = False
        if self.lost is None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._allow(self._idle)  # it was us who were slow

    # -- what the loop tells us ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own kind, often

    def data_received(self, data: bytes) -> None:
        if not self.busy or self._whole:  # nobody asked
            self._keep = False
            self.close()
            return
        self.touched = True
        if self.status:
            self._deadline = self._loop.time() + self._idle
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(Broken("the upstream wants to go on in another protocol (101), unasked"))
            return
        except httptools.HttpParserError as error:
            self._fail(Broken(f"the upstream's answer is no HTTP: {error}"))
            return
        if not self.status:
            self._head += len(data)
            if self._head > LONGEST_HEAD:
                self._fail(Broken("the head of the upstream's answer does not end"))
            return
        if self._size > MOST and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self.lost is None:  # otherwise it was us who gave up
            self.lost = Broken(f"connection lost: {exc}" if exc else "the connection was closed")
            if self.status and exc is None and not _bounded(self.headers):
                self._whole = True  # an answer without a length ends with its connection
        self._wake()

    def _fail(self, error: WireError) -> None:
        self.lost = error
        self._transport.abort()
        self._wake()

    # -- what the parser tells us ----------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._pairs: list[tuple[str, str]] = []
        if self._whole:  # nobody asked for another one, however little of it is here
            self._keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._whole:  # nobody asked for another one
            self._keep = False
            return
        if status < 200:  # not the answer yet
            return
        self.status, self.headers = status, self._pairs
        self._pairs = []  # what comes after the body is no header
        self._allow(self._idle)
        if self._bare or status in _NO_BODY:
            self._end(keep=status in _NO_BODY and not self._bare)

    def on_body(self, body: bytes) -> None:
        if self._whole:
            self._keep = False
            return
        self._pieces.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self.status and not self._whole:
            self._end(keep=self._parser.should_keep_alive())

    def _end(self, *, keep: bool) -> None:
        self._whole = True
        self._keep = keep and not self._transport.get_write_buffer_size()  # all of it was sent

    # -- patience --------------------------------------------------------------------------------

    def _allow(self, seconds: float) -> None:
        """The next news must come within so long."""
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._disarm()
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self.busy or self._whole:
            return
        if self._loop.time() < self._deadline or self._paused:
            left = max(self._deadline, self._loop.time() + 1.0) if self._paused else self._deadline
            self._timer = self._loop.call_at(left, self._look)
        elif self.status:
            self._fail(Stalled("the upstream stalled in the middle of its answer"))
        else:
            self._fail(Stalled("timed out"))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _bounded(headers: Headers) -> bool:
    """Whether an answer with these says where it ends."""
    for name, value in headers:
        if name == "content-length":
            return True
        if name == "transfer-encoding" and value.rpartition(",")[2].strip().lower() == "chunked":
            return True
    return False
