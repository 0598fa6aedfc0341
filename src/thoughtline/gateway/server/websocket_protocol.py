"""The WebSocket protocol: a client's connection after its upgrade.

uvicorn's protocol, with bounds on the work between two turns of the event loop. What came in one
piece is parsed slice by slice, so that very many tiny frames do not stop everybody else; it waits
while the application has not taken the last message, or the client does not read. A message in very
many tiny fragments closes the connection.
"""

import asyncio
from collections import deque
from typing import Any

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

SLICE = 4 << 10
"""Bytes that are parsed in one turn of the event loop: about 700 of the smallest frames."""
MAX_TINY_FRAGMENTS = 1024
"""Fragments of a message that may be of any size."""
MIN_FRAGMENT = 64
"""Bytes that a message must have for each of its fragments beyond these."""
_POLICY_VIOLATION = 1008


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """The WebSocket connection of one client."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._pending: deque[bytes] = deque()  # came, and is not parsed yet
        self._waiting: asyncio.Handle | None = None
        self._fragments = 0  # of the message that is arriving
        self._fragment_bytes = 0

    def data_received(self, data: bytes) -> None:
        if not self._pending and len(data) <= SLICE and self.writable.is_set():
            super().data_received(data)
            return
        self._pending.extend(data[at : at + SLICE] for at in range(0, len(data), SLICE))
        self.transport.pause_reading()
        self._parse_later()

    def _parse_later(self) -> None:
        if self._waiting is None and self._pending and not self._is_blocked():
            self._waiting = self.loop.call_soon(self._parse_next)

    def _is_blocked(self) -> bool:
        """Whether parsing waits for the application, or for a client that does not read."""
        return self.read_paused or not self.writable.is_set() or self.transport.is_closing()

    def _parse_next(self) -> None:
        self._waiting = None
        if self._is_blocked():
            return
        super().data_received(self._pending.popleft())
        if self._pending:
            self._parse_later()
        elif not self._is_blocked():
            self.transport.resume_reading()

    async def receive(self) -> ASGIReceiveEvent:
        message = await super().receive()
        if self._pending and not self.transport.is_closing():
            self.transport.pause_reading()  # the rest of the last piece comes first
            self._parse_later()
        return message

    def resume_writing(self) -> None:
        super().resume_writing()
        self._parse_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pending.clear()
        super().connection_lost(exc)

    # -- fragments -------------------------------------------------------------------------------

    def handle_text(self, event: Frame) -> None:
        self._fragments, self._fragment_bytes = 1, len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        self._fragments, self._fragment_bytes = 1, len(event.data)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        self._fragments += 1
        self._fragment_bytes += len(event.data)
        beyond = self._fragments - MAX_TINY_FRAGMENTS
        if beyond * MIN_FRAGMENT <= self._fragment_bytes:
            super().handle_cont(event)
        elif not self.close_sent:
            self.frames = []
            self.conn.fail(_POLICY_VIOLATION, "too many tiny fragments; send larger ones")
            self.handle_parser_exception()
