"""One turn of an agent as the engine's caller: sent, read as it comes, retried where harmless.

A rate limit, a server error or a line that breaks is tried again with the same bytes, as long as
nothing was shown; that is the agent's own patience, beside the one correction of a refusal, which
is the engine's. The provider's own words are kept, for errors and logs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from thoughtline.agents.provider import Endpoint
from thoughtline.engine.caller import Incoming
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.exchange import Exchange
from thoughtline.errors import WireError
from thoughtline.log.events import StreamEvent
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire, read_up_to, with_appended

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
MAX_REFUSAL_BYTES = 1 << 16
BACKOFF = 0.5
MAX_PAUSE = 30.0

pause = asyncio.sleep
"""How to wait before trying again; tests do not."""


class ProviderRefusal(Struct, frozen=True, kw_only=True):
    """What a provider answered instead."""

    status: int
    body: bytes
    headers: Headers = ()

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.body.decode("utf-8", "replace").strip().removeprefix("data:")

    @property
    def message(self) -> str:
        """The part of it that is for people, wherever the provider keeps that."""
        text = self.text
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return text[:500]
        found = found[0] if isinstance(found, list) and found else found
        for key in ("error", "detail", "message"):
            found = found.get(key, found) if isinstance(found, dict) else found
        vague = not isinstance(found, str) or "metadata" in text
        return text[:500] if vague else found

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


class AgentCaller:
    """Sends the requests of one turn, and shows what comes back."""

    def __init__(
        self, endpoint: Endpoint, wire: Wire, show: Callable[[Sequence[StreamEvent]], None]
    ) -> None:
        self.refused: ProviderRefusal | None = None  # what the provider said last, if it said no
        self._endpoint = endpoint
        self._wire = wire
        self._show = show
        self._decision: RequestDecision | None = None  # what was sent last
        self._retries_left = 0  # of what was sent last
        self._shown = False

    def authenticate(self) -> None:
        """The credential is the agent's own."""

    async def read(self) -> Incoming | None:
        raise AssertionError("an agent begins its exchanges itself: tool results come in between")

    async def decided(self, exchange: Exchange) -> None:
        """The turn's record has been told."""

    @asynccontextmanager
    async def send(self, exchange: Exchange) -> AsyncIterator[Inbound]:
        """Send until there is an answer, or a refusal that will not change."""
        if exchange.decision is not self._decision:
            self._decision = exchange.decision
            self._retries_left = self._endpoint.provider.retries
        while True:
            self.refused = None
            async with self._wire.send(await self._outbound(exchange)) as inbound:
                if inbound.status != 200:
                    body = await read_up_to(inbound, MAX_REFUSAL_BYTES)
                    self.refused = ProviderRefusal(
                        status=inbound.status, body=body, headers=inbound.headers
                    )
                if self.refused is None or not self._transient(self.refused):
                    yield inbound
                    return
            await self._pause(self.refused)
            exchange.record()  # times are counted from the request that is answered

    async def _outbound(self, exchange: Exchange) -> Outbound:
        endpoint, decision = self._endpoint, exchange.decision
        headers = with_appended(await endpoint.headers(), decision.overrides.headers)
        return Outbound(method="POST", url=endpoint.url, headers=headers, body=decision.body)

    def _transient(self, refused: ProviderRefusal) -> bool:
        return refused.status in TRANSIENT and self._retries_left > 0

    async def retries(self, exchange: Exchange, error: WireError) -> bool:
        if self._shown or self._retries_left <= 0:
            return False
        await self._pause(None)
        return True

    async def _pause(self, refused: ProviderRefusal | None) -> None:
        tried = self._endpoint.provider.retries - self._retries_left
        self._retries_left -= 1
        wait = _retry_after(refused.headers if refused else (), BACKOFF * 2**tried)
        await pause(min(wait, MAX_PAUSE))

    async def refusal(self, answer: Inbound) -> bytes:
        return self.refused.body if self.refused is not None else b""

    async def relay(self, exchange: Exchange, answer: Inbound) -> None:
        """Read the answer, and show what happens in it."""
        if answer.status != 200:
            return
        recording = exchange.recording
        try:
            async for chunk in answer.chunks():
                if happened := recording.feed(chunk):
                    self._shown = True
                    self._show(happened)
        except WireError:
            if not recording.done:  # else everything was said, and the line broke after it
                raise

    async def commit(self, exchange: Exchange) -> None:
        """The turn's record writes it: what the tools said belongs to it, too."""


def _retry_after(headers: Headers, otherwise: float) -> float:
    """The seconds that a provider asks to wait."""
    found = next((value for name, value in headers if name.lower() == "retry-after"), "")
    try:
        return max(0.0, float(found))
    except ValueError:
        return otherwise
