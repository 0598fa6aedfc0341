"""One request through the proxy: a caller in place of a socket, a transport in place of a wire.

For the proxy a `TransportRequest` is a client: `receive` gives the body and later says that the
client left, `send` takes the response. For the caller it is that response. A chunk is handed over
before the next is read: `send` returns when the caller has taken it. What the inner transport
raises is kept for the caller as it is; the proxy is told of a broken wire and logs it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from typing import Any

import httpx2

from thoughtline.errors import WireError
from thoughtline.gateway.asgi import Scope
from thoughtline.gateway.proxy import Proxy
from thoughtline.wires.base import Headers, Inbound, Outbound

SCHEME = "+"
"""Stands between a scheme and a host where a path names them: `/u/https+api.openai.com/v1/…`."""

_KEPT = ("http_version", "reason_phrase")


class TransportRequest:
    """One request on its way; a task runs the proxy for it."""

    def __init__(self, request: httpx2.Request, body: bytes) -> None:
        self.request = request
        self.failure: Exception | None = None  # of the inner transport
        self.extensions: dict[str, Any] = {}  # of its response
        self._body: bytes | None = body
        self._left = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._started: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    # -- for the caller --------------------------------------------------------------------------

    async def open(
        self, proxy: Proxy, over: Callable[["asyncio.Task[None]"], object]
    ) -> httpx2.Response:
        """Run the proxy until there is a response; `over` is called when the proxy is done."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        running = proxy(self._scope(), self._receive, self._send)
        task = self._task = asyncio.create_task(running, context=context)
        task.add_done_callback(self._end)
        task.add_done_callback(over)
        try:
            await asyncio.wait((task, self._started), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.leave()
            raise
        if not self._started.done():
            self._raise()
        head = self._started.result()
        return httpx2.Response(
            head["status"], headers=head["headers"], stream=_Body(self), extensions=self.extensions
        )

    async def next(self) -> bytes | None:
        """The next chunk; None at the end. Raises what the inner transport raised."""
        chunk = await self._chunks.get()
        self._chunks.task_done()
        if chunk is None:
            self._chunks.put_nowait(None)  # the end stays the end
            self._raise()
        return chunk

    async def leave(self) -> None:
        """The caller wants no more: the proxy releases the upstream and logs what there was."""
        self._left.set()
        while not self._chunks.empty():
            self._chunks.get_nowait()
            self._chunks.task_done()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task})
        self._chunks.put_nowait(None)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._chunks.put_nowait(None)
        if not task.cancelled():
            task.exception()  # it is the caller's to see, if there still is one

    def _raise(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._task is not None and not self._left.is_set():
            self._task.result()

    # -- for the proxy ---------------------------------------------------------------------------

    def _scope(self) -> Scope:
        url = self.request.url
        path, _, query = url.raw_path.partition(b"?")
        path = f"/u/{url.scheme}{SCHEME}".encode() + url.netloc + path
        return {
            "type": "http",
            "method": self.request.method,
            "path": path.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "headers": [(name.lower(), value) for name, value in self.request.headers.raw],
        }

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if self._left.is_set() or self.failure is not None:
            return
        if message["type"] == "http.response.start":
            self._started.set_result(message)
        elif message["body"]:
            self._chunks.put_nowait(message["body"])
            await self._chunks.join()  # until the caller has taken it

    # -- for the wire ----------------------------------------------------------------------------

    def outgoing(self, outbound: Outbound) -> httpx2.Request:
        """What goes to the inner transport, with all that httpx2 says beside a request."""
        self.failure = None
        host = self.request.headers.get("host", self.request.url.netloc.decode("ascii"))
        headers = [("host", host), *outbound.headers]
        return httpx2.Request(
            outbound.method,
            outbound.url,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            content=outbound.body,
            extensions=self.request.extensions,
        )

    def incoming(self, response: httpx2.Response) -> None:
        """Keep what httpx2 says beside a response."""
        self.extensions = plain_extensions(response)

    def fail(self, error: Exception) -> WireError:
        """Keep an error for the caller; the proxy gets a `WireError`."""
        self.failure = error
        return WireError(str(error) or type(error).__name__)


_CURRENT: ContextVar[TransportRequest] = ContextVar("thoughtline_request")


class _Body(httpx2.AsyncByteStream):
    """A response's body, as the caller pulls it."""

    def __init__(self, request: TransportRequest) -> None:
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self._request.next()) is not None:
            yield chunk

    async def aclose(self) -> None:
        await self._request.leave()


class InnerWire:
    """The inner transport as the proxy's wire."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        current = _CURRENT.get()
        try:
            response = await self._inner.handle_async_request(current.outgoing(request))
        except Exception as error:
            raise current.fail(error) from error
        current.incoming(response)
        try:
            yield _Inbound(response, current)
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._inner.aclose()


class _Inbound:
    """The inner transport's response."""

    def __init__(self, response: httpx2.Response, request: TransportRequest) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 (it was async)
        self._stream = aiter(response.stream)  # once: whoever reads on, reads on from there
        self._request = request
        self.status = response.status_code
        self.headers: Headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.headers.raw
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except Exception as error:
            raise self._request.fail(error) from error


def with_stream(
    response: httpx2.Response, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream
) -> httpx2.Response:
    """The response with another stream for its body."""
    return httpx2.Response(
        response.status_code,
        headers=response.headers.raw,
        stream=stream,
        extensions=plain_extensions(response),
    )


def plain_extensions(response: httpx2.Response) -> dict[str, Any]:
    """The extensions of a response that are facts; what is bound to a connection stays with it."""
    return {name: response.extensions[name] for name in _KEPT if name in response.extensions}
