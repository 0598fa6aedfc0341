"""Responses over a WebSocket: one connection per session, and only what is new is sent.

For a turn loop:

    wire = ResponsesWire(fallback=over_http(HttpWire(), Splitter))       # one per session
    position = Position(guard=Guard(endpoint=…, account=…, model=…),
                        turn=this_turn, head=parent_turn, ancestors=turns_before)
    async with wire.send(outbound, position) as answer:   # `outbound`: the POST, whole, streaming
        async for event in answer:                        # JSON bytes → `ResponsesReader.event`
            ...
        ...                                               # write the turn to the log, then:
        answer.commit()                                   # the next request may go on from here
    answer.sent.plan                                      # why it went out whole, or "continued"

On entering, the first output is there, or the refusal (`answer.status`, an `error` event). Until
then the request was sent again, whole, where that helped; afterwards a break raises `WireError`
and is never repeated. Leaving early cancels: there is no other way than to close the connection.
`warm` sends a request that asks for no answer yet, `fork` opens a lane beside this one, and `at`
gives a plain `Wire` (status, headers, a stream of server-sent events) for code that has one.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import WireError
from thoughtline.wires.answers import Answer, Sent, Tally
from thoughtline.wires.base import Outbound
from thoughtline.wires.connections import Connection, Dial, Dialling, Refused
from thoughtline.wires.continuation import Guard, Position, Reason
from thoughtline.wires.fallback import Fallback
from thoughtline.wires.health import Health
from thoughtline.wires.lanes import Lane
from thoughtline.wires.placed import Placed

_NOT_SPOKEN = frozenset({404, 405, 426, 501})
"""What servers answer to an upgrade that they do not know."""


class Options(Struct, frozen=True, kw_only=True):
    """What may be decided about a wire; times in seconds."""

    lifetime: float = 55 * 60.0  # a connection is replaced at this age: servers end it at 60 min
    drift: float = 10.0  # the clocks apart by so much: the machine slept
    idle_timeout: float = 600.0  # silence in mid-answer
    attempts: int = 4  # connections tried for one request, where there is no fallback
    pause: float = 0.5  # before the third of them; then twice as long each time
    first_rest: float = 5.0  # after the second failure in a row; then twice as long each time
    longest_rest: float = 300.0
    lanes: bool = False  # whether the server knows `stream_id`; if it turns out not to: no more


class ResponsesWire:
    """The WebSocket of one session."""

    def __init__(
        self,
        *,
        fallback: Fallback | None = None,
        dial: Dial | None = None,
        clock: Clock | None = None,
        options: Options | None = None,
        watch: Callable[[Sent], None] | None = None,
    ) -> None:
        """Build one; nothing is opened yet.

        Args:
            fallback: how to send over HTTP while there is no WebSocket; None: it fails instead.
            dial: opens sockets.
            clock: for age and rests.
            options: what may be decided.
            watch: is told of every request that goes out, for metrics.
        """
        self.options = options or Options()
        self.clock = clock or SystemClock()
        self.fallback = fallback
        self.health = Health(
            self.clock,
            first=self.options.first_rest,
            longest=self.options.longest_rest,
            pause=self.options.pause,
        )
        self.tally = Tally()
        self.ended = Reason.NO_BASELINE  # why the connection before this one is no more
        self.lanes = self.options.lanes
        self.probing: Lane | None = None  # the fork that was sent last: it shows what lanes are
        self.main = Lane(self)
        self._dial: Dial = dial or Dialling()
        self._watch = watch
        self._connection: Connection | None = None
        self._generation = 0
        self._opening = asyncio.Lock()
        self._forks = 0
        self._children: list[ResponsesWire] = []
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def send(self, outbound: Outbound, position: Position) -> AsyncIterator[Answer]:
        """Send a request; on entering, the first output is there, or the refusal.

        Raises `WireError` when the server cannot be reached in any way.
        """
        async with self.main.send(outbound, position) as answer:
            yield answer

    async def warm(self, outbound: Outbound, position: Position) -> bool:
        """Send a request ahead that asks for no answer; whether the next may go on from it."""
        return await self.main.warm(outbound, position)

    def at(self, position: Position) -> Placed:
        """The main lane as a plain `Wire`, for requests at one position of the log."""
        return self.main.at(position)

    def fork(self) -> Lane:
        """A lane that goes on from the same response, beside the main one."""
        return self.main.fork()

    async def close(self) -> None:
        """Close the connection; the wire can be used again and will open another."""
        for child in self._children:
            await child.close()
        if self._connection is not None:
            self.discard(self._connection, Reason.RECONNECTED)
        if self._closing:
            await asyncio.wait(set(self._closing))

    # -- for lanes -------------------------------------------------------------------------------

    async def connection(self, outbound: Outbound, guard: Guard) -> Connection:
        """The connection to use now; another one if that is too old, asleep or somebody else's."""
        async with self._opening:
            place = _place(outbound, guard)
            held = self._connection
            if held is not None:
                stale = held.stale(lifetime=self.options.lifetime, drift=self.options.drift)
                if held.place != place:
                    stale = Reason.GUARD_CHANGED
                if stale is None or (stale is not Reason.RECONNECTED and held.busy):
                    return held  # others are at work in it: it is replaced when they are done
                self.discard(held, stale)
            try:
                socket = await self._dial(outbound.url, outbound.headers)
            except WireError as error:
                self.failed(error)
                raise
            self._generation += 1
            self._connection = Connection(
                socket, generation=self._generation, place=place, clock=self.clock
            )
            return self._connection

    def occupied(self, outbound: Outbound, guard: Guard) -> bool:
        """Whether others are at work in a connection that is not the right one for this request."""
        held = self._connection
        return held is not None and bool(held.busy) and held.place != _place(outbound, guard)

    def discard(self, connection: Connection, reason: Reason) -> None:
        """Give a connection up: close it, without waiting for that."""
        connection.broken = True
        if self._connection is connection:
            self._connection, self.ended = None, reason
        task = asyncio.ensure_future(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def failed(self, error: WireError) -> None:
        """A connection could not be opened, or broke."""
        refused = isinstance(error, Refused) and error.status in _NOT_SPOKEN
        self.health.failed(refused=refused)

    def note(self, sent: Sent) -> None:
        """A request went out."""
        self.tally.add(sent)
        if self._watch is not None:
            self._watch(sent)

    def lane_name(self) -> str:
        """A name for another lane in this connection."""
        self._forks += 1
        return f"fork-{self._forks}"

    def beside(self, reason: Reason) -> "ResponsesWire":
        """Another wire like this one, with a connection of its own and nothing to go on from."""
        child = ResponsesWire(
            fallback=self.fallback,
            dial=self._dial,
            clock=self.clock,
            options=self.options,
            watch=self.note,
        )
        child.lanes = False
        child.main.continuation.drop(reason)
        self._children.append(child)
        return child


def _place(outbound: Outbound, guard: Guard) -> str:
    """What a connection may be used for. The token is no part of it, and may be renewed."""
    return f"{guard.endpoint}\n{guard.account}\n{outbound.url}"
