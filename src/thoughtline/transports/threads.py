"""For callers without an event loop: a loop in a thread of its own, and streams that cross over.

The thread starts with the first request. When the loop is stopped, the same thread closes what
lives on it, so that its stopper (a caller, or the garbage collector on any thread) need not.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import httpx2

from thoughtline.transports.request import with_stream

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread, for one transport."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this there, and wait for it; an interrupted caller takes its work along."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._running())
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._stopped:
                raise RuntimeError("this transport is closed; make a new one")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run_loop,
                    args=(self._loop, self._transport),
                    name="thoughtline-transport",
                )
                self._thread.daemon = True
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """Let it end; does not wait."""
        with self._lock:
            stopped, self._stopped = self._stopped, True
            if self._loop is not None and not stopped:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def join(self) -> None:
        """Wait until everything is closed."""
        if self._thread is not None:
            self._thread.join()


def _run_loop(loop: asyncio.AbstractEventLoop, transport: httpx2.AsyncBaseTransport) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(transport.aclose())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class SyncStream(httpx2.SyncByteStream):
    """A response's body on a loop, for a caller without one."""

    def __init__(self, loop: LoopThread, response: httpx2.Response) -> None:
        self._loop = loop
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        chunks = aiter(self._response.stream)  # type: ignore[arg-type]
        while (chunk := self._loop.run(_next(chunks))) is not None:
            yield chunk

    def close(self) -> None:
        self._loop.run(self._response.aclose())


class AsyncStream(httpx2.AsyncByteStream):
    """A body that is made without a loop, for a transport on one."""

    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = iter(self._stream)
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk

    async def aclose(self) -> None:
        if isinstance(self._stream, httpx2.SyncByteStream):
            await asyncio.to_thread(self._stream.close)


class ThreadedTransport(httpx2.AsyncBaseTransport):
    """A transport that knows no loop, called in threads."""

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await asyncio.to_thread(self._inner.handle_request, request)
        return with_stream(response, AsyncStream(response.stream))  # type: ignore[arg-type]

    async def aclose(self) -> None:
        await asyncio.to_thread(self._inner.close)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
