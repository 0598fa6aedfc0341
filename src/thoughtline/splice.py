"""Where things stand in a JSON text, and how to change a few of them without touching the rest.

A client's body stays the client's own: what is not edited keeps its bytes, spacing, key order and
number spelling, which is what prompt caches and prefix-bound signatures hang on. Values are read
with msgspec; spans come from the lengths of its raw slices, so nothing is scanned twice in Python.
What cannot be read without doubt (malformed, duplicate keys) is `Unreadable`: pass it on as it is.
"""

import re
from collections.abc import Callable, Iterable, KeysView, Mapping
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Unreadable


class Span(Struct, frozen=True, gc=False, order=True):
    """One member or element: `start` is where its key (or value) begins, `end` is behind it."""

    start: int
    value: int
    end: int


Edit = tuple[int, int, bytes]
"""Replace data[start:end] by these bytes."""

_WHERE = itemgetter(0, 1)

_any = msgspec.json.Decoder().decode
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_KEY = re.compile(rb'[\s,]*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL).match
_GAP = frozenset(b" ,\n\r\t")
"""What may stand before an element: a comma and space."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def _whole(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return b"\\ufffd" if len(found) == 6 and found[2:3] in b"dD" else found


def mask(data: bytes) -> bytes:
    """Half an emoji (a lone surrogate escape) becomes U+FFFD, byte for byte in length.

    JSON writers of some languages emit them; msgspec refuses them. Offsets stay the same.
    """
    return _ESCAPE.sub(_whole, data)


def _read(decode: Callable[[bytes], Any], data: bytes) -> tuple[Any, bytes]:
    """The value and the text it was read from: the given one, or the same with halves masked."""
    try:
        return decode(data), data
    except _UNREADABLE as error:
        if b"\\u" not in data or isinstance(error, RecursionError):
            raise Unreadable(f"not readable as JSON: {error}") from None
    masked = mask(data)
    try:
        return decode(masked), masked
    except _UNREADABLE as error:
        raise Unreadable(f"not readable as JSON: {error}") from None


def loads(data: bytes) -> Any:
    """Any JSON value; lone surrogates are read as U+FFFD. Raises `Unreadable`."""
    return _read(_any, data)[0]


def dumps(value: Any) -> bytes:
    """Compact JSON. Raises `Unreadable` for what JSON cannot hold."""
    try:
        return msgspec.json.encode(value)
    except (*_UNREADABLE, TypeError, OverflowError) as error:
        raise Unreadable(f"not writable as JSON: {error}") from None


def members(data: bytes, span: Span | None = None) -> dict[str, Span]:
    """Spans of an object's members. Raises `Unreadable` for anything but a plain object.

    Each value is compared with the text where it is said to stand. A dict forgets a duplicate key,
    so its values end before the text does or come out of step with it: so duplicates are noticed.
    """
    base = span.value if span else 0
    raws, piece = _read(_object, data[base : span.end] if span else data)
    found: dict[str, Span] = {}
    position = piece.index(b"{") + 1
    for key, raw in raws.items():
        match = _KEY(piece, position)
        if match is None or not piece.startswith(raw, value := match.end()):
            raise Unreadable(f"duplicate key near byte {base + position}")
        position = value + len(raw)
        found[key] = Span(base + match.start(1), base + value, base + position)
    if piece[position:].strip() != b"}":
        raise Unreadable(f"duplicate key near byte {base + position}")
    return found


def names(data: bytes) -> KeysView[str]:
    """The keys of an object, each once. Raises `Unreadable` for anything but an object."""
    raws: dict[str, msgspec.Raw] = _read(_object, data)[0]
    return raws.keys()


def elements(data: bytes, span: Span) -> list[Span]:
    """Spans of an array's elements. Raises `Unreadable` for anything but an array."""
    try:
        raws = _array(memoryview(data)[span.value : span.end])  # not copied: it may be all of it
    except _UNREADABLE:
        raws = _read(_array, data[span.value : span.end])[0]
    found: list[Span] = []
    position = data.index(b"[", span.value) + 1
    for raw in raws:
        start = position
        while data[start] in _GAP:
            start += 1
        position = start + len(raw)
        found.append(Span(start, start, position))
    return found


def put(span: Span, key: str, raw: bytes, has: Mapping[str, Span]) -> Edit:
    """Set one member of the object at `span` to a raw JSON value, where it stands or last.

    One edit by itself; `revise` makes several that fit together.
    """
    return revise(span, has, {key: raw})[0]


def revise(span: Span, has: Mapping[str, Span], changes: Mapping[str, bytes | None]) -> list[Edit]:
    """Set members of the object at `span` to raw JSON values; a value of None removes one."""
    gone = [has[key] for key, raw in changes.items() if raw is None and key in has]
    edits = cut(gone, has.values()) if gone else []
    others = len(has) > len(gone)
    close = span.end - 1
    for key, raw in changes.items():
        if raw is None:
            continue
        if old := has.get(key):
            edits.append((old.value, old.end, raw))
        else:
            edits.append((close, close, (b"," if others else b"") + dumps(key) + b":" + raw))
            others = True
    return edits


def cut(spans: Iterable[Span], all_spans: Iterable[Span]) -> list[Edit]:
    """Remove members or elements, with the commas that held them."""
    gone = {span.start for span in spans}
    order = sorted(all_spans)
    edits: list[Edit] = []
    kept_before = False
    for index, span in enumerate(order):
        if span.start not in gone:
            kept_before = True
        elif kept_before:
            edits.append((order[index - 1].end, span.end, b""))
        elif index + 1 < len(order):
            edits.append((span.start, order[index + 1].start, b""))
        else:
            edits.append((span.start, span.end, b""))
    return edits


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with all edits made; no edits give back the very same object."""
    pieces: list[bytes] = []
    position = 0
    for start, end, replacement in sorted(edits, key=_WHERE):
        if start < position:
            raise ValueError(f"edits overlap at byte {start}")
        pieces += [data[position:start], replacement]
        position = end
    if not pieces:
        return data
    pieces.append(data[position:])
    return b"".join(pieces)
