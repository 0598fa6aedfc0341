"""Server-sent events, split on bytes.

Lines end in CR, LF or CRLF and in nothing else: U+2028 inside JSON is not a line end. Feeding a
stream whole, byte by byte or in any split gives the same events. The usual cases, one `data:` line
per event with LF, alone or after an `event:` line, take fast paths that split whole reads at once.
"""

from msgspec import Struct

from thoughtline.dialects.limits import CHECKED_SIZE, check_event, check_event_count

_CR, _LF = b"\r\n"  # as numbers: looking for one of those in bytes is a memchr


class SseEvent(Struct, frozen=True, gc=False):
    """One event: its name (empty when it has none) and its data."""

    name: str
    data: bytes


class SseParser:
    """An incremental parser of one stream."""

    __slots__ = ("_cr", "_lf", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # joined only at the end of an event, whatever its size
        self._cr = False  # the last byte fed was a CR: an LF after it belongs to it
        self._lf = False  # the last byte held is an LF: another one ends the event

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events completed by these bytes."""
        return [event for block in self._blocks(data) if (event := _event(block)) is not None]

    def feed_data(self, data: bytes) -> list[bytes]:
        """Return only the data of each event, for dialects that do not name their events."""
        end = len(data) - 2
        alone = data[:6] == b"data: " and data.find(b"\n") == end and data[-1] == _LF
        if alone and not self._pieces and not self._cr and _CR not in data:
            return [data[6:end]]
        found: list[bytes] = []
        for block in self._blocks(data):
            if block[:6] == b"data: " and _LF not in block:
                found.append(block[6:])
            elif (event := _event(block)) is not None:
                found.append(event.data)
        return found

    def finish(self) -> list[SseEvent]:
        """Return the event that a stream was cut in: its last blank line is missing."""
        event = _event(b"".join(self._pieces))
        self._pieces, self._cr, self._lf = [], False, False
        return [event] if event is not None else []

    def _blocks(self, data: bytes) -> list[bytes]:
        """Return the lines of each event that is complete now, LF between them."""
        if len(data) > CHECKED_SIZE:
            check_event(data)
        if self._cr or _CR in data:
            data = self._unify(data)
        end = data.find(b"\n\n")
        if end < 0 and not (self._lf and data[:1] == b"\n"):
            if data:
                self._pieces.append(data)
                self._lf = data[-1] == _LF
            return []
        if self._pieces:
            data = b"".join([*self._pieces, data])
            self._pieces = []
            if len(data) > CHECKED_SIZE:
                check_event(data)
        elif end == len(data) - 2:
            return [data[:end]]
        blocks = data.split(b"\n\n")
        check_event_count(len(blocks), len(data))
        if last := blocks.pop():
            self._pieces.append(last)
        self._lf = last[-1:] == b"\n"
        return blocks

    def _unify(self, data: bytes) -> bytes:
        """Return the data with all line ends as LF."""
        if not data:
            return data
        split = self._cr and data[:1] == b"\n"
        self._cr = data[-1:] == b"\r"
        lines = data[split:].split(b"\r\n")  # replacing two bytes by one takes half again as long
        return b"\n".join(lines).replace(b"\r", b"\n")


def _event(block: bytes) -> SseEvent | None:
    """Parse one event from its lines; None for comments and blank lines."""
    if block[:6] == b"data: " and _LF not in block:
        return SseEvent("", block[6:])
    if block[:7] == b"event: " and block.count(b"\n") == 1:
        head, _, tail = block.partition(b"\ndata: ")
        if tail:
            return SseEvent(str(head[7:], "utf-8", "replace"), tail)
    name = ""
    data: list[bytes] = []
    for line in block.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return SseEvent(name, b"\n".join(data)) if data else None
