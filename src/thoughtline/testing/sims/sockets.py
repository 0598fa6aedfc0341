"""WebSocket connections without the socket: what `app` drives and a dialect provides.

A `Socket` answers each frame in full. One that works on several things at a time has `Lanes`: it
is given time step by step, so that their frames can mix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable


class Socket(Protocol):
    """One accepted WebSocket connection, without the socket."""

    def receive(self, text: str) -> Iterable[str]:
        """Take one text frame, give the frames to send, in order."""

    @property
    def close_code(self) -> int | None:
        """Set once the server closes the connection, after the frames are sent."""


@runtime_checkable
class Lanes(Socket, Protocol):
    """A socket that works on several things at a time, and is given time step by step."""

    def take(self, text: str | bytes) -> Iterable[str]:
        """Take one frame, give what can be answered at once."""

    def step(self) -> Iterable[str]:
        """Go on with what is under way, give the next frames."""

    @property
    def idle(self) -> bool:
        """Nothing is under way."""

    @property
    def remaining(self) -> float:
        """Seconds until the connection is closed for its age."""
