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

import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.parts import Blob, Call, Part, Result, Text, Thought
from thoughtline.turns import Turn

SIZE = 16
"""Bytes of a key."""
SHARED = 4
"""So many of them are those of the output alone: what is looked up together is filed together."""


class Keys(Struct, frozen=True, gc=False):
    """The three names of a turn, strongest first."""

    chain: bytes
    near: bytes
    alone: bytes


def _number(text: str) -> int | float | str:
    """A number as JavaScript would read it: every one is a float, and whole ones have no point."""
    value = float(text)
    if value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value if isfinite(value) else text


_arguments = msgspec.json.Decoder(float_hook=_number)
_sorted = msgspec.json.Encoder(order="sorted")
_ZEROS, _LONG = bytes.maketrans(b"123456789", b"000000000"), b"0" * 16


def arguments(text: str) -> bytes:
    """Canonical JSON of a call's arguments: key order and number spelling do not count."""
    try:
        data = text.encode()
        if _LONG not in data.translate(_ZEROS):  # numbers that a float can hold
            value = _arguments.decode(data or b"null")
            return b"{}" if value is None else _sorted.encode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # the lenient way below
    try:
        value = _lenient(text) if text.strip() else None
        return b"{}" if value is None else _bytes(canonical(value))
    except (ValueError, RecursionError):
        return _bytes(text.strip())


def _lenient(text: str) -> Any:
    """JSON with half an emoji or a bare line break in it, or with numbers too long for a float."""
    return json.loads(text, parse_float=_number, parse_int=_number, strict=False)


_INLINE = re.compile(
    r"<(think|thinking|thinking-content-[0-9a-f]+)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE
)
_SPACE = re.compile(r"\s*")

_WHITE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace()) + "\ufeff"


def trimmed(text: str) -> str:
    """Text without outer whitespace: what Python takes for it, and what JavaScript does."""
    return text.strip(_WHITE) if "\ufeff" in text else text.strip()


def spoken(text: str) -> str:
    """An assistant's text without a thought that some clients keep in front of it, or inside."""
    text = trimmed(text)
    if "<" not in text:  # mostly there is none
        return text
    start = 0
    while match := _INLINE.match(text, start):
        start = match.end()
    text = trimmed(text[start:]) if start else text
    return _without(text) if "</think>" in text else text


def _without(text: str) -> str:
    """Words without the thoughts between them; whitespace around a thought is its own."""
    said: list[str] = []
    start = 0
    while (at := text.find("<think>", start)) >= 0 and (end := text.find("</think>", at)) >= 0:
        said.append(text[start:at].rstrip())
        start = _SPACE.match(text, end + len("</think>")).end()  # type: ignore[union-attr]
    return "".join([*said, text[start:]])


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half an emoji
        return text.encode("utf-8", "surrogatepass")


def _join(tag: bytes, pieces: Iterable[bytes]) -> bytes:
    out = [tag]
    for piece in pieces:
        out.append(b"%d:" % len(piece))
        out.append(piece)
    return b"".join(out)


def visible(parts: Sequence[Part], *, heard: bool = False) -> bytes:
    """What every client sends back of one side of a turn, in one canonical form.

    Of an input (`heard`) the text counts as it is; an output's may have a thought in front.
    """
    if len(parts) == 2 and type(parts[0]) is Thought:
        parts = parts[1:]
    if len(parts) == 1 and type(parts[0]) is Text:
        return _words(parts[0].text, heard=heard)
    calls: list[bytes] = []
    results: list[bytes] = []
    blobs: list[bytes] = []
    texts: list[str] = []
    for part in parts:
        kind = type(part)
        if kind is Text:
            texts.append(part.text)  # type: ignore[union-attr]
        elif kind is Call:
            calls += [_bytes(part.name), arguments(part.arguments)]  # type: ignore[union-attr]
        elif kind is Result:
            results.append(_bytes(trimmed(part.content)))  # type: ignore[union-attr]
        elif kind is Blob:
            blobs.append(_bytes(part.digest))  # type: ignore[union-attr]
    if calls:
        return _join(b"c", calls)
    text = "".join(texts)
    if not results and not blobs:
        return _words(text, heard=heard)
    if len(results) > 1:
        results = list(dict.fromkeys(results))  # some clients repeat them on resume
    said = _bytes(trimmed(text) if heard else spoken(text))
    return _join(b"v", [said, *results, b"|", *blobs])


def _words(text: str, *, heard: bool) -> bytes:
    """The usual case, spelled out."""
    said = _bytes(trimmed(text) if heard else spoken(text))
    return b"v%d:%b1:|" % (len(said), said)


# A copy is there in half the time that making one takes.
_fresh = blake2b(digest_size=SIZE).copy
_chain = blake2b(b"chain", digest_size=SIZE).copy
_near = blake2b(b"near", digest_size=SIZE).copy


def _hash(data: bytes, begun: Callable[[], Any] = _fresh) -> bytes:
    made = begun()
    made.update(data)
    digest: bytes = made.digest()
    return digest


_NOTHING = _hash(visible(()))
_START = bytes(SIZE)


class Trail:
    """Keys along a path, each turn in time proportional to that turn alone."""

    __slots__ = ("_before", "_input", "_last")

    def __init__(self) -> None:
        self._before = _START  # chain up to and including the last output
        self._last = _START  # the last output
        self._input = _NOTHING  # what was said since

    def __copy__(self) -> "Trail":
        made = Trail()
        made._before, made._last, made._input = self._before, self._last, self._input
        return made

    def hear(self, parts: Sequence[Part]) -> None:
        """Take in the input of the next turn."""
        self._input = _hash(visible(parts, heard=True))

    def keys(self, parts: Sequence[Part]) -> Keys:
        """The keys of that turn if this is its output; nothing is taken in."""
        said = _hash(visible(parts))
        shared = said[:SHARED]
        here = self._input + said
        chain = shared + _hash(self._before + here, _chain)[SHARED:]
        near = shared + _hash(self._last + here, _near)[SHARED:]
        return Keys(chain, near, said)

    def speak(self, parts: Sequence[Part]) -> Keys:
        """Take in its output: the turn's keys."""
        made = self.keys(parts)
        self._before, self._last, self._input = made.chain, made.alone, _NOTHING
        return made


def trail(turns: Iterable[Turn]) -> tuple[list[Keys | None], Trail]:
    """Keys of every turn with an output (None for one without), and where the trail stands.

    A turn without an output that is not the last one was answered with nothing visible. What
    was heard in it stays in the chain all the same.
    """
    path = Trail()
    keys: list[Keys | None] = []
    silent = False
    for turn in turns:
        if silent:
            path.speak(())
        path.hear(turn.input)
        silent = not turn.output
        keys.append(None if silent else path.speak(turn.output))
    return keys, path


def ref(kind: str, value: str) -> bytes:
    """The key of something a client may name by id: an item or a response."""
    return _hash(_join(b"ref" + _bytes(kind), [_bytes(value)]))


def seal(value: str) -> str:
    """The digest under which an opaque value is known, without keeping a second copy of it."""
    return _hash(_bytes(value)).hex()


def sealed(digest: str) -> bytes:
    """The look-up key of a seal's digest."""
    return _hash(b"seal" + bytes.fromhex(digest))


def canonical(value: Any) -> str:
    """Any JSON value in one spelling: sorted keys, no spaces. Too deep: `RecursionError`."""
    try:
        return _sorted.encode(value).decode()
    except UnicodeEncodeError:  # half an emoji
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """A digest of any JSON value, blind to formatting and key order."""
    return seal(canonical(value))
