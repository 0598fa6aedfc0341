"""Server-sent events, split on bytes.

Lines end in CR, LF or CRLF and in nothing else: U+2028 inside JSON is not a line end. Feeding a
stream whole, byte by byte or in any split gives the same events. The usual cases, one `data:` line
per event with LF, alone or after an `event:` line, take fast paths that split whole reads at once.
"""

from msgspec import Struct


class Sse(Struct, frozen=True, gc=False):
    """One event: its name (empty when not given) and its data."""

    name: str
    data: bytes


class Splitter:
    """An incremental parser of one stream."""

    __slots__ = ("_cr", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # joined only at a line end: a long event costs no copies
        self._cr = False  # the last byte fed was a CR: an LF after it belongs to it

    def feed(self, data: bytes) -> list[Sse]:
        """The events completed by these bytes."""
        if self._cr or b"\r" in data:
            data = self._unify(data)
        self._pieces.append(data)
        if b"\n" not in data:
            return []
        blocks = b"".join(self._pieces).split(b"\n\n")
        self._pieces = [blocks.pop()]
        return [event for block in blocks if (event := _event(block)) is not None]

    def finish(self) -> list[Sse]:
        """What a stream that was cut without its last blank line leaves behind."""
        event = _event(b"".join(self._pieces))
        self._pieces = []
        return [event] if event is not None else []

    def _unify(self, data: bytes) -> bytes:
        if self._cr and data[:1] == b"\n":
            data = data[1:]
            self._cr = False
        if data:
            self._cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _event(block: bytes) -> Sse | None:
    """One event from its lines; None for comments and blank lines."""
    if block[:6] == b"data: " and b"\n" not in block:
        return Sse("", block[6:])
    if block[:7] == b"event: " and block.count(b"\n") == 1:
        head, _, tail = block.partition(b"\ndata: ")
        if tail:
            return Sse(str(head[7:], "utf-8", "replace"), tail)
    name = ""
    data: list[bytes] = []
    for line in block.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        field, colon, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event" and colon:
            name = value.decode("utf-8", "replace")
    return Sse(name, b"\n".join(data)) if data else None
