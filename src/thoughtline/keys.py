"""How a turn is recognised when a client echoes it in altered form.

Clients strip thoughts, trim whitespace, re-serialise arguments, rewrite ids, turn strings into
parts, `null` into `""`, drop the text beside tool calls, split and merge messages. So a key is
a hash of what is *visible*: text, calls (name and canonical arguments) and results. No thoughts,
no ids, no cache markers, no system prompt; and where an output has calls, they alone count.

`visible` is the one canonical form, for capture and for look-up, for every dialect. A `Trail`
rolls it over a path once, in linear time, and gives each turn three keys: `chain` (the turn and
everything before it), `near` (the turn and its neighbours before) and `alone`. Values that a
client may echo by themselves (item ids, encrypted blobs) have keys of their own: `ref`, `seal`.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.parts import Blob, Call, Part, Result, Text
from thoughtline.turns import Turn

SIZE = 16
"""Bytes of a key."""


class Keys(Struct, frozen=True):
    """The three names of a turn, strongest first."""

    chain: bytes
    near: bytes
    alone: bytes


def _number(text: str) -> int | float | str:
    value = float(text)
    if value.is_integer() and abs(value) < 1e22:
        return int(value)
    return value if isfinite(value) else text


_arguments = msgspec.json.Decoder(float_hook=_number)
_sorted = msgspec.json.Encoder(order="sorted")


def arguments(text: str) -> bytes:
    """Canonical JSON of a call's arguments: key order and number spelling do not count."""
    try:
        return _sorted.encode(_arguments.decode(text)) if text.strip() else b"{}"
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text.strip().encode("utf-8", "surrogatepass")


_INLINE = re.compile(
    r"\s*<(think|thinking|thinking-content-[0-9a-f]+)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE
)


def spoken(text: str) -> str:
    """An assistant's text without a thought that some clients keep in front of it."""
    text = text.strip()
    while text.startswith("<think"):
        match = _INLINE.match(text)
        if match is None:
            break
        text = text[match.end() :].strip()
    return text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _join(tag: bytes, pieces: Iterable[bytes]) -> bytes:
    out = [tag]
    for piece in pieces:
        out.append(b"%d:" % len(piece))
        out.append(piece)
    return b"".join(out)


def visible(parts: Iterable[Part]) -> bytes:
    """What every client sends back of one side of a turn, in one canonical form."""
    calls: list[bytes] = []
    results: list[bytes] = []
    blobs: list[bytes] = []
    text = ""
    for part in parts:
        kind = type(part)
        if kind is Text:
            text += part.text  # type: ignore[union-attr]
        elif kind is Call:
            calls += [_bytes(part.name), arguments(part.arguments)]  # type: ignore[union-attr]
        elif kind is Result:
            answer = _bytes(part.content.strip())  # type: ignore[union-attr]
            if not results or results[-1] != answer:  # some clients repeat a result on resume
                results.append(answer)
        elif kind is Blob:
            blobs.append(_bytes(part.digest))  # type: ignore[union-attr]
    if calls:
        return _join(b"c", calls)
    spoke = spoken(text) if not results else text.strip()
    return _join(b"v", [_bytes(spoke), *results, b"|", *blobs])


def _hash(*pieces: bytes) -> bytes:
    return blake2b(b"".join(pieces), digest_size=SIZE).digest()


class Trail:
    """Keys along a path, each turn in time proportional to that turn alone."""

    __slots__ = ("_before", "_input", "_last")

    def __init__(self) -> None:
        self._before = bytes(SIZE)  # chain up to and including the last output
        self._last = bytes(SIZE)  # the last output
        self._input = _hash(visible(()))  # what was said since

    def hear(self, parts: Sequence[Part]) -> None:
        """Take in the input of the next turn."""
        self._input = _hash(visible(parts))

    def speak(self, parts: Sequence[Part]) -> Keys:
        """Take in its output: the turn's keys."""
        said = _hash(visible(parts))
        chain = _hash(b"chain", self._before, self._input, said)
        near = _hash(b"near", self._last, self._input, said)
        self._before, self._last, self._input = chain, said, _hash(visible(()))
        return Keys(chain, near, _hash(b"alone", said))


def trail(turns: Iterable[Turn]) -> tuple[list[Keys | None], Trail]:
    """Keys of every turn with an output (None for one without), and where the trail stands."""
    path = Trail()
    keys: list[Keys | None] = []
    for turn in turns:
        path.hear(turn.input)
        keys.append(path.speak(turn.output) if turn.output else None)
    return keys, path


def ref(kind: str, value: str) -> bytes:
    """The key of something a client may name by id: an item or a response."""
    return _hash(b"ref", _join(_bytes(kind), [_bytes(value)]))


def seal(value: str) -> str:
    """The digest under which an opaque value is known, without keeping a second copy of it."""
    return blake2b(_bytes(value), digest_size=SIZE).hexdigest()


def sealed(digest: str) -> bytes:
    """The look-up key of a seal's digest."""
    return _hash(b"seal", bytes.fromhex(digest))


def canonical(value: Any) -> str:
    """Any JSON value in one spelling: sorted keys, no spaces."""
    try:
        return _sorted.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):
        return repr(value)


def digest(value: Any) -> str:
    """A digest of any JSON value, blind to formatting and key order."""
    return blake2b(_bytes(canonical(value)), digest_size=SIZE).hexdigest()
