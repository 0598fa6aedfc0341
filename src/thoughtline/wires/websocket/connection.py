"""One WebSocket to one server: frames out, frames in by stream, and how old it is.

A task that waits for a frame reads the socket and queues the frames that are for others; so a slow
reader slows the server, and no background task is needed. Pings are the library's. Age is measured
on two clocks: a difference between them shows that the machine slept.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidProxy, InvalidStatus, WebSocketException
from websockets.protocol import State

from thoughtline.clock import Clock
from thoughtline.errors import WireError
from thoughtline.wires.base import Headers
from thoughtline.wires.http_proxy import websocket_proxy
from thoughtline.wires.http_target import redacted
from thoughtline.wires.websocket import frames
from thoughtline.wires.websocket.continuation import SendReason
from thoughtline.wires.websocket.frames import ServerFrame

MAX_AGE = 55 * 60.0
"""Seconds after which a connection is replaced: servers end it at 60 minutes."""
MAX_DRIFT = 10.0
"""Seconds of difference between the two clocks that show that the machine slept."""
_NOT_UPGRADED = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)
"""Headers of a POST that an upgrade does not have."""


class UpgradeRefused(WireError):
    """The server answered the upgrade with a plain status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the upgrade to a WebSocket was answered {status}")
        self.status = status


class WebSocket:
    """An open WebSocket: the library's connection, with the errors of a wire."""

    def __init__(self, inner: ClientConnection) -> None:
        self._inner = inner

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""
        return self._inner.state is State.OPEN

    async def send(self, frame: bytes) -> None:
        """Send one text frame. Raises `WireError`."""
        try:
            await self._inner.send(frame, text=True)
        except (OSError, WebSocketException) as error:
            raise _broke(error) from error

    async def receive(self) -> bytes:
        """The next message. Raises `WireError` when there will be none; may be cancelled."""
        try:
            return await self._inner.recv(decode=False)
        except (OSError, EOFError, WebSocketException) as error:
            raise _broke(error) from error

    async def close(self) -> None:
        """Close it, with a closing handshake if the other side takes part."""
        await self._inner.close()


Connect = Callable[[str, Headers], Awaitable[WebSocket]]
"""Opens a WebSocket to a URL (http or ws). Raises `UpgradeRefused` or another `WireError`."""


class WebSocketConnector(Struct, frozen=True, kw_only=True):
    """Opens WebSockets by the `websockets` library; times in seconds."""

    open_timeout: float = 10.0
    max_size: int = 64 << 20

    async def __call__(self, url: str, headers: Headers) -> WebSocket:
        """Open one. No redirect is followed: another host must not get the key."""
        endpoint = redacted(url)
        url = "ws" + url.removeprefix("http") if url.startswith("http") else url
        forwarded = [(name, value) for name, value in headers if name.lower() not in _NOT_UPGRADED]
        try:
            return WebSocket(
                await _ConnectWithoutRedirects(
                    url,
                    proxy=_proxy(url),
                    additional_headers=forwarded,
                    user_agent_header=None,
                    compression="deflate",
                    open_timeout=self.open_timeout,
                    close_timeout=1.0,
                    ping_interval=25.0,
                    ping_timeout=25.0,
                    max_size=self.max_size,
                )
            )
        except InvalidStatus as error:
            raise UpgradeRefused(error.response.status_code) from error
        except (ImportError, InvalidProxy) as error:  # their texts may hold the proxy's password
            raise WireError(
                f"no WebSocket to {endpoint}: the proxy that the environment names cannot be used; "
                "expected http://HOST:PORT, with USER:PASSWORD@ before the host if it wants that"
            ) from error
        except (OSError, TimeoutError, ValueError, WebSocketException) as error:
            raise WireError(f"no WebSocket to {endpoint}: {_why(error)}") from error


def _proxy(url: str) -> str | Literal[True] | None:
    parts = urlsplit(url)
    return websocket_proxy(
        parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
    )


class _ConnectWithoutRedirects(connect):
    """The library's connect, which follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class WebSocketConnection:
    """One connection, with the streams in it; a stream is named by its `stream_id`."""

    def __init__(self, socket: WebSocket, *, generation: int, scope: str, clock: Clock) -> None:
        self.generation = generation
        self.scope = scope  # endpoint and account: what the connection may be used for
        self.broken = False
        self.multiplexes = False  # the server has shown that it keeps streams apart
        self.busy: set[str | None] = set()  # streams with a response under way
        self.abandoned: set[str | None] = set()  # streams whose response nobody wants any more
        self._socket = socket
        self._clock = clock
        self._queues: dict[str | None, deque[ServerFrame]] = {}
        self._reading = asyncio.Lock()
        self._opened = self._used = (clock.wall(), clock.mono())

    def stale(self) -> SendReason | None:
        """Why the connection should be replaced before it is used again; None: it should not."""
        if self.broken or not self._socket.alive:
            return SendReason.RECONNECTED
        wall, mono = self._elapsed(self._used)
        if wall - mono > MAX_DRIFT:
            return SendReason.SUSPENDED
        if max(self._elapsed(self._opened)) >= MAX_AGE:
            return SendReason.AGED
        return None

    def _elapsed(self, since: tuple[float, int]) -> tuple[float, float]:
        """Seconds since a reading of both clocks, by either clock."""
        wall, mono = since
        return self._clock.wall() - wall, (self._clock.mono() - mono) / 1e9

    async def send(self, frame: bytes, stream_id: str | None) -> None:
        """Send a request on a stream."""
        self._queues[stream_id] = deque()
        self.busy.add(stream_id)
        try:
            await self._socket.send(frame)
        except WireError:
            self.broken = True
            raise
        self._used = (self._clock.wall(), self._clock.mono())

    async def receive(self, stream_id: str | None, idle_timeout: float) -> ServerFrame:
        """The next frame of a stream. Raises `WireError` when it breaks, or is silent so long."""
        queue = self._queues[stream_id]
        await self._read_until(lambda: bool(queue), idle_timeout)
        return queue.popleft()

    async def wait_until_free(self, stream_id: str | None, idle_timeout: float) -> None:
        """Wait for the end of a response that was abandoned on this stream."""
        await self._read_until(lambda: stream_id not in self.abandoned, idle_timeout)

    async def _read_until(self, condition: Callable[[], bool], idle_timeout: float) -> None:
        """Read frames for all streams until the condition holds."""
        try:
            async with asyncio.timeout(idle_timeout):
                while not condition():
                    async with self._reading:
                        if not condition():
                            self._dispatch(frames.read(await self._socket.receive()))
        except TimeoutError:
            self.broken = True
            raise WireError(f"the server was silent for {idle_timeout:g} seconds") from None
        except WireError:
            self.broken = True
            raise

    def _dispatch(self, frame: ServerFrame) -> None:
        """Queue a frame for its stream."""
        self._used = (self._clock.wall(), self._clock.mono())
        stream_id = frame.stream_id
        self.multiplexes = self.multiplexes or stream_id is not None
        known = stream_id in self.busy or stream_id in self.abandoned
        if not known and len(self.busy) == 1:
            (stream_id,) = self.busy  # a server without streams, or a frame that cannot be read
        if stream_id in self.abandoned:
            if frame.terminal:
                self.abandoned.discard(stream_id)
                self.busy.discard(stream_id)
        elif stream_id in self.busy:
            self._queues[stream_id].append(frame)
        elif frame.code == frames.CONNECTION_LIMIT or not frame.readable:
            for queue in self._queues.values():  # it is about the connection, not about a stream
                queue.append(frame)

    def release(self, stream_id: str | None) -> None:
        """Note that the response on a stream is over."""
        self.busy.discard(stream_id)

    def abandon(self, stream_id: str | None) -> bool:
        """Give up the rest of a response; False: nothing else is under way here, close it."""
        if self.broken:
            return False
        if any(frame.terminal for frame in self._queues.get(stream_id, ())):
            self.busy.discard(stream_id)  # its end came while others read: nothing to wait for
            return True
        if not self.busy - {stream_id} - self.abandoned:
            return False
        self.abandoned.add(stream_id)
        return True

    async def close(self) -> None:
        """Close the connection."""
        self.broken = True
        await self._socket.close()


def _broke(error: Exception) -> WireError:
    """The error of a connection that ended; the server's own words are not for the log."""
    close = getattr(error, "rcvd", None)
    code = f"websocket_closed_{close.code}" if close is not None and close.reason else ""
    return WireError(f"the WebSocket broke: {_why(error)}", code=code)


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
