"""The ASGI callable: which room a request goes to.

Requests with a history, and everything else under an upstream, go to the walk (`proxy`), without a
framework between; WebSockets go to `sockets`. The few pages of our own (health, metrics, admin)
are a small Starlette application beside it. Starting opens the rooms, stopping waits for streams
and writes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from thoughtline.gateway.browsers import Browsed, page
from thoughtline.gateway.leaving import before_the_end
from thoughtline.gateway.proxy import App, Proxy, Receive, Scope, Send
from thoughtline.gateway.sockets import Sockets

OWN = (
    "/health",
    "/ready",
    "/metrics",
    "/version",
    "/openapi.json",
    "/docs",
    "/api/",
    "/inspect",
    "/favicon.ico",
)
"""Paths, or beginnings of paths, that are ours and no upstream's."""

Task = Callable[[], Coroutine[Any, Any, None]]


class Gateway:
    """Everything behind one port."""

    def __init__(
        self,
        proxy: Proxy,
        pages: App,
        *,
        grace: float = 30.0,
        beside: Sequence[Task] = (),
        leave: Sequence[Callable[[], None]] = (),
        last: Sequence[Task] = (),
    ) -> None:
        self.proxy = proxy
        self.sockets = Sockets(proxy)
        self._pages = pages
        self._grace = grace
        self._beside = beside  # what runs for as long as the gateway does
        self._leave = leave  # what is done as soon as the end is near: streams of ours would go on
        self._last = last  # what is done when everything else has ended
        self._running: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch by kind and path."""
        kind = scope["type"]
        if kind == "http":
            await self._room(scope)(scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)
        else:
            await self.sockets(scope, receive, send)

    def _room(self, scope: Scope) -> App:
        path: str = scope["path"]
        if path == "/" or path.startswith(OWN):
            return self._pages
        listing = path.startswith("/v1/models") and scope["method"] in ("GET", "HEAD")
        room = self._pages if listing else self.proxy
        return Browsed(room, self.proxy.door) if page(scope["headers"]) else room

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:  # a second Ctrl-C: nobody waits for anything any more
                return
            if message["type"] == "lifespan.startup":
                self.open()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def open(self) -> None:
        """Start what runs beside the walk."""
        self._running = [asyncio.ensure_future(task()) for task in self._beside]
        if self._leave:
            before_the_end(self._going)

    def _going(self) -> None:
        for leaving in self._leave:
            leaving()

    async def close(self) -> None:
        """Let streams finish and captures be written, within the grace period; then let go."""
        self._going()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.proxy.drain(self._grace)
        await self.proxy.wire.close()
        await self.proxy.store.close()
        for ending in self._last:
            await ending()
