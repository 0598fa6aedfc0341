"""Events of a Responses stream, and the complete items in them in their exact JSON text.

An event is decoded once, into a struct that names only what is looked at; items and responses stay
raw slices until they are needed. What the strict decoder refuses (lone surrogates, unexpected
types) is read again leniently, and what cannot be read at all is None: never an exception.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline.dialects import splice
from thoughtline.dialects.limits import TooComplex, check_answer_parts
from thoughtline.dialects.reader import Stopwatch, load_leniently
from thoughtline.dialects.responses.items import item_type, string_member
from thoughtline.dialects.upstream_errors import error_words
from thoughtline.errors import Unreadable
from thoughtline.log.usage import Usage


class ServerEvent(Struct, gc=False):
    """One event of a provider's stream."""

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


class OutputItem:
    """One item of an output, and when it came."""

    __slots__ = ("cited", "closed", "id", "raw", "shown", "value", "watch")

    def __init__(self, value: dict[str, Any], raw: str) -> None:
        self.value = value
        self.raw = raw
        self.id = string_member(value, "id")
        self.watch: Stopwatch | None = None
        self.closed: int | None = None
        self.shown: list[str] = []  # live text of a thought that is still open
        self.cited = False  # its links were told

    @property
    def sealed(self) -> bool:
        """Whether it is a reasoning item with encrypted content."""
        return item_type(self.value) == "reasoning" and bool(self.value.get("encrypted_content"))

    @property
    def lacking(self) -> bool:
        """Whether it is a reasoning item without encrypted content."""
        return item_type(self.value) == "reasoning" and not self.sealed


class LiveCall:
    """One call while its arguments arrive: which of the answer's it is, and what was shown."""

    __slots__ = ("id", "name", "number", "pieces")

    def __init__(self, number: int, name: str, id: str) -> None:
        self.number = number
        self.name = name
        self.id = id
        self.pieces: list[str] = []


_decode = msgspec.json.Decoder(ServerEvent).decode
_EXACT = ("item", "output_item", "response")


def read_event(data: bytes) -> ServerEvent | None:
    """Read an event from its JSON; None where that is impossible."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _lenient(data)


def _lenient(data: bytes) -> ServerEvent | None:
    try:
        document, spans = splice.loads(data), splice.members(data)
    except Unreadable:
        return None
    id, index = document.get("item_id"), document.get("output_index")
    delta = (load_leniently(data) or document).get("delta")  # with the halves of characters
    # Spans fit the original text, so that a lone surrogate inside of an item stays as it came.
    exact = {key: Raw(data[s.value : s.end]) for key in _EXACT if (s := spans.get(key))}
    return ServerEvent(
        type=string_member(document, "type"),
        delta=delta if isinstance(delta, str) else None,
        item_id=id if isinstance(id, str) else None,
        output_index=index if isinstance(index, int) and not isinstance(index, bool) else None,
        error=document.get("error"),
        message=document.get("message"),
        code=document.get("code"),
        **exact,
    )


def load_object(raw: bytes) -> dict[str, Any] | None:
    """Read an object from its JSON; None for anything else."""
    try:
        value = splice.loads(raw) if raw else None
    except TooComplex:
        raise
    except Unreadable:
        return None
    return value if isinstance(value, dict) else None


def item(event: ServerEvent) -> OutputItem | None:
    """Return the item that an event brings."""
    return _item(bytes(event.item)) or _item(bytes(event.output_item))


def items(response: bytes) -> list[OutputItem]:
    """Return the items of a complete response."""
    try:
        spans = splice.elements(response, splice.members(response)["output"])
    except TooComplex:
        raise
    except (Unreadable, KeyError):
        return []
    check_answer_parts(len(spans))
    found = (_item(response[span.value : span.end]) for span in spans)
    return [one for one in found if one is not None]


def _item(raw: bytes) -> OutputItem | None:
    value = load_object(raw)
    return OutputItem(value, raw.decode()) if value else None


def usage(counts: dict[str, Any]) -> Usage:
    """Return the tokens of a usage object."""

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
        cache_write=count("input_tokens_details", "cache_write_tokens"),
    )


def error_message(response: dict[str, Any]) -> str:
    """Return what a response says went wrong, in the provider's words; empty if nothing."""
    details, error = response.get("incomplete_details"), response.get("error")
    if isinstance(details, dict) and string_member(details, "reason"):
        return string_member(details, "reason")
    return error_words(error) or string_member(error if isinstance(error, dict) else {}, "code")
