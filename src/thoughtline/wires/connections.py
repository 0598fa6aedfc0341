"""One WebSocket to one server: frames out, frames in by lane, and how old it is.

Whoever waits for a frame reads the socket and puts what is for others into their boxes; so a slow
reader slows the server, and no task runs behind anybody's back. Pings are the library's. Age is
measured on two clocks: a machine that slept shows it by the difference between them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.protocol import State

from thoughtline.clock import Clock
from thoughtline.errors import WireError
from thoughtline.wires import frames
from thoughtline.wires.base import Headers
from thoughtline.wires.continuation import Reason
from thoughtline.wires.frames import Frame

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


class Refused(WireError):
    """The server answered the upgrade with a plain status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the upgrade to a WebSocket was answered {status}")
        self.status = status


class Socket(Protocol):
    """A WebSocket."""

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""

    async def send(self, frame: bytes) -> None:
        """Send one text frame. Raises `WireError`."""

    async def receive(self) -> bytes:
        """The next message. Raises `WireError` when there will be none; may be cancelled."""

    async def close(self) -> None:
        """Close it, in good order if the other side takes part."""


Dial = Callable[[str, Headers], Awaitable[Socket]]
"""Opens a socket to a URL (http or ws). Raises `Refused` or another `WireError`."""


class Dialling(Struct, frozen=True, kw_only=True):
    """How sockets are opened, and how long things may take, in seconds."""

    open_timeout: float = 10.0
    close_timeout: float = 1.0
    ping_interval: float = 25.0
    ping_timeout: float = 25.0
    max_size: int = 64 << 20

    async def __call__(self, url: str, headers: Headers) -> Socket:
        """Open one, by the `websockets` library. No redirect is followed: a key stays at home."""
        kept = [(name, value) for name, value in headers if name.lower() not in _NOT_UPGRADED]
        try:
            return _Socket(
                await _Straight(
                    "ws" + url.removeprefix("http") if url.startswith("http") else url,
                    additional_headers=kept,
                    user_agent_header=None,
                    compression="deflate",
                    open_timeout=self.open_timeout,
                    close_timeout=self.close_timeout,
                    ping_interval=self.ping_interval,
                    ping_timeout=self.ping_timeout,
                    max_size=self.max_size,
                )
            )
        except InvalidStatus as error:
            raise Refused(error.response.status_code) from error
        except (OSError, TimeoutError, ValueError, WebSocketException) as error:
            place = url.partition("?")[0]
            raise WireError(f"no WebSocket to {place}: {_why(error)}") from error


class _Straight(connect):
    """Connects where it is told and nowhere else."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _Socket:
    """The library's connection behind the port."""

    def __init__(self, inner: ClientConnection) -> None:
        self._inner = inner

    @property
    def alive(self) -> bool:
        return self._inner.state is State.OPEN

    async def send(self, frame: bytes) -> None:
        try:
            await self._inner.send(frame, text=True)
        except (OSError, WebSocketException) as error:
            raise WireError(f"the WebSocket broke: {_why(error)}") from error

    async def receive(self) -> bytes:
        try:
            return await self._inner.recv(decode=False)
        except (OSError, EOFError, WebSocketException) as error:
            raise WireError(f"the WebSocket broke: {_why(error)}") from error

    async def close(self) -> None:
        await self._inner.close()


class Connection:
    """One connection, with the lanes in it."""

    def __init__(self, socket: Socket, *, generation: int, place: str, clock: Clock) -> None:
        self.generation = generation
        self.place = place  # endpoint and account: what it may be used for
        self.broken = False
        self.laned = False  # the server has shown that it knows lanes
        self.busy: set[str | None] = set()  # lanes with a response under way
        self.abandoned: set[str | None] = set()  # lanes whose response nobody wants any more
        self._socket = socket
        self._clock = clock
        self._boxes: dict[str | None, deque[Frame]] = {}
        self._reading = asyncio.Lock()
        self._opened = self._used = (clock.wall(), clock.mono())

    def stale(self, *, lifetime: float, drift: float) -> Reason | None:
        """Why it should be replaced before it is used again."""
        if self.broken or not self._socket.alive:
            return Reason.RECONNECTED
        wall, mono = self._elapsed(self._used)
        if wall - mono > drift:
            return Reason.SUSPENDED
        if max(self._elapsed(self._opened)) >= lifetime:
            return Reason.AGED
        return None

    def _elapsed(self, since: tuple[float, int]) -> tuple[float, float]:
        """Seconds since a reading, by either clock."""
        wall, mono = since
        return self._clock.wall() - wall, (self._clock.mono() - mono) / 1e9

    async def send(self, frame: bytes, lane: str | None) -> None:
        """Send a request on a lane."""
        self._boxes[lane] = deque()
        self.busy.add(lane)
        try:
            await self._socket.send(frame)
        except WireError:
            self.broken = True
            raise
        self._used = (self._clock.wall(), self._clock.mono())

    async def receive(self, lane: str | None, patience: float) -> Frame:
        """The next frame of a lane. Raises `WireError` when it breaks, or is silent for so long."""
        box = self._boxes[lane]
        await self._until(lambda: bool(box), patience)
        return box.popleft()

    async def free(self, lane: str | None, patience: float) -> None:
        """Wait for the end of a response that was abandoned on this lane."""
        await self._until(lambda: lane not in self.abandoned, patience)

    async def _until(self, there: Callable[[], bool], patience: float) -> None:
        """Read for everybody until that is so."""
        try:
            async with asyncio.timeout(patience):
                while not there():
                    async with self._reading:
                        if not there():
                            self._deliver(frames.read(await self._socket.receive()))
        except TimeoutError:
            self.broken = True
            raise WireError(f"the server was silent for {patience:g} seconds") from None
        except WireError:
            self.broken = True
            raise

    def _deliver(self, frame: Frame) -> None:
        self._used = (self._clock.wall(), self._clock.mono())
        lane = frame.lane
        self.laned = self.laned or lane is not None
        if lane not in self.busy and lane not in self.abandoned and len(self.busy) == 1:
            (lane,) = self.busy  # a server without lanes, or a frame that cannot be read
        if lane in self.abandoned:
            if frame.terminal:
                self.abandoned.discard(lane)
                self.busy.discard(lane)
        elif lane in self.busy:
            self._boxes[lane].append(frame)
        elif frame.code == frames.LIMIT or not frame.readable:
            for box in self._boxes.values():  # said about the connection, not about a lane
                box.append(frame)

    def release(self, lane: str | None) -> None:
        """The response is over."""
        self.busy.discard(lane)

    def abandon(self, lane: str | None) -> bool:
        """Nobody wants the rest of a response; False: nothing else is under way here, close it."""
        if self.broken:
            return False
        if any(frame.terminal for frame in self._boxes.get(lane, ())):
            self.busy.discard(lane)  # its end came while others read: nothing to wait for
            return True
        if not self.busy - {lane} - self.abandoned:
            return False
        self.abandoned.add(lane)
        return True

    async def close(self) -> None:
        """Let go of it."""
        self.broken = True
        await self._socket.close()


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
