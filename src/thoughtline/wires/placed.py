"""A WebSocket's lane behind the plain port: for code that speaks HTTP and knows no frames.

One of these stands for one position in the log. What it gives looks like the answer to a POST: a
status, and server-sent events or the error's JSON. When the turn is written, `commit` says so.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from thoughtline import splice
from thoughtline.errors import Unreadable
from thoughtline.wires.answers import Answer, Sent
from thoughtline.wires.base import Headers, Inbound, Outbound
from thoughtline.wires.continuation import Position

_Send = Callable[[Outbound, Position], AbstractAsyncContextManager[Answer]]


class Placed:
    """A `Wire` for the requests of one turn."""

    def __init__(self, send: _Send, position: Position) -> None:
        self._send = send
        self._position = position
        self._answer: Answer | None = None

    @property
    def sent(self) -> Sent | None:
        """How the last request went out, and why so."""
        return self._answer.sent if self._answer is not None else None

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        async with self._send(request, self._position) as answer:
            self._answer = answer
            yield _Response(answer)

    def commit(self, turn: str | None = None) -> bool:
        """The turn is in the log: the next request may go on from it. See `Answer.commit`."""
        return self._answer is not None and self._answer.commit(turn)

    async def close(self) -> None:
        """The connection is the lane's, and stays."""


class _Response:
    """One answer as HTTP would give it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status
        kind = "application/json" if answer.refusal else "text/event-stream"
        self.headers: Headers = [("content-type", kind), *_said(answer)]

    async def chunks(self) -> AsyncIterator[bytes]:
        async for event in self._answer:
            yield event if self._answer.refusal else framed(event)


def framed(event: bytes) -> bytes:
    """An event's JSON as a server-sent event; line ends inside of it are kept."""
    return b"data: " + event.replace(b"\n", b"\ndata: ") + b"\n\n"


def _said(answer: Answer) -> list[tuple[str, str]]:
    """The headers that a refusal brings along in its frame: when to try again, and such."""
    if answer.refusal is None:
        return []
    try:
        headers = splice.loads(answer.refusal.data)["error"]["headers"]
        return [(str(name).lower(), str(value)) for name, value in headers.items()]
    except (Unreadable, LookupError, TypeError, AttributeError):
        return []
