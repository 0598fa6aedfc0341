"""The ASGI application: which handler a request goes to, and what starts and stops with the server.

Requests with a history, and everything else under an upstream, go to `proxy`, without a framework
between; WebSockets go to `websocket`. The gateway's own pages (health, metrics, admin) are a small
Starlette application. Stopping waits for responses and writes under way.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Any

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.gateway.asgi import App, Receive, Scope, Send, respond_json
from thoughtline.gateway.client_head import ClientHead, head_of
from thoughtline.gateway.cors import Cors, request_origin
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.failed_requests import refused
from thoughtline.gateway.headers import refusal_header
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.websocket.connection import WebSocketGateway

PAGES = (
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
"""Paths, or prefixes of paths, of the gateway's own pages; they never reach an upstream."""

OWN = "/own/"
"""The prefix of pages for clients, who show the credential that they ask models with."""
_ADMIN_PAGES = ("/api/", "/inspect")
"""Pages with a stricter rule of their own: they are the administrator's."""

BackgroundTask = Callable[[], Coroutine[Any, Any, None]]


class Gateway:
    """Everything behind one port."""

    def __init__(
        self,
        proxy: Proxy,
        pages: App,
        *,
        grace: float = 30.0,
        background: Sequence[BackgroundTask] = (),
        on_shutdown: Sequence[Callable[[], None]] = (),
        on_closed: Sequence[BackgroundTask] = (),
    ) -> None:
        """`background` tasks run for as long as the gateway does.

        `on_shutdown` is called as soon as shutdown begins, to end streams that would never end by
        themselves; `on_closed` when everything else has ended.
        """
        self.proxy = proxy
        self.sockets = WebSocketGateway(proxy)
        self._pages = pages
        self._grace = grace
        self._background = background
        self._on_shutdown = on_shutdown
        self._on_closed = on_closed
        self._running: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch by kind and path."""
        kind = scope["type"]
        if kind == "http":
            head = head_of(scope)
            if head.handler is None:
                refusal = self.proxy.auth.foreign_host(scope["headers"])
                if refusal is not None and not scope["path"].startswith(_ADMIN_PAGES):
                    self.proxy.failed.record("", refused(refusal, scope["method"], scope["path"]))
                    await _refuse(refusal, head, send)
                    return
                head.app, head.handler = self, self._handler(scope)
            await head.handler(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self.sockets(scope, receive, send)

    def _handler(self, scope: Scope) -> App:
        path: str = scope["path"]
        if path == "/" or path.startswith(PAGES):
            return self._pages
        listing = path.startswith("/v1/models") or path == "/v1beta/models"
        lists_models = listing and scope["method"] in ("GET", "HEAD")
        handler = self._pages if lists_models or path.startswith(OWN) else self.proxy
        return Cors(handler, self.proxy.auth) if request_origin(scope["headers"]) else handler

    async def _lifespan(self, receive: Receive, send: Send) -> None:
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
        """Start the background tasks."""
        self._running = [asyncio.ensure_future(task()) for task in self._background]
        if self._on_shutdown:
            on_stop_signal(self._shutting_down)

    def _shutting_down(self) -> None:
        for callback in self._on_shutdown:
            callback()

    async def close(self) -> None:
        """Let responses and writes under way finish, within the grace period; then close."""
        self._shutting_down()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self.proxy.drain(self._grace)
        await self.proxy.wire.close()
        await self.proxy.store.close()
        for closing in self._on_closed:
            await closing()


async def _refuse(refusal: GatewayError, head: ClientHead, send: Send) -> None:
    """Answer with an error, in the shape of the dialect that the path belongs to."""
    speaker = DIALECTS.get(head.route.family, DEFAULT)
    body = speaker.error(refusal.status, refusal.message, code=refusal.code)
    await respond_json(send, refusal.status, body, [refusal_header(refusal.code)])


def on_stop_signal(callback: Callable[[], None]) -> None:
    """Call this in the running event loop when the process is asked to stop.

    A server waits for its streams before it tells the application, and a stream that never ends by
    itself, such as a live feed, would hold it up. The server's own handlers are called as before.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # signals reach the main thread only: whoever runs a thread stops it in its own way
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _before(loop, callback, handler))


def _before(
    loop: asyncio.AbstractEventLoop,
    callback: Callable[[], None],
    handler: Callable[[int, FrameType | None], object],
) -> Callable[[int, FrameType | None], None]:
    """A signal handler that schedules the callback, then calls the handler that was there."""

    def handle(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(callback)
        handler(number, frame)

    return handle
