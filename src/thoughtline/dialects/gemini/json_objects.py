"""Splits a streamed array into its JSON objects, in any chunking.

Each byte is looked at once: an object in very many pieces does not cost more than
an object in one.
"""

import re

import msgspec

from thoughtline.dialects.limits import (
    CHECKED_SIZE,
    MAX_EVENT_SIZE,
    TooComplex,
    check_event,
    check_event_count,
)

_REST = rb'[^"\\]*+(?:\\.[^"\\]*+)*+"'
"""What is left of a string, from anywhere inside of it."""
_OUTSIDE = rb'[^"{}]*+(?:"' + _REST + rb'[^"{}]*+)*+'
_rest = re.compile(_REST, re.DOTALL).match
_outside = re.compile(_OUTSIDE, re.DOTALL).match
_brace = re.compile(_OUTSIDE + rb"([{}])", re.DOTALL).match
_check = msgspec.json.Decoder(msgspec.Raw).decode

MAX_SLICE = 4 << 20
"""Bytes that are looked at in one go: Python's other threads wait meanwhile."""


class JsonObjects:
    """Finds the objects of a stream.

    Brackets, commas and space between the objects do not matter; a single object is a stream of
    one. Objects whose last brace begins or ends a line are found at once and checked; otherwise
    braces are counted, and those inside strings do not count.
    """

    __slots__ = ("_depth", "_escaped", "_inside", "_marks", "_max_size", "_open")

    def __init__(self, max_size: int = MAX_EVENT_SIZE) -> None:
        self._max_size = max_size  # bytes of an object
        self._open = bytearray()  # what has come of an object that is not complete
        self._depth = 0
        self._inside = False  # of a string, at the end of what has come
        self._escaped = False  # and behind a backslash
        self._marks = [b"\n}", b"}\n", b"}\r"]

    def feed(self, data: bytes) -> list[bytes]:
        """Return the objects completed by these bytes. Raises `TooComplex`."""
        if len(data) > MAX_SLICE:
            slices = [data[at : at + MAX_SLICE] for at in range(0, len(data), MAX_SLICE)]
            return [one for piece in slices for one in self.feed(piece)]
        if len(data) > CHECKED_SIZE:
            check_event(data, self._max_size)
        check_event_count(data.count(b"{") // 8, len(data))
        found: list[bytes] = []
        at = start = 0
        while at < len(data):
            if not self._depth:
                start = data.find(b"{", at)
                if start < 0:
                    return found
                if end := self._end(data, start):
                    found.append(data[start:end])
                    at = end
                    continue
                at, self._depth = start + 1, 1
            at = self._next_brace(data, at)
            if not self._depth:
                found.append(self._whole(data[start:at]))
        if self._depth:
            self._open += data[start:]
            if len(self._open) > self._max_size:
                raise TooComplex(f"an object is larger than {self._max_size} bytes")
        return found

    def _whole(self, end: bytes) -> bytes:
        """Return the object that ends with these bytes."""
        if not self._open:
            return end
        self._open += end
        whole, self._open = bytes(self._open), bytearray()
        if len(whole) > CHECKED_SIZE:
            check_event(whole, self._max_size)
        return whole

    def _next_brace(self, data: bytes, at: int) -> int:
        """Count the next brace, and return where it ends; the end of the data: there is none."""
        if self._inside:
            match = _rest(data, at + 1 if self._escaped else at)
            if match is None:
                return self._in_string(data, at)
            self._inside = self._escaped = False
            at = match.end()
        match = _brace(data, at)
        if match is None:
            skipped = _outside(data, at)
            at = skipped.end() if skipped is not None else at
            return self._in_string(data, at + 1) if at < len(data) else at
        self._depth += 1 if match[1] == b"{" else -1
        return match.end()

    def _in_string(self, data: bytes, at: int) -> int:
        """Note that the data ends inside of a string, which goes on here."""
        text = data[at + 1 if self._escaped else at :]
        self._escaped = bool((len(text) - len(text.rstrip(b"\\"))) % 2)
        self._inside = True
        return len(data)

    def _end(self, data: bytes, start: int) -> int:
        """Return where the object ends, if a line begins or ends with its brace; else 0."""
        for mark in self._marks:
            place = data.find(mark, start)
            if place > 0:
                end = place + mark.index(b"}") + 1
                try:
                    _check(data[start:end])
                except (msgspec.MsgspecError, RecursionError):
                    continue
                if mark is not self._marks[0]:  # the next one will end like this one
                    self._marks = [mark, *(other for other in self._marks if other is not mark)]
                return end
        return 0
