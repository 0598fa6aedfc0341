"""A run over server-sent events, as `useChat` of the AI SDK reads it.

    StreamingResponse(ui_stream(chat.run(words)), headers=HEADERS)

Whoever stops reading cancels the run, and the log says so. A failure is told inside the stream,
whose status is long out; what went wrong is told to people only as far as `explain` tells it.
"""

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Protocol

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import ThoughtlineError
from thoughtline.events import Delta, Event
from thoughtline.fronts.chunks import Encoder, discreet
from thoughtline.fronts.parts import Chunk

HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE = b"data: [DONE]\n\n"


class Running(AsyncIterable[Event | Delta], Protocol):
    """A run, as far as a front end needs one."""

    @property
    def done(self) -> bool:
        """Whether it is over."""

    def cancel(self) -> None:
        """Stop."""


def written(chunks: Iterable[Chunk]) -> bytes:
    """Chunks as server-sent events; plain ASCII, so that half an emoji does no harm."""
    return b"".join(
        b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n" for chunk in chunks
    )


async def ui_stream(
    run: Running,
    *,
    message: str = "",
    clock: Clock | None = None,
    explain: Callable[[str], str] = discreet,
) -> AsyncIterator[bytes]:
    """The body of a response: one UI message, from `start` to `[DONE]`.

    Args:
        run: what to show; it starts with the first chunk that is asked for.
        message: the message's id; the first turn's, if empty.
        clock: the time of day, for live timers.
        explain: what people are told about a failure, from its reason.
    """
    clock = clock or SystemClock()
    encoder = Encoder(message, explain=explain)
    try:
        async for happening in run:
            if told := encoder.feed(happening, clock.wall()):
                yield written(told)
        yield written(encoder.end()) + DONE
    except ThoughtlineError as error:
        yield written(encoder.end(str(error))) + DONE
    except Exception as error:
        yield written(encoder.end(f"{type(error).__name__}: {error}")) + DONE
        raise
    finally:
        if not run.done:
            run.cancel()
