"""JSON objects one after another, split on bytes: what a streamed array is made of.

Feeding a body whole, byte by byte or in any split gives the same objects; brackets, commas and
space between them do not matter. A single object is a stream of one. The usual cases, objects whose
last brace begins or ends a line, are found at once and checked; otherwise braces are counted, and
those inside strings do not count.
"""

import re

import msgspec

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_BRACE = re.compile(rb'[^"{}]*(?:' + _STRING + rb'[^"{}]*)*([{}])', re.DOTALL)
_check = msgspec.json.Decoder(msgspec.Raw).decode


class Objects:
    """An incremental splitter of one body."""

    __slots__ = ("_at", "_depth", "_marks", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0  # read so far, in the joined pieces; an open object begins at 0
        self._depth = 0
        self._marks = [b"\n}", b"}\n", b"}\r"]

    def feed(self, data: bytes) -> list[bytes]:
        """The objects completed by these bytes."""
        self._pieces.append(data)
        if b"}" not in data:  # nothing can end here: a long string costs no second look
            return []
        buffer = b"".join(self._pieces)
        at, depth, start = self._at, self._depth, 0
        found: list[bytes] = []
        while True:
            if not depth:
                start = buffer.find(b"{", at)
                if start < 0:
                    at = start = len(buffer)
                    break
                at, depth = start + 1, 1
                if end := self._end(buffer, start):
                    found.append(buffer[start:end])
                    at, depth = end, 0
                    continue
            match = _BRACE.match(buffer, at)
            if match is None:
                break
            at = match.end()
            depth += 1 if match[1] == b"{" else -1
            if not depth:
                found.append(buffer[start:at])
        self._pieces = [buffer[start:]]
        self._at, self._depth = at - start, depth
        return found

    def _end(self, buffer: bytes, start: int) -> int:
        """Where the object ends, if it ends as they usually do: a line begins or ends with it."""
        for mark in self._marks:
            place = buffer.find(mark, start)
            if place > 0:
                end = place + mark.index(b"}") + 1
                try:
                    _check(buffer[start:end])
                except (msgspec.MsgspecError, RecursionError):
                    continue
                if mark is not self._marks[0]:  # the next one will end like this one
                    self._marks = [mark, *(other for other in self._marks if other is not mark)]
                return end
        return 0
