"""The ASGI callable: which room a request goes to.

Requests with a history, and everything else under an upstream, go to the walk (`proxy`), without a
framework between. The few pages of our own (health, metrics, admin) are a small Starlette
application beside it. Starting opens the rooms, stopping waits for streams and writes.
"""

from collections.abc import Awaitable, Callable

from thoughtline.gateway.proxy import Proxy, Receive, Scope, Send

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

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gateway:
    """Everything behind one port."""

    def __init__(self, proxy: Proxy, pages: App, *, grace: float = 30.0) -> None:
        self.proxy = proxy
        self._pages = pages
        self._grace = grace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch by kind and path."""
        kind = scope["type"]
        if kind == "http":
            await (self._pages if self._ours(scope) else self.proxy)(scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "not served here"})

    def _ours(self, scope: Scope) -> bool:
        path: str = scope["path"]
        return (
            path == "/"
            or path.startswith(OWN)
            or (path.startswith("/v1/models") and scope["method"] == "GET")
        )

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def close(self) -> None:
        """Let streams finish and captures be written, within the grace period; then let go."""
        await self.proxy.drain(self._grace)
        await self.proxy.wire.close()
        await self.proxy.store.close()
