"""A WebSocket's request posted to this gateway itself, in the process.

An upstream that does not speak Responses is reached by translation, and that is done for requests
that are posted. So a frame for such an upstream becomes a POST here, and the events of its answer
become frames; who asks, and what may be sent where, is decided there as for everybody.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from thoughtline.engine.routes import Route
from thoughtline.errors import WireError
from thoughtline.gateway.asgi import POSTED, App, RawHeaders, Receive
from thoughtline.wires.base import Headers, Inbound, Outbound

_NOT_POSTED = frozenset({b"connection", b"upgrade", b"content-length", b"accept-encoding"})


class PostedWire:
    """The wire to this gateway; the headers are those of the WebSocket's client."""

    def __init__(self, app: App, headers: RawHeaders, query: str, route: Route) -> None:
        self._app = app
        self._headers = [pair for pair in headers if pair[0] not in _NOT_POSTED]
        self._query = query
        self._path = f"{route.base}/v1/responses"

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        """Post a body, and give the answer as it comes."""
        answer = _PostedAnswer()
        scope = {
            "type": "http",
            POSTED: True,
            "method": "POST",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": self._query.encode("latin-1"),
            "headers": [*self._headers, (b"content-type", b"application/json")],
        }
        task = asyncio.ensure_future(self._app(scope, answer.receive(request.body), answer.send))
        task.add_done_callback(answer.over)
        try:
            await answer.started.wait()
            if not answer.status:
                raise WireError("the gateway gave no answer")
            yield answer
        finally:
            answer.left.set()
            with suppress(Exception):
                await task

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class _PostedAnswer:
    """An answer of this gateway, as far as it has arrived."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self.started = asyncio.Event()
        self.left = asyncio.Event()  # whoever asked has had enough
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._whole = False

    def receive(self, body: bytes) -> Receive:
        """What the application is given to receive: the body, and then that the client left."""
        waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await self.left.wait()
            return {"type": "http.disconnect"}

        return receive

    async def send(self, message: dict[str, Any]) -> None:
        """Take a message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [
                (n.decode("latin-1"), v.decode("latin-1")) for n, v in message["headers"]
            ]
            self.started.set()
            return
        if body := message.get("body"):
            self._chunks.put_nowait(body)
        if not message.get("more_body"):
            self._whole = True
            self._chunks.put_nowait(None)

    def over(self, _task: "asyncio.Task[None]") -> None:
        """The application is done, also where it said nothing."""
        self.started.set()
        self._chunks.put_nowait(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
        if not self._whole:
            raise WireError("the answer broke off")
