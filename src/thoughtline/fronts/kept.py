"""A stream that outlives its readers: a browser that reloads reads on from the beginning.

    kept = Kept(ui_stream(chat.run(words)))
    StreamingResponse(kept.read(), headers=HEADERS)     # now, and again after a reload

Whoever stops reading stops nothing. The run goes on until it is over, or until somebody says so:
`run.cancel()`. What was sent is kept as long as this object is.
"""

import asyncio
from collections.abc import AsyncIterator


class Kept:
    """The chunks of one stream, for any number of readers, each from the start."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._chunks: list[bytes] = []
        self._more = asyncio.Event()
        self._task = asyncio.ensure_future(self._drain(stream))

    @property
    def done(self) -> bool:
        """Whether everything was sent."""
        return self._task.done()

    async def read(self) -> AsyncIterator[bytes]:
        """Everything so far, at once, then the rest as it comes."""
        at = 0
        while True:
            more = self._more
            if at < len(self._chunks):
                chunk = b"".join(self._chunks[at:])
                at = len(self._chunks)
                yield chunk
            elif self.done:
                return
            else:
                await more.wait()

    async def over(self) -> None:
        """Wait for the end."""
        await asyncio.wait({self._task})

    async def _drain(self, stream: AsyncIterator[bytes]) -> None:
        try:
            async for chunk in stream:
                self._chunks.append(chunk)
                self._wake()
        finally:
            asyncio.get_running_loop().call_soon(self._wake)  # when the task is done

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()
