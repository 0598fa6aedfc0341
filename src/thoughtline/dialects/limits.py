"""Limits on what is read: how much memory and time the structure of a JSON text may cost.

A list of very many tiny elements takes far more memory as values than as text, and holds the event
loop while it is read. So the cost of a large text is estimated before it is decoded, from its
commas and brackets outside of strings, and the parts of a history are counted before they are made.
Letters beyond ASCII and escapes are counted, too: a string that has one takes up to four times its
size, and much longer to be decoded. What is beyond a limit is `TooComplex`: it passes on unread.
Small texts are not looked at.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from thoughtline.errors import Unreadable

CHECKED_SIZE = 64 << 10
"""Bytes up to which a text is read whatever it holds: it cannot cost more than `FREE_COST`."""
FREE_COST = 8 << 20
"""Bytes of memory that the values of a text may take whatever its size."""
MAX_COST = 64 << 20
"""Bytes of memory that they may take at most: decoding holds the interpreter all the while."""
COST_PER_BYTE = 7
"""Bytes of memory that they may take for each byte of the text."""
MAX_KEYS = 300_000
"""Members that the objects of a text may have in all, six for each part: a dict that grows holds
the interpreter ten times as long as a list."""
FREE_ANSWER_COST = 2 << 20
ANSWER_COST_PER_BYTE = 3
"""The same for answers."""
LETTERS_SIZE = 2 << 20
"""Bytes up to which the letters of a text are not looked at."""
FREE_PARTS = 10_000
"""Parts that a history may have whatever its size, if they are not tiny."""
MAX_PARTS = 50_000
BYTES_PER_PART = 64
"""Bytes of text that there must be for each part, where there are more than `FREE_PARTS`."""
TINY_PART = 16
"""Bytes of text that there must be for each part in any case."""
COUNTED_SIZE = 16 << 10
"""Bytes up to which the parts of a history are not counted."""
MAX_ANSWER_SIZE = 32 << 20
"""Bytes that an answer that is not streamed may have: more than any provider takes back of one, and
each copy of it holds the interpreter."""
MAX_SAID = 16 << 20
"""Letters of thoughts, texts and calls that an answer may have: no model says so much. Pictures
and files are no texts."""
MAX_ANSWER_PARTS = 10_000
"""Parts that an answer may have."""
MAX_EVENT_SIZE = 16 << 20
"""Bytes that one event of a stream may have: it is read on the event loop."""
FREE_EVENTS = 2_000
TINY_EVENT = 24
"""Bytes that the events of one piece must have on average, where there are more than these."""
HEAVY_SIZE = 1 << 20
"""Bytes from which a text is read beside the event loop in any case."""
HEAVY_MARKS = 4_000
"""Commas and brackets from which it is: a part costs up to 20 microseconds until it is decided."""
_COSTS = ((b"{", 232), (b"[", 72), (b",", 64))
"""Bytes of memory that come with an object, a list, and another value, roughly."""
_SLICE = 64 << 10  # other threads have their turn in between
_WIDE = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")
"""How a letter of more than 16 bits begins."""
_LISTS = ("content", "parts", "tool_calls", "summary", "output")
"""Members of messages and items whose elements become parts."""


class Letters(NamedTuple):
    """How many bytes of a text are in slices with such letters, and how many escapes it has."""

    beyond_ascii: int
    wide: int  # letters of more than 16 bits: each letter of that string takes 4 bytes
    escapes: int


NO_LETTERS = Letters(0, 0, 0)
MAX_LETTERS = Letters(24 << 20, 8 << 20, 8 << 20)
"""That a request, or a stream in all, may have: no model takes or says so much text. Pictures and
files are plain ASCII."""
MAX_ANSWER_LETTERS = Letters(4 << 20, 2 << 20, 1 << 20)
"""That an answer, or an event of a stream, may have: events are read on the event loop, and each
thought is kept twice, as it came and as it is read."""


class Marks(NamedTuple):
    """How many objects, lists and commas seem to be in a text."""

    objects: int
    lists: int
    commas: int

    @property
    def cost(self) -> int:
        """About the bytes of memory that its values take."""
        return sum(count * cost for count, (_, cost) in zip(self, _COSTS, strict=True))

    @property
    def parts(self) -> int:
        """At least as many as there are parts in it."""
        return self.objects + self.lists + self.commas


_last_marks: tuple[bytes, Marks] = (b"", Marks(0, 0, 0))


def marks(data: bytes) -> Marks:
    """Count what the values of a text cost.

    One body is asked about several times in a row, so the last answer is kept.
    """
    global _last_marks  # noqa: PLW0603 (one value, replaced as a whole)
    last = _last_marks
    if last[0] is not data:
        found = Marks(data.count(b"{"), data.count(b"["), data.count(b","))
        last = _last_marks = (data, found)
    return last[1]


def may_exceed(size: int, cost: int, parts: int) -> bool:
    """Whether a text of this size, with at most this cost and these parts, may be unreadable."""
    if size > CHECKED_SIZE and cost > _max_cost(size, FREE_COST, COST_PER_BYTE):
        return True
    return size > COUNTED_SIZE and parts > max_parts(size)


def _max_cost(size: int, free: int, per_byte: int) -> int:
    return min(MAX_COST, max(free, per_byte * size))


class TooComplex(Unreadable):
    """There are too many elements in a text for its size."""


def check_text(data: bytes, free: int = FREE_COST, per_byte: int = COST_PER_BYTE) -> None:
    """Raise `TooComplex` for a JSON text whose values would take too much memory."""
    if len(data) <= CHECKED_SIZE:
        return
    limit = _max_cost(len(data), free, per_byte)
    if len(data) <= HEAVY_SIZE and marks(data).cost <= limit:
        return  # the usual case
    if _cost(_slices(data), limit) > limit and _cost(_outside_strings(data), limit) > limit:
        raise TooComplex(
            f"{len(data)} bytes of JSON hold too many elements to be read; send fewer, or larger"
        )
    if data.count(b":") > MAX_KEYS and _keys(data) > MAX_KEYS:
        raise TooComplex(f"there are more than {MAX_KEYS} members in objects, too many to be read")


def check_letters(data: bytes, limits: Letters = MAX_LETTERS) -> None:
    """Raise `TooComplex` for a text whose strings would take too much memory, or too long."""
    if len(data) <= LETTERS_SIZE:
        return
    found = NO_LETTERS
    for piece in _slices(data):
        found = more_letters(found, piece, limits)


def more_letters(before: Letters, piece: bytes, limits: Letters = MAX_LETTERS) -> Letters:
    """Return the letters of a text with one more piece. Raises `TooComplex`, as `check_letters`."""
    escapes = piece.count(b"\\")
    if (plain := piece.isascii()) and not escapes:
        return before
    found = Letters(
        before.beyond_ascii + (0 if plain else len(piece)),
        before.wide + (len(piece) if _WIDE.search(piece) else 0),
        before.escapes + escapes,
    )
    if any(count > limit for count, limit in zip(found, limits, strict=True)):
        raise TooComplex("the text holds too much that is not plain ASCII to be read")
    return found


def check_answer(data: bytes) -> None:
    """Raise `TooComplex` for an answer that would take too much memory: some are decoded twice."""
    if len(data) <= CHECKED_SIZE:
        return
    if len(data) > MAX_ANSWER_SIZE:
        raise TooComplex(f"the answer is larger than {MAX_ANSWER_SIZE} bytes")
    check_text(data, FREE_ANSWER_COST, ANSWER_COST_PER_BYTE)
    check_letters(data, MAX_ANSWER_LETTERS)


def check_parts(history: Iterable[Any], size: int) -> int:
    """Raise `TooComplex` for a history with too many parts for its size; else return their number.

    Where the size is small they are not counted: 0.
    """
    if size <= COUNTED_SIZE:
        return 0
    limit = max_parts(size)
    count = 0
    for message in history:
        count += 1
        if isinstance(message, dict):
            for name in _LISTS:
                if isinstance(inner := message.get(name), list):
                    count += len(inner)
        if count > limit:
            raise too_many_parts(limit)
    return count


def max_parts(size: int) -> int:
    """How many parts a text of this size may have."""
    return min(MAX_PARTS, max(min(FREE_PARTS, size // TINY_PART), size // BYTES_PER_PART))


def is_heavy(data: bytes) -> bool:
    """Whether a text may take so long to be read that it is read beside the event loop."""
    if len(data) <= CHECKED_SIZE:
        return False
    if len(data) > HEAVY_SIZE:
        return True
    found = marks(data)
    return found.objects + found.lists + found.commas // 2 > HEAVY_MARKS


def too_many_parts(limit: int) -> TooComplex:
    """The error for something with more parts than this."""
    return TooComplex(f"there are more than {limit} parts, too many to be read")


def check_answer_parts(count: int) -> None:
    """Raise `TooComplex` for an answer with too many parts."""
    if count > MAX_ANSWER_PARTS:
        raise too_many_parts(MAX_ANSWER_PARTS)


def check_event(data: bytes, max_size: int = MAX_EVENT_SIZE) -> None:
    """Raise `TooComplex` for an event of a stream that would take too long, or too much memory."""
    if len(data) > max_size:
        raise TooComplex(f"an event is larger than {max_size} bytes")
    check_answer(data)


def check_event_count(count: int, size: int) -> None:
    """Raise `TooComplex` for very many tiny events in a piece of a stream."""
    if count > FREE_EVENTS and size < count * TINY_EVENT:
        raise TooComplex(f"there are {count} events in {size} bytes, too many to be read")


def _cost(pieces: Iterable[bytes], limit: int) -> int:
    """Estimate the memory that the values take; stops where it is more than the limit."""
    cost = 0
    for piece in pieces:
        for mark, each in _COSTS:
            cost += each * piece.count(mark)
        if cost > limit:
            break
    return cost


def _keys(data: bytes) -> int:
    """Count the members of all objects."""
    return sum(piece.count(b":") for piece in _outside_strings(data))


def _slices(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _SLICE] for at in range(0, len(data), _SLICE))


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield what of a JSON text is not inside of strings, slice by slice."""
    at, inside = 0, 0
    while at < len(data):
        end = at + _SLICE
        piece = data[at:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # do not cut an escape in two
            end += 1
            piece = data[at:end]
        between = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(between[inside::2])
        inside ^= (len(between) - 1) & 1
        at = end
