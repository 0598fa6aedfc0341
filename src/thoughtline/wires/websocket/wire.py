"""Responses over a WebSocket: one connection per session, and only new items are sent.

For a turn loop:

    wire = ResponsesWire(fallback=http_fallback(HttpWire()))          # one per session
    position = LogPosition(
        destination=Destination(endpoint=…, account=…, model=…),
        turn=this_turn, parent=parent_turn, ancestors=turns_before)
    async with wire.send(outbound, position) as response:  # `outbound`: the full POST, streaming
        async for event in response:                       # JSON bytes → `ResponsesReader.event`
            ...
        ...                                                # write the turn to the log, then:
        response.commit()                                  # the next request may continue it
    response.sent.plan                                     # "continued", or why it was sent in full

On entering, the first output is there, or the refusal (`response.status`, an `error` event). Until
then the request was sent again, in full, where that helped; afterwards a break raises `WireError`
and is never repeated. Leaving early cancels: the protocol has no other way than to close the
connection. `warm` sends a request that asks for no answer yet, `fork` opens a stream beside this
one, and `at` gives a plain `Wire` (status, headers, a stream of server-sent events).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound
from thoughtline.wires.websocket.connection import (
    Connect,
    UpgradeRefused,
    WebSocketConnection,
    WebSocketConnector,
)
from thoughtline.wires.websocket.continuation import Destination, LogPosition, SendReason
from thoughtline.wires.websocket.http_adapter import Fallback, StreamAdapter
from thoughtline.wires.websocket.response import SentRequest, WireResponse
from thoughtline.wires.websocket.stream import WireStream

FIRST_COOLDOWN = 5.0
"""Seconds without a try after the second failure in a row; doubles each time."""
MAX_COOLDOWN = 300.0
_NO_WEBSOCKET = frozenset({404, 405, 426, 501})
"""What servers answer to an upgrade if they have no WebSocket."""


class WebSocketOptions(Struct, frozen=True, kw_only=True):
    """Options of a wire; times in seconds."""

    idle_timeout: float = 600.0  # silence in mid-answer
    max_attempts: int = 4  # connections tried for one request, where there is no fallback
    retry_delay: float = 0.5  # before the third of them; doubles each time
    stream_ids: bool = False  # whether the server knows `stream_id`; given up if it does not


class CircuitBreaker:
    """Decides whether the WebSocket is worth a try, by its failures in a row.

    One failure is an accident: the next try follows at once. From the second one on there is a
    cooldown, each twice as long as the one before, up to a limit; a server that says it has no
    WebSocket gets the longest one. A response that completes resets the count.
    """

    def __init__(self, clock: Clock, options: WebSocketOptions) -> None:
        self.failures = 0
        self._clock = clock
        self._options = options
        self._retry_at = 0  # when the WebSocket may be tried again

    @property
    def is_open(self) -> bool:
        """Whether the WebSocket is not to be tried yet."""
        return self.failures > 1 and self._clock.mono() < self._retry_at

    @property
    def retry_delay(self) -> float:
        """Seconds to wait before another try within one request."""
        delay = self._options.retry_delay
        return delay * 2 ** min(self.failures - 2, 5) if self.failures > 1 else 0.0

    def record_failure(self, *, no_websocket: bool = False) -> None:
        """Count a WebSocket that broke or could not be opened, or a server that has none."""
        self.failures = max(2, self.failures + 1) if no_websocket else self.failures + 1
        cooldown = min(MAX_COOLDOWN, FIRST_COOLDOWN * 2 ** min(self.failures - 2, 16))
        if no_websocket:
            cooldown = MAX_COOLDOWN
        self._retry_at = self._clock.mono() + int(cooldown * 1e9)

    def record_success(self) -> None:
        """Forget all failures: the WebSocket works."""
        self.failures = 0


class ResponsesWire:
    """The WebSocket of one session."""

    def __init__(
        self,
        *,
        fallback: Fallback | None = None,
        connect: Connect | None = None,
        clock: Clock | None = None,
        options: WebSocketOptions | None = None,
        on_send: Callable[[SentRequest], None] = lambda _: None,
    ) -> None:
        """Build a wire; no connection is opened yet.

        Args:
            fallback: how to send over HTTP while there is no WebSocket; None: it fails instead.
            connect: opens WebSockets.
            clock: for the age of connections and cooldowns.
            options: limits and timeouts.
            on_send: is called for every request that is sent, for metrics.
        """
        self.options = options or WebSocketOptions()
        self.clock = clock or SystemClock()
        self.fallback = fallback
        self.breaker = CircuitBreaker(self.clock, self.options)
        self.ended = SendReason.NO_BASELINE  # why the connection before this one ended
        self.stream_ids = self.options.stream_ids
        self.probe: WireStream | None = None  # the latest fork: shows whether streams are known
        self.main = WireStream(self)
        self._connect: Connect = connect or WebSocketConnector()
        self.on_send = on_send
        self._connection: WebSocketConnection | None = None
        self._generation = 0
        self._opening = asyncio.Lock()
        self._forks = 0
        self._children: list[ResponsesWire] = []
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def send(self, outbound: Outbound, position: LogPosition) -> AsyncIterator[WireResponse]:
        """Send a request; on entering, the first output is there, or the refusal.

        Raises `WireError` when the server cannot be reached in any way.
        """
        async with self.main.send(outbound, position) as response:
            yield response

    async def warm(self, outbound: Outbound, position: LogPosition) -> bool:
        """Send a request ahead that asks for no answer; whether the next may continue it."""
        return await self.main.warm(outbound, position)

    def at(self, position: LogPosition) -> StreamAdapter:
        """The main stream as a plain `Wire`, for requests at one position of the log."""
        return self.main.at(position)

    def fork(self) -> WireStream:
        """A stream that continues the same response, beside the main one."""
        return self.main.fork()

    async def close(self) -> None:
        """Close the connection; the wire can be used again and will open another."""
        for child in self._children:
            await child.close()
        if self._connection is not None:
            self.discard(self._connection, SendReason.RECONNECTED)
        if self._closing:
            await asyncio.wait(set(self._closing))

    # -- for streams -----------------------------------------------------------------------------

    async def connection(self, outbound: Outbound, destination: Destination) -> WebSocketConnection:
        """The connection to use now; a new one if that is too old, slept or has another scope."""
        async with self._opening:
            scope = _scope(outbound, destination)
            held = self._connection
            if held is not None:
                stale = SendReason.DESTINATION_CHANGED if held.scope != scope else held.stale()
                if stale is None or (stale is not SendReason.RECONNECTED and held.busy):
                    return held  # it is in use by others, and replaced when they are done
                self.discard(held, stale)
            try:
                socket = await self._connect(outbound.url, outbound.headers)
            except WireError as error:
                self.record_failure(error)
                raise
            self._generation += 1
            self._connection = WebSocketConnection(
                socket, generation=self._generation, scope=scope, clock=self.clock
            )
            return self._connection

    def occupied(self, outbound: Outbound, destination: Destination) -> bool:
        """Whether others use a connection that is not the right one for this request."""
        held = self._connection
        return held is not None and bool(held.busy) and held.scope != _scope(outbound, destination)

    def discard(self, connection: WebSocketConnection, reason: SendReason) -> None:
        """Give a connection up and close it in the background."""
        connection.broken = True
        if self._connection is connection:
            self._connection, self.ended = None, reason
        task = asyncio.ensure_future(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def record_failure(self, error: WireError) -> None:
        """Count a connection that could not be opened, or broke."""
        no_websocket = isinstance(error, UpgradeRefused) and error.status in _NO_WEBSOCKET
        self.breaker.record_failure(no_websocket=no_websocket)

    def new_stream_id(self) -> str:
        """A name for another stream in this connection."""
        self._forks += 1
        return f"fork-{self._forks}"

    def separate(self, reason: SendReason) -> "ResponsesWire":
        """A wire like this one, with a connection of its own and nothing to continue."""
        child = ResponsesWire(
            fallback=self.fallback,
            connect=self._connect,
            clock=self.clock,
            options=self.options,
            on_send=self.on_send,
        )
        child.stream_ids = False
        child.main.continuation.drop(reason)
        self._children.append(child)
        return child


def _scope(outbound: Outbound, destination: Destination) -> str:
    """What a connection may be used for. The token is no part of it, and may be renewed."""
    return f"{destination.endpoint}\n{destination.account}\n{outbound.url}"
