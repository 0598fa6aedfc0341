"""Where things stand in a JSON text, and how to change a few of them without touching the rest.

A client's body stays the client's own: what is not edited keeps its bytes, spacing, key order and
number spelling, which is what prompt caches and prefix-bound signatures hang on. Values are read
with msgspec; spans come from the lengths of its raw slices, so nothing is scanned twice in Python.
What cannot be read without doubt (malformed, duplicate keys) is `Unreadable`: pass it on as it is.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from thoughtline.errors import Unreadable


class Span(NamedTuple):
    """One member or element: `start` is where its key (or value) begins, `end` is behind it."""

    start: int
    value: int
    end: int


Edit = tuple[int, int, bytes]
"""Replace data[start:end] by these bytes."""

_any = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_KEY = re.compile(rb'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_GAP = re.compile(rb"[\s,]*")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)


def _whole(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return b"\\ufffd" if len(found) == 6 and found[2:3] in b"dD" else found


def mask(data: bytes) -> bytes:
    """Half an emoji (a lone surrogate escape) becomes U+FFFD, byte for byte in length.

    JSON writers of some languages emit them; msgspec refuses them. Offsets stay the same.
    """
    return _ESCAPE.sub(_whole, data)


def _attempt(decode: Callable[[Any], Any], data: bytes) -> Any:
    try:
        return decode(data)
    except msgspec.MsgspecError as error:
        if b"\\u" not in data:
            raise Unreadable(f"not valid JSON: {error}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"not readable JSON: {error}") from None
    try:
        return decode(mask(data))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"not valid JSON: {error}") from None


def loads(data: bytes) -> Any:
    """Any JSON value; lone surrogates are read as U+FFFD. Raises `Unreadable`."""
    return _attempt(_any.decode, data)


def dumps(value: Any) -> bytes:
    """Compact JSON."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError) as error:
        raise Unreadable(f"not writable as JSON: {error}") from None


def members(data: bytes, span: Span | None = None) -> dict[str, Span]:
    """Spans of an object's members. Raises `Unreadable` for anything but a plain object."""
    start, end = (span.value, span.end) if span else (0, len(data))
    piece = data[start:end] if span else data
    raws: dict[str, msgspec.Raw] = _attempt(_object.decode, piece)
    found: dict[str, Span] = {}
    position = piece.index(b"{") + 1
    for key, raw in raws.items():
        match = _KEY.match(piece, position)
        if match is None or _attempt(_any.decode, match[1]) != key:
            raise Unreadable(f"duplicate key near byte {start + position}")
        value = match.end()
        position = value + memoryview(raw).nbytes
        found[key] = Span(start + match.start(1), start + value, start + position)
    if piece[position:].strip() != b"}":
        raise Unreadable(f"duplicate key near byte {start + position}")
    return found


def elements(data: bytes, span: Span) -> list[Span]:
    """Spans of an array's elements. Raises `Unreadable` for anything but an array."""
    piece = data[span.value : span.end]
    raws: list[msgspec.Raw] = _attempt(_array.decode, piece)
    found: list[Span] = []
    position = span.value + 1
    for raw in raws:
        position = _GAP.match(data, position).end()  # type: ignore[union-attr]
        end = position + memoryview(raw).nbytes
        found.append(Span(position, position, end))
        position = end
    return found


def put(span: Span, key: str, raw: bytes, has: dict[str, Span]) -> Edit:
    """Set one member of the object at `span` to a raw JSON value, where it stands or last."""
    if old := has.get(key):
        return (old.value, old.end, raw)
    comma = b"," if has else b""
    close = span.end - 1
    return (close, close, comma + dumps(key) + b":" + raw)


def cut(spans: Iterable[Span], all_spans: Iterable[Span]) -> list[Edit]:
    """Remove members or elements, with the commas that held them."""
    gone = {span.start for span in spans}
    order = sorted(all_spans)
    edits: list[Edit] = []
    kept_before: Span | None = None
    for index, span in enumerate(order):
        if span.start not in gone:
            kept_before = span
        elif index + 1 < len(order) and kept_before is None:
            edits.append((span.start, order[index + 1].start, b""))
        elif kept_before is None:
            edits.append((span.start, span.end, b""))
        else:
            edits.append((order[index - 1].end, span.end, b""))
    return edits


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with all edits made; no edits give back the very same object."""
    pieces: list[bytes] = []
    position = 0
    for start, end, replacement in sorted(edits, key=lambda edit: (edit[0], edit[1])):
        if start < position:
            raise ValueError(f"edits overlap at byte {start}")
        pieces += [data[position:start], replacement]
        position = end
    if not pieces:
        return data
    pieces.append(data[position:])
    return b"".join(pieces)
