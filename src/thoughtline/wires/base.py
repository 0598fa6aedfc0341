"""The port: a wire takes one request to an upstream and gives back the bytes as they come.

It knows nothing of dialects or thoughts. Status and headers are there as soon as the upstream sent
them; the body is pulled chunk by chunk, so that a slow reader slows the upstream. Leaving the
`async with` block, in whatever way, lets go of the upstream at once.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

Headers = Sequence[tuple[str, str]]
"""Names and values in order; a name may come twice. An upstream's own are in lower case."""


class Patience(Struct, frozen=True, kw_only=True):
    """How long an upstream may take, in seconds."""

    connect: float = 10.0
    first_byte: float = 600.0  # to send its response's headers
    idle: float = 300.0  # between two pieces of the body


class Outbound(Struct, frozen=True, kw_only=True):
    """One request, ready to go."""

    method: str
    url: str
    headers: Headers
    body: bytes = b""
    patience: Patience | None = None  # None: as the wire has it


class Inbound(Protocol):
    """One response, as far as it has come."""

    status: int
    headers: Headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `WireError` when it breaks off or stalls.

        Asked again, it goes on from where it was left.
        """


class Wire(Protocol):
    """Moves bytes to an upstream."""

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        """Send; the response's status and headers are there on entering. Raises `WireError`."""

    async def close(self) -> None:
        """Let go of all connections."""


async def beginning(inbound: Inbound, limit: int) -> bytes:
    """The body up to the chunk that reaches this many bytes; what is left can still be read."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in inbound.chunks():
        pieces.append(chunk)
        size += len(chunk)
        if size >= limit:
            break
    return b"".join(pieces)
