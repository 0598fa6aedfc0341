"""What a Responses provider sends: frames (its events) and complete items in their exact JSON text.

A frame is decoded once, into a struct that names only what is looked at; items and responses stay
raw slices until somebody wants them. What the strict decoder refuses (half an emoji, types nobody
expects) is read again with patience, and what cannot be read at all is None: never an exception.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline import splice
from thoughtline.dialects.recorder import Stopwatch
from thoughtline.dialects.responses_items import kind, string
from thoughtline.errors import Unreadable
from thoughtline.events import Usage


class Frame(Struct, gc=False):
    """One event of the provider's stream."""

    type: str = ""
    delta: str | None = None
    item_id: str | None = None
    output_index: int | None = None
    item: Raw = Raw()
    output_item: Raw = Raw()  # the same under another name
    response: Raw = Raw()
    error: Any = None
    message: Any = None
    code: Any = None


class Item:
    """One item of an output, complete, and when it came."""

    __slots__ = ("closed", "id", "raw", "shown", "value", "watch")

    def __init__(self, value: dict[str, Any], raw: str) -> None:
        self.value = value
        self.raw = raw
        self.id = string(value, "id")
        self.watch: Stopwatch | None = None
        self.closed: int | None = None
        self.shown: list[str] = []  # of a thought that is still open

    @property
    def sealed(self) -> bool:
        """Whether it is a reasoning item with its seal."""
        return kind(self.value) == "reasoning" and bool(self.value.get("encrypted_content"))

    @property
    def lacking(self) -> bool:
        """Whether it is a reasoning item without one."""
        return kind(self.value) == "reasoning" and not self.sealed


_decode = msgspec.json.Decoder(Frame).decode
_EXACT = ("item", "output_item", "response")


def frame(data: bytes) -> Frame | None:
    """A frame from its JSON."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _patiently(data)


def _patiently(data: bytes) -> Frame | None:
    try:
        document, spans = splice.loads(data), splice.members(data)
    except Unreadable:
        return None
    delta, id, index = (document.get(key) for key in ("delta", "item_id", "output_index"))
    # Spans fit the original text, so that a half emoji inside of an item is kept as it came.
    exact = {key: Raw(data[s.value : s.end]) for key in _EXACT if (s := spans.get(key))}
    return Frame(
        type=string(document, "type"),
        delta=delta if isinstance(delta, str) else None,
        item_id=id if isinstance(id, str) else None,
        output_index=index if isinstance(index, int) and not isinstance(index, bool) else None,
        error=document.get("error"),
        message=document.get("message"),
        code=document.get("code"),
        **exact,
    )


def loaded(raw: bytes) -> dict[str, Any] | None:
    """An object from its JSON; None for anything else."""
    try:
        value = splice.loads(raw) if raw else None
    except Unreadable:
        return None
    return value if isinstance(value, dict) else None


def item(came: Frame) -> Item | None:
    """The item a frame brings."""
    return _item(bytes(came.item)) or _item(bytes(came.output_item))


def items(response: bytes) -> list[Item]:
    """The items of a whole response."""
    try:
        spans = splice.elements(response, splice.members(response)["output"])
    except (Unreadable, KeyError):
        return []
    found = (_item(response[span.value : span.end]) for span in spans)
    return [one for one in found if one is not None]


def _item(raw: bytes) -> Item | None:
    value = loaded(raw)
    return Item(value, raw.decode()) if value is not None else None


def usage(counts: dict[str, Any]) -> Usage:
    """Tokens from a usage object."""

    def count(key: str, inner: str = "") -> int | None:
        value = counts.get(key)
        if inner:
            value = value.get(inner) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return Usage(
        input=count("input_tokens"),
        output=count("output_tokens"),
        reasoning=count("output_tokens_details", "reasoning_tokens"),
        cached=count("input_tokens_details", "cached_tokens"),
    )


def complaint(response: dict[str, Any]) -> str:
    """What a response says is wrong with it, in the provider's words; empty if nothing."""
    details, error = response.get("incomplete_details"), response.get("error")
    if isinstance(details, dict) and string(details, "reason"):
        return string(details, "reason")
    if isinstance(error, dict):
        return string(error, "message") or string(error, "code")
    return error if isinstance(error, str) else ""
