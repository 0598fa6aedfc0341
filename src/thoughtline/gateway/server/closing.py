"""The end of a connection: a client that still sends can read its answer, one that left is noticed.

`LingeringClose` throws away what a client goes on sending after its answer. Closing at once would
reset the connection, and the reset can overtake the answer. `DepartureCheck` finds out whether a
client that sends no more has gone, or has closed its half only and waits for its answer.
"""

import asyncio
import select
from collections.abc import Sequence

LINGER_TIME = 10.0
"""Seconds for which a client may go on sending after its answer."""
LINGER_IDLE = 2.0
"""Seconds of silence after which it is not waited for any more."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHECKS = (0.02, 0.1, 0.5, 1.0)  # seconds until a reset is looked for; the last one for ever


class LingeringClose:
    """Closes a connection once its client has stopped sending, or was given enough time."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, max_bytes: int
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._bytes_left = max_bytes
        self._until = loop.time() + LINGER_TIME
        self._silent_since = loop.time()
        if not transport.can_write_eof():
            transport.close()
            return
        transport.write_eof()
        self._timer = loop.call_later(LINGER_IDLE, self._check)

    def discard(self, size: int) -> None:
        """Throw away bytes that came; too many close the connection."""
        self._bytes_left -= size
        self._silent_since = self._loop.time()
        if self._bytes_left < 0:
            self._transport.abort()

    def _check(self) -> None:
        now = self._loop.time()
        due = min(self._silent_since + LINGER_IDLE, self._until)
        if self._transport.is_closing():
            return
        if now >= due:
            self._transport.abort()
        else:
            self._timer = self._loop.call_at(due, self._check)

    def cancel(self) -> None:
        """The connection is closed."""
        if self._transport.can_write_eof():
            self._timer.cancel()


class DepartureCheck:
    """Closes the connection of a client that has left.

    The end of what a client sends looks the same whether it left or closed one half. The next bytes
    to it tell: the system of one that left answers them with a reset. Before a response has begun,
    an interim response can be sent for that.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, probe: bool
    ) -> None:
        """`probe`: the client may be sent an interim response now."""
        self._transport = transport
        self._loop = loop
        if probe:
            transport.write(_CONTINUE)
        if hasattr(select, "poll"):
            self._look_later(_CHECKS)

    def _look_later(self, delays: Sequence[float]) -> None:
        self._loop.call_later(delays[0], self._look, delays[1:] or delays)

    def _look(self, delays: Sequence[float]) -> None:
        if self._transport.is_closing():
            return
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), 0)
        if poll.poll(0):  # nothing but errors and hang-ups is reported
            self._transport.abort()
        else:
            self._look_later(delays)
