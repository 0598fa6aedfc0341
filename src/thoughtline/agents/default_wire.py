"""The wire of a log that was given none: HTTP, and in this process to a simulated provider."""

from contextlib import AbstractAsyncContextManager

from thoughtline.providers.known_providers import SCHEME
from thoughtline.wires.base import Inbound, Outbound, Wire
from thoughtline.wires.http import HttpWire


class DefaultWire:
    """Sends a request where its URL says."""

    def __init__(self) -> None:
        self._http = HttpWire()
        self._simulated: Wire | None = None  # its models are imported when one is asked

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        """Send a request."""
        if not request.url.startswith(SCHEME):
            return self._http.send(request)
        if self._simulated is None:
            from thoughtline.agents.simulated import at_once

            self._simulated = at_once()
        return self._simulated.send(request)

    async def close(self) -> None:
        """Close what is open."""
        await self._http.close()
