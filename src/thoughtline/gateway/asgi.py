"""ASGI: its types, a response in one call, a count of those under way, a disconnect watcher."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
WriteNow = Callable[[bytes], bool]
"""Sends a chunk of a body at once; False where that takes waiting: then `send` does."""
OWN_SERVER = "thoughtline.server"
"""The extension under which the own server offers what ASGI has not: an `OwnServer`."""
POSTED = "thoughtline.posted"
"""The member of a scope by which the post of a WebSocket's frame is known."""
RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as the ASGI server gives them, with names in lower case."""

WATCH_AFTER = 0.25
"""Seconds after which a client is watched; a disconnect before that is noticed late."""


async def respond(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes = b""
) -> None:
    """Send a complete response."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def respond_json(
    send: Send, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send a complete response whose body is JSON."""
    length = (b"content-length", b"%d" % len(body))
    await respond(send, status, [(b"content-type", b"application/json"), length, *headers], body)


class OwnServer(Protocol):
    """What the own server does for a request without a message and a turn of the event loop.

    A `http.response.start` that has a `body`, too, is all of the response.
    """

    def take_body(self) -> bytes | None:
        """The whole body if it has arrived and nobody has called `receive`; else None."""

    def write_now(self, chunk: bytes) -> bool:
        """Send a chunk of a stream at once; False where the client has to be waited for."""

    def watch(self, left: Callable[[], None] | None) -> None:
        """Call this when the client disconnects, or has; None: nobody asks any more."""


class InFlight:
    """Counts the responses under way: `with in_flight:` around each of them."""

    def __init__(self) -> None:
        self.count = 0
        self._idle: asyncio.Event | None = None  # made when somebody waits for it

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if not self.count and self._idle is not None:
            self._idle.set()
            self._idle = None

    async def wait_until_idle(self, timeout: float) -> None:  # noqa: ASYNC109 (it is no error)
        """Wait until nothing is in flight, at most this many seconds."""
        if self.count:
            self._idle = self._idle or asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), timeout)


class DisconnectWatcher:
    """Cancels the task in which it was made when the client disconnects.

    The own server tells by itself. Elsewhere, an ASGI application is told of a disconnect only if
    it waits for the next message, and that takes a task. Most responses end before it would matter:
    the task starts after `WATCH_AFTER`.
    """

    disconnected = False
    _watching: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, receive: Receive, server: OwnServer | None = None) -> None:
        self._receive = receive
        self._server = server
        self._watched = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if server is None:
            self._timer = self._loop.call_later(WATCH_AFTER, self._start)
        else:
            self._begun = self._loop.time()
            server.watch(self._left)

    def _left(self) -> None:
        """The client disconnected; what was begun just before may still come to its end."""
        at = self._begun + WATCH_AFTER
        self._timer = self._loop.call_at(max(at, self._loop.time()), self._cancel)

    def _start(self) -> None:
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._cancel()

    def _cancel(self) -> None:
        self.disconnected = True
        if self._watched is not None:
            self._watched.cancel()

    def uncancel(self) -> None:
        """Undo the cancellation, so that the watched task can go on to clean up."""
        if self._watched is not None:
            self._watched.uncancel()

    def stop(self) -> None:
        """Stop watching."""
        if self._server is not None:
            self._server.watch(None)
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
