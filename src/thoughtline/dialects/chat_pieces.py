"""The parts of a streamed Chat Completions message while they arrive, piece by piece.

A message has members that are thoughts, a content of texts and thinking chunks, and tool calls.
Each grows in a list of pieces that is joined once, at the end.
"""

from typing import Any

from thoughtline.dialects.details import merge
from thoughtline.dialects.recorder import Stopwatch
from thoughtline.parts import Carrier


class Growing:
    """One thought or text: its pieces so far. A text has a watch for the thought inside it."""

    __slots__ = ("carrier", "pieces", "watch")

    def __init__(self, carrier: Carrier, watch: Stopwatch) -> None:
        self.carrier = carrier
        self.pieces: list[Any] = []
        self.watch = watch

    def value(self) -> Any:
        """The whole value, as a client must send it back."""
        if self.carrier is Carrier.REASONING_DETAILS:
            return merge(self.pieces)
        if self.carrier is Carrier.CHUNK:
            return _chunk(self.pieces)
        strings = [piece for piece in self.pieces if isinstance(piece, str)]
        return "".join(strings) if strings else self.pieces[-1]

    def text(self) -> str:
        """What can be read of it so far."""
        return "".join(map(readable, self.pieces)).removeprefix("<think>").lstrip()


class GrowingCall:
    """One tool call: who is called, the pieces of its arguments, and what rides on it."""

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
    """A thinking chunk from its fragments: texts that meet are one, other fields are the last."""
    if len(pieces) == 1:
        return pieces[0]
    whole: dict[str, Any] = {}
    for piece in pieces:
        whole |= piece
    inner = [piece["thinking"] for piece in pieces if "thinking" in piece]
    if inner and all(isinstance(thinking, str) for thinking in inner):
        whole["thinking"] = "".join(inner)
    elif inner:
        whole["thinking"] = _texts(inner)
    return whole


def _texts(lists: list[Any]) -> list[Any]:
    """The elements of these lists in one, neighbouring texts joined."""
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
    """The text in a fragment of a thought, to be shown as it comes."""
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
