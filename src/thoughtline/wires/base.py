"""The port: a wire takes one request to an upstream and gives back the bytes as they come.

A wire knows nothing of thoughts. Status and headers are there as soon as the upstream sent them;
the body is pulled chunk by chunk, so that a slow reader slows the upstream. Leaving the
`async with` block, in whatever way, releases the upstream at once.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

Headers = Sequence[tuple[str, str]]
"""Names and values in order; a name may come twice. Those of a response are in lower case."""


class WireTimeouts(Struct, frozen=True, kw_only=True):
    """How long an upstream may take, in seconds."""

    connect: float = 10.0
    first_byte: float = 600.0  # until the response's headers are there
    idle: float = 300.0  # between two chunks of the body


class Outbound(Struct, frozen=True, kw_only=True):
    """One request, ready to be sent."""

    method: str
    url: str
    headers: Headers
    body: bytes = b""
    timeouts: WireTimeouts | None = None  # None: the wire's own


class Inbound(Protocol):
    """One response, as far as it has arrived."""

    status: int

    @property
    def headers(self) -> Headers:
        """The names, in lower case, and the values."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `WireError` when it breaks off or stalls.

        A second call continues where the first one was left.
        """


class Wire(Protocol):
    """Moves bytes to an upstream."""

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        """Send; the response's status and headers are there on entering. Raises `WireError`."""

    async def close(self) -> None:
        """Close all connections."""


async def read_up_to(inbound: Inbound, limit: int) -> bytes:
    """The body up to the chunk that reaches the limit; the rest can still be read."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in inbound.chunks():
        pieces.append(chunk)
        size += len(chunk)
        if size >= limit:
            break
    return b"".join(pieces)


def with_appended(headers: Headers, more: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers with more values; a header that is there gets its value appended to its list."""
    left = dict(more)
    merged = [(name, _append(value, left.pop(name.lower(), ""))) for name, value in headers]
    return [*merged, *left.items()]


def _append(values: str, more: str) -> str:
    known = [value.strip() for value in values.split(",")]
    return values if not more or more in known else f"{values},{more}"
