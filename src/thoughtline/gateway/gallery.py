"""The gallery: bytes to the client first, then a copy to the reader; the very end waits.

Each chunk is forwarded as it came and looked at afterwards. Only the end of a response (the event
that closes a stream, the last bytes of a JSON body) waits for the ledger, at most a bounded
moment: what a client has received in full is in the log, whatever happens next. While a model
thinks, the dialect's own keep-alive is sent between events.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from thoughtline.exchanges import Exchange
from thoughtline.gateway.bodies import PLAIN, Unpacker
from thoughtline.gateway.refusals import fault

Send = Callable[[dict[str, Any]], Awaitable[None]]
Commit = Callable[[], Awaitable[None]]

ENDINGS = {
    "chat": re.compile(rb"\[DONE\]"),
    "responses": re.compile(rb"response\.(?:completed|incomplete|failed)"),
    "messages": re.compile(rb"message_stop"),
    "gemini": re.compile(rb"finish(?:Reason|_reason)"),
}
"""Bytes that the last event of a stream holds. Elsewhere they do no harm: the reader knows."""

_OVERLAP = 24
_BLANK = (b"\n\n", b"\r\n\r\n")  # the end of an event


class Gallery:
    """One response on its way to one client."""

    _busy = False
    _committed = False
    _between = True  # the last byte sent ended an event: a ping may stand here
    _last = 0.0  # when something was last sent, by the loop's clock
    _interval = 0.0
    _timer: asyncio.TimerHandle | None = None
    _ping: asyncio.Task[None] | None = None

    def __init__(
        self,
        send: Send,
        exchange: Exchange,
        commit: Commit,
        encoding: str = "",
        *,
        start: Commit | None = None,
    ) -> None:
        self._send = send
        self._start = start  # sends status and headers; None: they are out
        self._exchange = exchange
        self._commit = commit
        self._unpacker = Unpacker(encoding) if encoding else PLAIN

    def show(self, chunks: AsyncIterator[bytes], *, stream: bool) -> Coroutine[Any, Any, None]:
        """Forward everything; returns when the client has all of it."""
        return self._stream(chunks) if stream else self._whole(chunks)

    async def _stream(self, chunks: AsyncIterator[bytes]) -> None:
        await self._begin()
        seen = ENDINGS[self._exchange.dialect.name].search
        clock = asyncio.get_running_loop().time
        tail = b""
        ending = False  # inside of an event that may be the last one: it may come in many chunks
        async for chunk in chunks:
            probe = tail + chunk
            tail = probe[-_OVERLAP:]
            ending = ending or self._unpacker.packed or seen(probe) is not None
            if ending and not self._committed:
                self.take(chunk)
                if self._exchange.done:
                    await self._commit_once()
                await self._forward(chunk)
            else:
                try:
                    await self._forward(chunk)
                finally:  # a client that leaves here does not make a hole in the record
                    self.take(chunk)
            self._between = chunk.endswith(_BLANK)
            ending = ending and not self._between
            self._last = clock()
        await self._commit_once()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _whole(self, chunks: AsyncIterator[bytes]) -> None:
        held = b""
        async for chunk in chunks:
            self.take(chunk)
            if held:
                await self._begin()
                await self._forward(held)
            held = chunk
        await self._commit()
        await self._begin()  # what came in one piece goes out in one
        await self._send({"type": "http.response.body", "body": held, "more_body": False})

    async def _begin(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await start()

    def take(self, chunk: bytes) -> None:
        """A copy for the reader, unpacked."""
        plain = self._unpacker.feed(chunk)
        if plain:
            try:
                self._exchange.feed(plain)
            except Exception as error:  # noqa: BLE001 (no fault of ours may cost a client its answer)
                self._exchange.give_up(fault(error))
        if not self._unpacker.readable:
            self._exchange.give_up(f"it came packed, and {self._unpacker.why}")

    async def _commit_once(self) -> None:
        if not self._committed:
            self._committed = True
            await self._commit()

    @property
    def plain(self) -> bool:
        """Whether words of ours may stand in the stream: not where it is packed."""
        return self._unpacker.readable and not self._unpacker.packed

    @property
    def between(self) -> bool:
        """Whether the client has whole events, and nothing is on its way."""
        return self._between and not self._busy

    async def _forward(self, chunk: bytes) -> None:
        self._busy = True
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._busy = False

    # -- while a model thinks --------------------------------------------------------------------

    def keep_alive(self, interval: float) -> None:
        """Ping the client whenever nothing came for that long (0: never), until `stop`."""
        if interval > 0 and self.plain:
            loop = asyncio.get_running_loop()
            self._interval, self._last = interval, loop.time()
            self._timer = loop.call_later(interval, self._tick)

    def stop(self) -> None:
        """No more pings."""
        if self._timer is not None:
            self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    def _tick(self) -> None:
        """The one timer of a stream: it is not set anew for each chunk, but looks when due."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._last >= self._interval:
            if self.between and not self._committed:
                self._ping = loop.create_task(self._say())
            self._last = now
        self._timer = loop.call_at(self._last + self._interval, self._tick)

    async def _say(self) -> None:
        if self.between and not self._committed:  # a task comes later: half an event may be out
            await self._forward(self._exchange.dialect.ping())
