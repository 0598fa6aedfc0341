"""One request to a provider: sent, read as it comes, tried again where that is harmless.

A rate limit, a server's error or a line that breaks is tried again as long as nothing was shown.
A refusal because of a thought is healed (`healing`): a few plans that the evidence points to, each
another request, and the last one without all suspects. The provider's own words are kept for
whoever has to know.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.dialects.base import Reader
from thoughtline.errors import WireError
from thoughtline.events import Happening
from thoughtline.library import healing
from thoughtline.library.providers import Endpoint
from thoughtline.library.records import Record
from thoughtline.library.transcripts import Fold, Terms, fold
from thoughtline.policies.remedies import diagnose
from thoughtline.turns import Turn
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire, beginning

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
MOST_WORDS = 1 << 16
BACKOFF = 0.5
LONGEST_PAUSE = 30.0

pause = asyncio.sleep
"""How to wait before trying again; tests do not."""


class Refusal(Struct, frozen=True, kw_only=True):
    """What a provider answered instead."""

    status: int
    body: bytes
    headers: Headers = ()

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.body.decode("utf-8", "replace").strip().removeprefix("data:")

    @property
    def words(self) -> str:
        """What of it is for people, wherever the provider keeps that."""
        text = self.text
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return text[:500]
        said = said[0] if isinstance(said, list) and said else said
        for key in ("error", "detail", "message"):
            said = said.get(key, said) if isinstance(said, dict) else said
        vague = not isinstance(said, str) or "metadata" in text
        return text[:500] if vague else said

    def __str__(self) -> str:
        return f"{self.status}: {self.words}"


Adopt = Callable[[healing.Plan, str], Awaitable[None]]


class Sending:
    """One exchange's worth of sending."""

    def __init__(
        self, endpoint: Endpoint, terms: Terms, *, wire: Wire, clock: Clock, record: Record
    ) -> None:
        self.endpoint = endpoint
        self.terms = terms
        self.reader: Reader | None = None  # of the response under way
        self.fold: Fold | None = None  # what was sent last
        self._wire = wire
        self._clock = clock
        self._record = record
        self._shown = False
        self._accepted: Callable[[], Awaitable[None]] | None = None  # to be told, once

    async def send(self, turns: Sequence[Turn], adopt: Adopt) -> Refusal | None:
        """Send what is folded from these turns and read the answer; None when there was one.

        `adopt` is told which plan was accepted, and why it was needed, before the answer is read.
        Raises `WireError` when the line breaks.
        """
        self.fold = fold(turns, self.terms)
        refusal = await self._try(self.fold.body)
        remedy = diagnose(refusal.status, refusal.body) if refusal else None
        if refusal is None or remedy is None:
            return refusal
        tried = {self.fold.body}
        plans = healing.plans(
            turns,
            self.fold,
            self.terms,
            remedy=remedy,
            words=refusal.text,
            probe=self._probe,
        )
        async with aclosing(plans):
            async for plan in plans:
                again = fold(healing.bar(turns, plan.barred), plan.terms)
                if again.body not in tried:
                    tried.add(again.body)
                    before, self.fold = self.fold, again
                    self._accepted = partial(adopt, plan, f"{remedy.value}: {refusal.words}")
                    if await self._try(again.body) is None:
                        return None
                    self.fold = before
        return refusal

    async def _try(self, body: bytes) -> Refusal | None:
        """Send until there is an answer, or a refusal that will not change."""
        left = self.endpoint.provider.retries
        while True:
            wait = BACKOFF * 2 ** (self.endpoint.provider.retries - left)
            try:
                refusal = await self._once(body)
            except WireError:
                if self._shown or left <= 0:
                    raise
            else:
                if refusal is None or refusal.status not in TRANSIENT or left <= 0:
                    return refusal
                wait = _asked(refusal.headers, wait)
            left -= 1
            self.reader = None
            self._record.forget()
            await pause(min(wait, LONGEST_PAUSE))

    async def _once(self, body: bytes) -> Refusal | None:
        sent = self._clock.mono()
        async with self._wire.send(self._outbound(body)) as inbound:
            if inbound.status != 200:
                return await _refusal(inbound)
            accepted, self._accepted = self._accepted, None
            if accepted is not None:
                await accepted()
            reader = self.reader = self.endpoint.dialect.reader(
                stream="application/json" not in _header(inbound.headers, "content-type"),
                clock=self._clock,
                origin=self.terms.target.origin,
                sent=sent,
            )
            try:
                async for chunk in inbound.chunks():
                    self._tell(reader.feed(chunk))
            except WireError:
                if not reader.done:  # else everything was said, and the line broke after it
                    raise
        return None

    def _tell(self, happenings: Sequence[Happening]) -> None:
        if happenings:
            self._shown = True
            self._record.take(happenings)

    async def _probe(self, body: bytes) -> bool | None:
        """Whether a request would be accepted: hang up as soon as that is known."""
        try:
            async with self._wire.send(self._outbound(body)) as inbound:
                if inbound.status == 200:
                    return True
                refusal = await _refusal(inbound)
        except WireError:
            return None
        return False if diagnose(refusal.status, refusal.body) else None

    def _outbound(self, body: bytes) -> Outbound:
        return Outbound(
            method="POST", url=self.endpoint.url, headers=self.endpoint.headers, body=body
        )


async def _refusal(inbound: Inbound) -> Refusal:
    body = await beginning(inbound, MOST_WORDS)
    return Refusal(status=inbound.status, body=body, headers=inbound.headers)


def _header(headers: Headers, name: str) -> str:
    return next((value for key, value in headers if key.lower() == name), "")


def _asked(headers: Headers, otherwise: float) -> float:
    """The seconds a provider asks to wait."""
    try:
        return max(0.0, float(_header(headers, "retry-after")))
    except ValueError:
        return otherwise
