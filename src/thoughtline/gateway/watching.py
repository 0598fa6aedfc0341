"""Whether a client is still there.

A bare ASGI application is not told that its client left, unless it asks, and asking takes a task
of its own. Most answers are over before that would matter: so it is asked only after a moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Receive = Callable[[], Awaitable[dict[str, Any]]]

MOMENT = 0.25
"""Seconds after which a client is watched: it has left for at most so long, unnoticed."""


class Watch:
    """Cancels the task in which it was made when the client leaves (`left`)."""

    def __init__(self, receive: Receive) -> None:
        self.left = False
        self._receive = receive
        self._walker = asyncio.current_task()
        self._asking: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(MOMENT, self._begin)

    def _begin(self) -> None:
        self._asking = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.left = True
        if self._walker is not None:
            self._walker.cancel()

    def forgive(self) -> None:
        """The cancel has been heard, and the walker goes on to tidy up."""
        if self._walker is not None:
            self._walker.uncancel()

    def stop(self) -> None:
        """It does not matter any more."""
        self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
