"""Tells an answer again in the client's dialect, as it comes.

The recording reads the provider's bytes first; what it understood is put into blocks and written as
the client expects it. Only the end waits for the commit, as in every other exchange.
"""

import asyncio
from collections.abc import AsyncIterator

from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, BlockEvent, stop_reason
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.reader import NO_WORDS
from thoughtline.dialects.upstream_errors import error_under_200, unexpected_error
from thoughtline.engine.offload import run_aside
from thoughtline.engine.recording import BROKE_OFF, Recording
from thoughtline.engine.translation import Translation
from thoughtline.engine.turn_ids import client_call_id
from thoughtline.errors import Unreadable, WireError, fault
from thoughtline.gateway.asgi import Send
from thoughtline.gateway.relay import Commit, Relay, Start
from thoughtline.log.events import Outcome, StopReason, StreamEvent, TurnEnded
from thoughtline.log.usage import Usage

_SAID = (Outcome.COMPLETED, Outcome.CAPPED)
FAILED, UNREADABLE = "provider_error", "unreadable_answer"
"""What log lines say of an answer that is none, in place of the provider's words."""
_MAX_ERROR = 1 << 14
"""Bytes of an answer in which its error is looked for."""


class TranslatedRelay(Relay):
    """One answer on its way to a client of another dialect."""

    def __init__(
        self,
        translation: Translation,
        send: Send,
        recording: Recording,
        dialect: Dialect,
        commit: Commit,
        *,
        encoding: str = "",
        start: Start | None = None,
    ) -> None:
        super().__init__(send, recording, dialect, commit, encoding, start=start)
        head = translation.head(recording.turn, created=recording.capture.started)
        self._writer = translation.client.answer_writer(head)
        self._beginning = b""  # of the answer: an error may be in it
        self._untold = b""  # what is whole before the error that ends the stream
        self._blocks = AnswerBlocks(
            translation.names, lambda nth: client_call_id(recording.turn, nth)
        )

    async def _stream(self, chunks: AsyncIterator[bytes]) -> None:
        await self._begin()
        await self._say_more(self._writer.start())
        async for chunk in chunks:
            await self._say_more(self._tell(self._read(chunk)))
        await self._say_more(self._tell(self._close()))
        last = self._end()
        await self._commit_once()
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def _whole(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            self._tell(self._read(chunk))
        body = await run_aside(self._rest) if self._recording.heavy else self._rest()
        await self._commit()
        await self._say_last(body)

    def _rest(self) -> bytes:
        """Read a body to its end, and tell all of it."""
        self._tell(self._close())
        return self._end()

    def _read(self, chunk: bytes) -> list[StreamEvent]:
        plain = self._decompressor.feed(chunk)
        if not self._decompressor.readable:
            raise WireError(f"the answer came compressed, and {self._decompressor.reason}")
        if not plain:
            return []
        if len(self._beginning) < _MAX_ERROR:
            self._beginning += plain[:_MAX_ERROR]
        try:
            return self._recording.feed(plain)
        except Exception as error:
            raise self._unread(error) from error

    def _close(self) -> list[StreamEvent]:
        try:
            return self._recording.close()
        except Exception as error:
            raise self._unread(error) from error

    def _unread(self, error: Exception) -> WireError:
        """A bug of Thoughtline, in words for the client: nothing can follow what was not read."""
        self._recording.give_up(fault(error))
        return WireError(f"the answer could not be read: {fault(error)}")

    def _tell(self, events: list[StreamEvent]) -> bytes:
        return self._write(self._blocks.feed(events))

    def _write(self, blocks: list[BlockEvent]) -> bytes:
        """Raises `WireError` for what the client's dialect cannot say: arguments that are none."""
        told = bytearray()
        try:
            for block in blocks:
                told += self._writer.write([block])
        except Unreadable as error:
            self._untold = bytes(told)
            raise WireError(str(error), code=UNREADABLE) from error
        return bytes(told)

    async def _say_more(self, told: bytes) -> None:
        if told:
            await self._forward(told)
            self._last = asyncio.get_running_loop().time()

    def _end(self) -> bytes:
        """The end, and what waited for it. Raises `WireError` for an answer that is none."""
        ended = self._recording.capture.ended or TurnEnded(outcome=Outcome.ABORTED)
        if ended.outcome not in _SAID and ended.stop is not StopReason.FILTER:
            raise self._failure(ended.reason)
        complete = ended.outcome is Outcome.COMPLETED and ended.stop is not StopReason.FILTER
        told = self._write(self._blocks.end(complete=complete))
        stop = stop_reason(ended, called=self._blocks.called)
        usage = ended.usage or Usage()
        return told + self._writer.finish(
            AnswerEnd(stop=stop, stop_text=ended.stop_text, usage=usage)
        )

    def _failure(self, reason: str) -> WireError:
        """Why there is no answer: in the provider's words, if it says so, to its client alone."""
        if reason and reason == self._recording.capture_error:
            return WireError(reason)
        words = reason if reason != NO_WORDS else ""
        if not words and not self._blocks.begun:  # an error in another shape than the dialect's
            words = unexpected_error(self._beginning)
        return WireError(words or reason or BROKE_OFF, code=FAILED if words else "")

    def broken_off(self, client: Dialect, reason: str) -> bytes:
        """The end of a stream that broke, in the client's dialect."""
        return self._untold + self._writer.fail_with(error_under_200(reason))

    def refusal(self, client: Dialect, reason: str) -> tuple[int, bytes]:
        error = error_under_200(reason)
        return error.status, client.upstream_error(error)

    async def _say(self) -> None:
        if self.between and not self._committed:
            await self._forward(self._writer.keepalive())
