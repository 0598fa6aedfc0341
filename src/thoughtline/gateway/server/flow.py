"""Flow control of a client's connection: who may read, and who waits until it can be written to.

uvicorn's, without the event that each connection has there from its beginning: hardly any client
is ever waited for, and an event takes as much memory as many a request.
"""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl


class LazyFlowControl(FlowControl):
    """Makes its event for the first one who waits."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._writable: asyncio.Event | None = None

    async def drain(self) -> None:
        """Wait until the client has read enough."""
        if self.write_paused:
            self._writable = self._writable or asyncio.Event()
            await self._writable.wait()

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """The client has read enough, or is gone: nobody waits any more."""
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None
