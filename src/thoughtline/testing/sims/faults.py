"""What can go wrong on the way: server errors, rate limits, streams that stall, break or lie.

A fault is asked for with the request header `x-sim-fault`, or with `Simulator.fail_next`:
`500`, `429` (any status works), `stall[:n]`, `cut[:n]` and `garbage[:n]`, where n is the number of
chunks that still arrive (half of them when not said). `Pace` says how a socket gives out the
chunks: their size and the time between them.
"""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.testing.sims.values import SSE_TYPE, Reply

HEADER = "x-sim-fault"

# Cut off in the middle of a JSON string, with a byte that is not UTF-8.
_GARBAGE = b'data: {"id":"\xff\xfe'

_REASONS = {
    429: "Rate limit reached for requests. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
}


class Fault(NamedTuple):
    """One thing that goes wrong."""

    kind: str
    """`status`, `stall`, `cut` or `garbage`."""
    number: int | None = None
    """The status, or how many chunks arrive first."""
    words: str = ""
    """What an error says; empty: what is usual for the status."""

    @classmethod
    def parse(cls, text: str) -> Fault | None:
        """Read `500`, `cut`, `cut:3`, …; None for what is not a fault."""
        kind, _, number = text.strip().lower().partition(":")
        if number and not (number.isascii() and number.isdigit()):
            return None
        if kind in ("stall", "cut", "garbage"):
            return cls(kind, int(number[:9]) if number else None)
        if len(kind) == 3 and kind.isascii() and kind.isdigit() and 400 <= int(kind) <= 599:
            return cls("status", int(kind))
        return None

    @property
    def status(self) -> int | None:
        """The status to answer with instead of an answer, if that is the fault."""
        return self.number if self.kind == "status" else None

    @property
    def message(self) -> str:
        """What the error says."""
        return self.words or _REASONS.get(self.number or 0, "The request failed.")

    def spoil(self, reply: Reply) -> Reply:
        """Break a good reply; error statuses are answered before there is one."""
        if self.kind == "status":
            return reply
        chunks = reply.chunks
        if len(chunks) == 1:  # a JSON body breaks in its middle too
            middle = len(chunks[0]) // 2
            chunks = (chunks[0][:middle], chunks[0][middle:])
        count = len(chunks) // 2 if self.number is None else self.number
        head, tail = chunks[:count], chunks[count:]
        if self.kind == "garbage":
            streamed = reply.headers.get("content-type") == SSE_TYPE
            noise = _GARBAGE + b"\n\n" if streamed else _GARBAGE
            return Reply(status=reply.status, headers=reply.headers, chunks=(*head, noise, *tail))
        ending = "cut" if self.kind == "cut" else "stall"
        return Reply(
            status=reply.status,
            headers=reply.headers,
            chunks=head,
            ending=ending,  # type: ignore[arg-type]
        )


class Pace(NamedTuple):
    """How a socket gives out the chunks of a reply."""

    delay: float = 0.0
    """Seconds between two writes."""
    split: int | None = None
    """Bytes per write: None one event each, 0 everything at once, n pieces of n bytes."""

    def pieces(self, chunks: tuple[bytes, ...]) -> list[bytes]:
        """What to write, in order."""
        if self.split is None:
            return list(chunks)
        whole = b"".join(chunks)
        if self.split <= 0:
            return [whole] if whole else []
        return [whole[at : at + self.split] for at in range(0, len(whole), self.split)]
