"""Edits of a JSON text that leave every other byte alone: find spans, change a few, splice.

What is not edited keeps its bytes, spacing, key order and number spelling: prompt caches and
prefix-bound signatures depend on that. Values are read with msgspec; spans come from the lengths
of its raw slices, so nothing is scanned twice in Python. What cannot be read without doubt
(malformed, duplicate keys) is `Unreadable`: it goes on as it is.
"""

import re
from collections.abc import Callable, Iterable, KeysView, Mapping
from operator import itemgetter
from typing import Any, TypedDict

import msgspec
from msgspec import Struct

from thoughtline.dialects.limits import (
    CHECKED_SIZE,
    LETTERS_SIZE,
    TooComplex,
    check_letters,
    check_text,
)
from thoughtline.errors import Unreadable


class Span(Struct, frozen=True, gc=False, order=True):
    """One member or element: `start` is where its key (or value) begins, `end` is after it."""

    start: int
    value: int
    end: int


Edit = tuple[int, int, bytes | memoryview]
"""Replace data[start:end] by these bytes."""

_WHERE = itemgetter(0, 1)
_COPIED = 16 << 10
"""Bytes up to which a slice is cheaper than a view of it."""

_any = msgspec.json.Decoder().decode
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_KEY = re.compile(rb'[\s,]*("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*:\s*', re.DOTALL).match
_GAP = frozenset(b" ,\n\r\t")
"""What may stand before an element: a comma and space."""
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_typed_dict: Any = TypedDict
_NOTHING = re.compile(r'null|false|""|\[\s*\]|\{\s*\}|-?0(?:\.0+)?(?:[eE][-+]?\d+)?').fullmatch
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def _masked(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return b"\\ufffd" if len(found) == 6 and found[2:3] in b"dD" else found


def mask(data: bytes) -> bytes:
    """Replace lone surrogate escapes by U+FFFD, in the same length, so that offsets stay.

    JSON writers of some languages emit them; msgspec refuses them.
    """
    return _ESCAPE.sub(_masked, data)


def _read(decode: Callable[[bytes], Any], data: bytes) -> tuple[Any, bytes]:
    """Return the value and the text that it was read from: the given one, or the masked one."""
    if len(data) > CHECKED_SIZE:
        check_text(data)
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
    """Read any JSON value; lone surrogates are read as U+FFFD. Raises `Unreadable`."""
    if len(data) > LETTERS_SIZE:
        check_letters(data)
    return _read(_any, data)[0]


def some_members(read: Iterable[str], slices: Iterable[str] = ()) -> Callable[[bytes], Any]:
    """Return a reader of texts, as `loads`, that of an object gives only these members.

    Some are read, and some are only given as slices of the text; what else there is, is skipped.
    """
    kinds = {**dict.fromkeys(read, Any), **dict.fromkeys(slices, msgspec.Raw)}
    decode = msgspec.json.Decoder(_typed_dict("Members", kinds, total=False)).decode

    def loads_some(data: bytes) -> Any:
        if len(data) > LETTERS_SIZE:
            check_letters(data)
        try:
            return _read(decode, data)[0]
        except TooComplex:
            raise
        except Unreadable:
            return loads(data)  # maybe it is no object

    return loads_some


def loads_slice(raw: msgspec.Raw) -> Any:
    """Read a slice of a text that was read before. Raises `Unreadable`."""
    try:
        return _any(raw)
    except _UNREADABLE:
        return loads(bytes(raw))


def holds_anything(raw: msgspec.Raw | None) -> bool:
    """Whether a member is given and not empty, from its slice. Raises `Unreadable`."""
    try:
        return raw is not None and not _NOTHING(str(raw, "utf-8"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"not readable as JSON: {error}") from None


def dumps(value: Any) -> bytes:
    """Write compact JSON. Raises `Unreadable` for what JSON cannot hold."""
    try:
        return msgspec.json.encode(value)
    except (*_UNREADABLE, TypeError, OverflowError) as error:
        raise Unreadable(f"not writable as JSON: {error}") from None


def members(data: bytes, span: Span | None = None) -> dict[str, Span]:
    """Return the spans of an object's members. Raises `Unreadable` for anything but a plain object.

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


class Layout:
    """Where the top-level members of a body stand, and the elements of its history."""

    def __init__(self, body: bytes, history: str) -> None:
        self.body = body
        self.history = history
        self.members = members(body)
        self._elements: list[Span] | None = None

    @property
    def elements(self) -> list[Span]:
        """The spans of the elements. Raises `Unreadable` where the history is not a list."""
        if self._elements is None:
            self._elements = elements(self.body, self.members[self.history])
        return self._elements


_last_layout: Layout | None = None


def layout(body: bytes, history: str) -> Layout:
    """Return the layout of a body whose history is this member. Raises `Unreadable`, as `members`.

    One body is asked about several times in a row, so the last answer is kept.
    """
    global _last_layout  # noqa: PLW0603 (one value, replaced as a whole)
    last = _last_layout
    if last is None or last.body is not body or last.history != history:
        last = _last_layout = Layout(body, history)
    return last


def names(data: bytes) -> KeysView[str]:
    """Return the keys of an object, each once. Raises `Unreadable` for anything but an object."""
    raws: dict[str, msgspec.Raw] = _read(_object, data)[0]
    return raws.keys()


def elements(data: bytes, span: Span) -> list[Span]:
    """Return the spans of an array's elements. Raises `Unreadable` for anything but an array."""
    if span.end - span.value > CHECKED_SIZE:
        check_text(data)  # mostly it was just asked about
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
    """Return the text with all edits made; without edits, the very same object."""
    pieces: list[bytes | memoryview] = []
    position = 0
    # What stays of a large text is copied once, into the new one.
    text = memoryview(data) if len(data) > _COPIED else data
    for start, end, replacement in sorted(edits, key=_WHERE):
        if start < position:
            raise ValueError(f"edits overlap at byte {start}")
        pieces += (text[position:start], replacement)
        position = end
    if not pieces:
        return data
    pieces.append(text[position:])
    return b"".join(pieces)


def shifted(position: int, edits: Iterable[Edit]) -> int:
    """Return where a position is after these edits; what is inserted right there is before it."""
    return position + sum(
        [len(new) - (end - start) for start, end, new in edits if end <= position]
    )


def set_members(
    body: bytes, top: dict[str, Span], fields: Mapping[str, bytes | None]
) -> list[Edit]:
    """Return edits that set top-level members to raw JSON values; None removes one."""
    return revise(Span(0, 0, body.rindex(b"}") + 1), top, fields)


def with_members(body: bytes, fields: Mapping[str, bytes | None]) -> bytes:
    """Return a body with these top-level members set or removed. Raises `Unreadable`."""
    return apply(body, set_members(body, members(body), fields))


def top_level_list(body: bytes, key: str) -> list[tuple[Span, Any]]:
    """Return the elements of a top-level list with their spans; none where there is no list."""
    place = members(body).get(key)
    if place is None or body[place.value : place.value + 1] != b"[":
        return []
    return [(span, loads(body[span.value : span.end])) for span in elements(body, place)]


class TopLevel:
    """The top-level members of a body, with their spans."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.has = members(body)

    def value(self, name: str) -> Any:
        """Return the value of a member; None where it is missing."""
        place = self.has.get(name)
        return loads(self.body[place.value : place.end]) if place else None

    def nested(self, name: str, wanted: Mapping[str, bytes | None]) -> bytes:
        """Return the raw JSON of a nested object with some of its members set."""
        place = self.has.get(name)
        raw = self.body[place.value : place.end] if place else b"{}"
        raw = raw if raw[:1] == b"{" else b"{}"
        return apply(raw, set_members(raw, members(raw), wanted))
