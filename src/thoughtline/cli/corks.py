"""The head of a response, held back until the first piece of its body: one packet, not two.

uvicorn writes a head as soon as it has one, and the loop sends each write at once, which costs a
system call here and wakes the client for bytes it can do nothing with. A head that is still alone
when the loop comes round goes out as it is: nobody waits for a model's first word to see a status.
"""

import asyncio
from typing import Any

_HEAD = b"HTTP/1.1 "
MOST = 64 << 10  # bytes that are copied to save a packet


class Corked:
    """A transport whose heads wait for a body, for as long as the loop takes to come round."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.bare = transport
        self._loop = loop
        self._held = b""
        self._put = transport.write
        self.is_closing = transport.is_closing  # asked for with every response

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)

    def write(self, data: bytes) -> None:
        """Write; what was held goes first, in the same packet."""
        if self._held:
            held, self._held = self._held, b""
            if len(data) > MOST:
                self._put(held)
                self._put(data)
            else:
                self._put(held + data)
        elif data.startswith(_HEAD):
            self._held = data
            self._loop.call_soon(self.flush)
        else:
            self._put(data)

    def flush(self) -> None:
        """Nothing came with it."""
        if self._held:
            held, self._held = self._held, b""
            self._put(held)

    def close(self) -> None:
        """Close, when everything is written."""
        self.flush()
        self.bare.close()
