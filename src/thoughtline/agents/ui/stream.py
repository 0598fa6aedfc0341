"""Streams a run over server-sent events, as `useChat` of the AI SDK reads it.

    StreamingResponse(ui_stream(chat.run(words)), headers=HEADERS)

A client that disconnects cancels the run, and the log says so; `ResumableStream` keeps the run
going instead, and a page that reloads reads it from the start. The response's status is sent
before a run can fail, so a failure is a chunk of the stream, in the words that `explain` chooses.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable

from thoughtline.agents.run import Run
from thoughtline.agents.ui.chunks import MessageEncoder, hide_reason
from thoughtline.agents.ui.message_parts import Chunk
from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import ThoughtlineError

HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE = b"data: [DONE]\n\n"


def encode_sse(chunks: Iterable[Chunk]) -> bytes:
    """Chunks as server-sent events, in ASCII: a lone surrogate is escaped like everything else."""
    return b"".join(
        b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n" for chunk in chunks
    )


async def ui_stream(
    run: Run,
    *,
    message: str = "",
    clock: Clock | None = None,
    explain: Callable[[str], str] = hide_reason,
) -> AsyncIterator[bytes]:
    """The body of a response: one UI message, from `start` to `[DONE]`.

    Args:
        run: the run to stream; it starts when the first chunk is asked for.
        message: the message's id; the first turn's, if empty.
        clock: the time of day, for live timers.
        explain: makes the words that people read from the reason of a failure.
    """
    clock = clock or SystemClock()
    encoder = MessageEncoder(message, explain=explain)
    try:
        async for event in run:
            if chunks := encoder.feed(event, clock.wall()):
                yield encode_sse(chunks)
        yield encode_sse(encoder.end()) + DONE
    except ThoughtlineError as error:
        yield encode_sse(encoder.end(str(error))) + DONE
    except Exception as error:
        yield encode_sse(encoder.end(f"{type(error).__name__}: {error}")) + DONE
        raise
    finally:
        if not run.done:
            run.cancel()


class ResumableStream:
    """Reads a stream to its end and gives all of it, from the start, to any number of readers.

        stream = ResumableStream(ui_stream(chat.run(words)))
        StreamingResponse(stream.read(), headers=HEADERS)     # now, and again after a reload

    A reader that disconnects stops nothing: the run goes on until it is over or until
    `run.cancel()`. The chunks are held in memory as long as this object is.
    """

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._chunks: list[bytes] = []
        self._changed = asyncio.Event()
        self._task = asyncio.ensure_future(self._read_all(stream))

    @property
    def done(self) -> bool:
        """Whether the stream has ended."""
        return self._task.done()

    async def read(self) -> AsyncIterator[bytes]:
        """Everything so far, at once, then the rest as it comes."""
        position = 0
        while True:
            changed = self._changed
            if position < len(self._chunks):
                chunk = b"".join(self._chunks[position:])
                position = len(self._chunks)
                yield chunk
            elif self.done:
                return
            else:
                await changed.wait()

    async def over(self) -> None:
        """Wait for the end of the stream."""
        await asyncio.wait({self._task})

    async def _read_all(self, stream: AsyncIterator[bytes]) -> None:
        try:
            async for chunk in stream:
                self._chunks.append(chunk)
                self._notify()
        finally:
            asyncio.get_running_loop().call_soon(self._notify)  # when the task is done

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
