"""Chunks of a Chat Completions answer, and the parts that they add up to: a body is one chunk.

The structs name only what is looked at, and everything in them may be of any type. `decode` is
strict and fast; what it refuses, `lenient` may still read: lone surrogates, or a list where an
object is expected. Bad output of a provider must not break a stream that is passing through.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from thoughtline.dialects.reader import Stopwatch, load_leniently
from thoughtline.log.parts import Carrier


class ChatDelta(Struct, gc=False):
    """The new pieces of a message."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    reasoning_text: Any = None
    reasoning_opaque: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    annotations: Any = None


class ChatChoice(Struct, gc=False):
    """One of the answers; there is hardly ever more than one."""

    delta: ChatDelta | None = None
    index: Any = 0
    finish_reason: Any = None
    usage: Any = None
    message: dict[str, Raw] | None = None  # of a body, its members as they are spelled


class ChatChunk(Struct, gc=False):
    """One event of a stream, or a body."""

    choices: list[ChatChoice] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    base_resp: Any = None  # how some servers report an error under status 200
    x_groq: Any = None  # where Groq says its usage, and why a stream broke
    citations: Any = None  # links of the whole answer, which each chunk may repeat
    search_results: Any = None  # the same with their titles


decode = msgspec.json.Decoder(ChatChunk).decode
REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions of `decode`."""


_TEXTS = ("content", "reasoning_content", "reasoning", "reasoning_text")
"""Members of a delta that add up, where they are strings."""


def only_text(data: bytes) -> str | None:
    """Return the text that is all that a chunk says; None where it says more."""
    try:
        chunk = decode(data)
    except REFUSED:
        return None
    choices = chunk.choices or ()
    about = (chunk.usage, chunk.error, chunk.base_resp, chunk.x_groq, chunk.citations)
    if len(choices) != 1 or any(said is not None for said in about):
        return None
    (choice,) = choices
    if choice.index or choice.delta is None or (choice.finish_reason, choice.usage) != (None, None):
        return None
    said = {name: value for name, value in asdict(choice.delta).items() if value not in (None, "")}
    if len(said) != 1:
        return None
    ((name, text),) = said.items()
    return text if name in _TEXTS and type(text) is str else None


def lenient(data: bytes) -> ChatChunk | None:
    """Read a chunk of which at least some is valid; None for everything else."""
    document = load_leniently(data)
    return None if document is None else chunk_of(document)


def chunk_of(document: dict[str, Any]) -> ChatChunk:
    """Return what is valid of a chunk."""
    choices = document.get("choices")
    if not isinstance(choices, list):
        choices = []
    found = [_choice(choice) for choice in choices if isinstance(choice, dict)]
    return ChatChunk(**_known(ChatChunk, document) | {"choices": found})


def _choice(choice: dict[str, Any]) -> ChatChoice:
    delta = choice.get("delta")
    known = ChatDelta(**_known(ChatDelta, delta)) if isinstance(delta, dict) else None
    return ChatChoice(**_known(ChatChoice, choice) | {"delta": known, "message": None})


def _known(struct: type[Struct], value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in struct.__struct_fields__ if key in value}


_GROWING = ("text", "summary", "data", "signature")


def merge_details(fragments: Iterable[Any]) -> list[Any]:
    """Merge streamed `reasoning_details` into the list that a client must send back.

    Fragments of one detail are joined, in arrival order. A fragment belongs to the detail with its
    index and type, unless both have ids and those differ. Without an index it continues the last
    one of its type. Fields that do not grow are the first ones given. An element that is no object
    stays as it came.
    """
    merged: list[Any] = []
    grown: list[dict[str, list[str]]] = []  # per detail: the pieces of its growing fields
    places: dict[tuple[Any, Any], int] = {}
    for fragment in fragments:
        for detail in fragment if isinstance(fragment, list) else ():
            place = _place(detail, merged, places)
            if place == len(merged):
                merged.append(dict(detail) if isinstance(detail, dict) else detail)
                grown.append({})
            if isinstance(detail, dict):
                _extend(merged[place], grown[place], detail)
    for detail, growth in zip(merged, grown, strict=True):
        for field, pieces in growth.items():
            detail[field] = "".join(pieces)
    return merged


def _place(detail: Any, merged: list[Any], places: dict[tuple[Any, Any], int]) -> int:
    """Return the position of the detail that a fragment continues; else the end."""
    if not isinstance(detail, dict):
        return len(merged)
    key = (detail.get("index"), detail.get("type"))
    try:
        place = places.get(key)
        if place is not None:
            id = detail.get("id")
            if not id or (merged[place].get("id") or id) == id:
                return place
        places[key] = len(merged)
    except TypeError:  # an index or a type that is not hashable
        pass
    return len(merged)


def _extend(merged: dict[str, Any], growth: dict[str, list[str]], detail: dict[str, Any]) -> None:
    for field, value in detail.items():
        if field in growth:
            if type(value) is str:
                growth[field].append(value)
        elif field in _GROWING and type(value) is str and merged.get(field) in (None, value):
            growth[field] = [value]
        elif merged.get(field) is None:
            merged[field] = value


class PendingPart:
    """A thought or a text that is arriving: its pieces so far, joined once at the end.

    A text has a watch for the inline thought in it.
    """

    __slots__ = ("carrier", "pieces", "watch")

    def __init__(self, carrier: Carrier, watch: Stopwatch) -> None:
        self.carrier = carrier
        self.pieces: list[Any] = []
        self.watch = watch

    def value(self) -> Any:
        """Return the value as a client must send it back."""
        if self.carrier is Carrier.REASONING_DETAILS:
            return merge_details(self.pieces)
        if self.carrier is Carrier.CHUNK:
            return _chunk(self.pieces)
        strings = [piece for piece in self.pieces if isinstance(piece, str)]
        return "".join(strings) if strings else self.pieces[-1]

    def text(self) -> str:
        """Return the readable text so far."""
        return "".join(map(readable, self.pieces)).removeprefix("<think>").lstrip()


class PendingCall:
    """A tool call that is arriving: its name, the pieces of its arguments, its `extra_content`."""

    __slots__ = ("extra", "id", "index", "name", "pieces", "watch")

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = ""
        self.id = ""
        self.pieces: list[str] = []
        self.extra: Any = None
        self.watch: Stopwatch | None = None  # when the extra came

    def follows(self, id: str, name: str) -> bool:
        """Whether a piece with this id and name opens another call under the same index.

        Some servers number every call 0, and some give a new id with every piece of one call.
        """
        return bool(name and id and self.id and id != self.id)


def _chunk(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the fragments of a thinking chunk: neighbouring texts joined, the last field wins."""
    if len(pieces) == 1:
        return pieces[0]
    merged: dict[str, Any] = {}
    for piece in pieces:
        merged |= piece
    inner = [piece["thinking"] for piece in pieces if "thinking" in piece]
    if inner and all(isinstance(thinking, str) for thinking in inner):
        merged["thinking"] = "".join(inner)
    elif inner:
        merged["thinking"] = _texts(inner)
    return merged


def _texts(lists: list[Any]) -> list[Any]:
    """Return the elements of these lists in one list, neighbouring texts joined."""
    joined: list[Any] = []
    run: list[str] = []
    for element in (e for inner in lists for e in (inner if isinstance(inner, list) else [inner])):
        plain = isinstance(element, dict) and element.keys() == {"type", "text"}
        text = element["text"] if plain and element["type"] == "text" else None
        if not isinstance(text, str):
            joined.append(element)
            run = []
            continue
        if not run:
            joined.append(element)
        run.append(text)
        joined[-1] = (element, run)
    return [
        element[0] | {"text": "".join(element[1])} if isinstance(element, tuple) else element
        for element in joined
    ]


def readable(value: Any) -> str:
    """Return the text in a fragment of a thought, for live display."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_readable(element) for element in value)
    return _readable(value)


def _readable(element: Any) -> str:
    if not isinstance(element, dict):
        return ""
    inner = element.get("thinking")
    if isinstance(inner, list):
        texts = [piece.get("text") for piece in inner if isinstance(piece, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    for key in ("text", "summary", "thinking"):
        if isinstance(text := element.get(key), str):
            return text
    return ""
