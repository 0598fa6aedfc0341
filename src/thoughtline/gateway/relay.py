"""Forwards an answer to the client: bytes first, then a copy to the recording; the end waits.

Each chunk is forwarded as it came and read afterwards: where wire and server allow it, in the
callback in which it came, and read together with others. Only the end of a response (the event
that closes a stream, the last bytes of a JSON body) waits for the commit, for a bounded time: what
a client has received in full is in the log, whatever happens next. Where the next request may reach
another process, the event that says why the model stopped waits as well: some clients go on as soon
as they have it. While a model thinks, the dialect's own keep-alive is sent between events.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from thoughtline.dialects.base import Dialect
from thoughtline.engine.recording import Recording
from thoughtline.errors import fault
from thoughtline.gateway.asgi import Send, WriteNow
from thoughtline.gateway.bodies import UNCOMPRESSED, Decompressor
from thoughtline.wires.http_connection import Sink

Commit = Callable[[], Awaitable[None]]
Start = Callable[..., Awaitable[None]]
"""Sends status and headers; with a body, if it is given one, that is all of the response's."""
Push = Callable[[Sink], None]
"""Asks for chunks as soon as they come, until one is refused."""


HOLD_TIME = 1.0
"""Most seconds for which what may be the end waits, or why a model stopped: more may come late."""

_OVERLAP = 24
_BLANK = (b"\n\n", b"\r\n\r\n")  # the end of an event


class Relay:
    """One response on its way to one client."""

    _busy = False
    _committed = False
    _tail = b""  # of an event that is cut: the end of a stream may be cut anywhere
    _ending = False  # inside of an event that may be the last one: it may come in many chunks
    _seen = b""  # the last chunk that was sent
    _last = 0.0  # when something was last sent, by the loop's clock
    _interval = 0.0
    _timer: asyncio.TimerHandle | None = None
    _held = b""  # what may be the end, or from where it says that the model has stopped
    _letting_go: asyncio.TimerHandle | None = None
    _ping: asyncio.Task[None] | None = None

    def __init__(
        self,
        send: Send,
        recording: Recording,
        dialect: Dialect,
        commit: Commit,
        encoding: str = "",
        *,
        start: Start | None = None,
        push: Push | None = None,
        write_now: WriteNow | None = None,
        holds: bool = False,
    ) -> None:
        """`holds`: the next request may reach another process."""
        self._send = send
        at_once = write_now is not None and not encoding
        self._push = push if at_once else None
        self._write_now = write_now or _never
        self._start = start  # sends status and headers; None: they are out
        self._recording = recording
        self._dialect = dialect
        self._commit = commit
        self._stop_mark = dialect.stream_stop if holds and at_once else None
        self._decompressor = Decompressor(encoding) if encoding else UNCOMPRESSED

    def forward(self, chunks: AsyncIterator[bytes], *, stream: bool) -> Coroutine[Any, Any, None]:
        """Forward everything; returns when the client has all of it."""
        return self._stream(chunks) if stream else self._whole(chunks)

    async def _stream(self, chunks: AsyncIterator[bytes]) -> None:
        await self._begin()
        self._loop = asyncio.get_running_loop()
        self._end_mark = self._dialect.stream_end
        self._ask_for_more()
        try:
            await self._forward_all(chunks)
        finally:
            await self._let_go()
        await self._commit_once()
        if self._recording.has_late:
            await self._commit()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward_all(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            if self._held and self._stop_mark is None:
                await self._let_go()  # it was not the last
            probe = self._tail + chunk
            if self._stop_mark is not None and (self._held or self._stop_mark.search(probe)):
                await self._hold(chunk, probe)
                continue
            self._ending = (
                self._ending
                or self._decompressor.compressed
                or self._end_mark.search(probe) is not None
            )
            if self._ending and not self._committed:
                self.take(chunk)
                if self._recording.done and not self._dialect.ends_once:
                    self._keep_back(chunk, probe)
                    continue
                if self._recording.done:
                    await self._commit_once()
                await self._forward(chunk)
            else:
                try:
                    await self._forward(chunk)
                finally:  # a client that leaves here does not make a hole in the record
                    self.take(chunk)
            self._note(chunk, probe)
            self._ending = self._ending and not self._whole_events
            self._ask_for_more()
        if self._held:
            self._stop_waiting()  # from here on the commit has its own time
            await self._commit_once()

    def _keep_back(self, chunk: bytes, probe: bytes) -> None:
        """Keep a chunk back until the next one comes, or the turn is committed at the end."""
        self._held = chunk
        self._letting_go = self._loop.call_later(HOLD_TIME, self._let_go_now)
        self._ending = not chunk.endswith(_BLANK)
        self._tail = probe[-_OVERLAP:] if self._ending else b""

    async def _hold(self, chunk: bytes, probe: bytes) -> None:
        """Keep a chunk back until the turn is committed."""
        if self._letting_go is None:
            self._letting_go = self._loop.call_later(HOLD_TIME, self._let_go_now)
        self._held += chunk
        self._tail = probe[-_OVERLAP:]
        self._ending = self._ending or self._end_mark.search(probe) is not None
        self.take(chunk)
        if self._ending and self._recording.done:  # with all that it says, in one transaction
            self._stop_waiting()
            await self._commit_once()
            await self._let_go()

    def _let_go_now(self) -> None:
        """Forward what was kept back for too long; a client that is slow gets it at the end."""
        if self._held and self._write_now(self._held):
            self._released()

    async def _let_go(self) -> None:
        if self._held:
            self._stop_waiting()
            await self._forward(self._held)
            self._released()

    def _stop_waiting(self) -> None:
        if self._letting_go is not None:
            self._letting_go.cancel()

    def _released(self) -> None:
        self._seen, self._last = self._held, self._loop.time()
        self._held, self._stop_mark = b"", None

    def _ask_for_more(self) -> None:
        """Have the next chunks forwarded as soon as they come, unless they are the end."""
        if self._push is not None and not self._ending and not self._committed:
            self._push(self._forward_now)

    def _forward_now(self, chunk: bytes) -> bool:
        """Forward a chunk in its callback; False where it may be the end, or the client is slow."""
        probe = self._tail + chunk
        if self._end_mark.search(probe):
            return False
        if self._stop_mark is not None and (self._held or self._stop_mark.search(probe)):
            return False
        if not self._write_now(chunk):
            return False
        self._recording.feed_later(chunk)
        self._seen, self._last = chunk, self._loop.time()  # as `_note` does, in the same call
        self._tail = b"" if chunk.endswith(_BLANK) else probe[-_OVERLAP:]
        return True

    def _note(self, chunk: bytes, probe: bytes) -> None:
        """Keep of a chunk that was forwarded what the next one needs."""
        self._seen = chunk
        self._tail = b"" if chunk.endswith(_BLANK) else probe[-_OVERLAP:]
        self._last = self._loop.time()

    async def _whole(self, chunks: AsyncIterator[bytes]) -> None:
        held = b""
        async for chunk in chunks:
            self.take(chunk)
            if held:
                await self._begin()
                await self._forward(held)
            held = chunk
        await self._commit()
        await self._say_last(held)

    async def _say_last(self, body: bytes) -> None:
        """Send the last bytes of an answer; what came in one piece goes out in one."""
        if self._start is not None:
            await self._start(body)
        else:
            await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _begin(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await start()

    def take(self, chunk: bytes) -> None:
        """A copy for the reader, unpacked."""
        plain = self._decompressor.feed(chunk)
        if plain:
            try:
                self._recording.feed(plain)
            except Exception as error:  # noqa: BLE001 (no fault of ours may cost a client its answer)
                self._recording.give_up(fault(error))
        if not self._decompressor.readable:
            self._recording.give_up(f"it came compressed, and {self._decompressor.reason}")

    async def _commit_once(self) -> None:
        if not self._committed:
            self._committed = True
            await self._commit()

    @property
    def plain(self) -> bool:
        """Whether Thoughtline may write into the stream: not where it is packed."""
        return self._decompressor.readable and not self._decompressor.compressed

    @property
    def between(self) -> bool:
        """Whether the client has whole events, and nothing is on its way."""
        return self._whole_events and not self._busy

    @property
    def _whole_events(self) -> bool:
        """Whether the last byte sent ended an event: a keep-alive may stand behind it."""
        return not self._seen or self._seen.endswith(_BLANK)

    def broken_off(self, client: Dialect, reason: str) -> bytes:
        """The event that ends a stream whose upstream broke off."""
        return client.error_event(502, reason, code="upstream_broke_off")

    def refusal(self, client: Dialect, reason: str) -> tuple[int, bytes]:
        """The answer instead, status and body, where nothing was forwarded before it broke off."""
        return 502, client.error(502, reason, code="upstream_broke_off")

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
        """No more pings, and nothing that comes is forwarded in its callback any more."""
        self._write_now = _never
        self._stop_waiting()
        if self._timer is not None:
            self._timer.cancel()
        if self._ping is not None:
            self._ping.cancel()

    def _tick(self) -> None:
        """The one timer of a stream: it is not set again for each chunk, but looks when due."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._last >= self._interval:
            if self.between and not self._committed:
                self._ping = loop.create_task(self._say())
            self._last = now
        self._timer = loop.call_at(self._last + self._interval, self._tick)

    async def _say(self) -> None:
        if self.between and not self._committed:  # a task comes later: half an event may be out
            alive = self._dialect.keepalive_after(self._recording.opening, self._seen)
            await self._forward(alive)


def _never(_: bytes) -> bool:
    """Write nothing at once: to a client for whom that is not possible, or not any more."""
    return False
