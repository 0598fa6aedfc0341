"""Events of a Messages stream, and the blocks that they add up to.

The structs name only what is looked at, and everything in them may be of any type. `decode` is
strict and fast; what it refuses, `lenient` may still read: lone surrogates, or unexpected types.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import asdict

from thoughtline.dialects import splice
from thoughtline.dialects.content import raw_blob
from thoughtline.dialects.messages.patch import block_blob
from thoughtline.dialects.reader import Stopwatch, load_leniently
from thoughtline.dialects.splice import Span
from thoughtline.dialects.surrogates import json_string, replace_surrogates
from thoughtline.dialects.values import sequence
from thoughtline.errors import Unreadable
from thoughtline.log.events import AssistantMessage, ToolCall
from thoughtline.log.parts import Call, Text


class MessageDelta(Struct, gc=False):
    """What is new of a block, or of the message as a whole."""

    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    content: Any = None
    citation: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None


_TEXTS = ("text", "thinking", "partial_json")
"""Members of a delta that add up."""


class MessageEvent(Struct, gc=False):
    """One event of the stream."""

    type: Any = None
    index: Any = None
    delta: MessageDelta | None = None
    content_block: Raw = Raw()
    message: Any = None
    usage: Any = None
    error: Any = None


decode = msgspec.json.Decoder(MessageEvent).decode
REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of `decode`."""


def only_text(data: bytes) -> str | None:
    """Return the text that is all that an event says; None where it says more."""
    try:
        event = decode(data)
    except REFUSED:
        return None
    if event.type != "content_block_delta" or type(event.index) is not int or not event.delta:
        return None
    said = {name: value for name, value in asdict(event.delta).items() if value is not None}
    if len(said) != 1:
        return None
    ((name, text),) = said.items()
    return text if name in _TEXTS and type(text) is str else None


def lenient(data: bytes) -> MessageEvent | None:
    """Read an event that the strict decoder refuses: lone surrogates, or unexpected types."""
    document = load_leniently(data)
    if document is None:
        return None
    known = {key: document[key] for key in MessageEvent.__struct_fields__ if key in document}
    delta = known.get("delta")
    if isinstance(delta, dict):
        known["delta"] = MessageDelta(
            **{key: delta[key] for key in MessageDelta.__struct_fields__ if key in delta}
        )
    else:
        known["delta"] = None
    if "content_block" in known:
        known["content_block"] = _member(data, "content_block")
    return MessageEvent(**known)


def _member(data: bytes, key: str) -> Raw:
    try:
        span = splice.members(data)[key]
    except (Unreadable, KeyError):
        return Raw()
    return Raw(data[span.value : span.end])


_GROWING = {"thinking": "thinking", "text": "text", "compaction": "content"}
"""Which member of a block grows; of all tools it is the input, and that is JSON text."""


class PendingBlock:
    """A block that is arriving.

    It is announced with its members, of which one grows by deltas. In the end it is the announced
    block with that member filled in; fields that are not known keep their bytes.
    """

    __slots__ = (
        "citations",
        "closed",
        "kind",
        "nth",
        "pieces",
        "raw",
        "signature",
        "value",
        "watch",
    )

    def __init__(self, raw: bytes, value: dict[str, Any]) -> None:
        self.raw = raw  # as announced
        self.value = value
        self.kind = value.get("type")
        self.pieces: list[str] = []  # of the member that grows
        self.signature: list[str] = []
        self.watch: Stopwatch | None = None
        self.nth = 0  # among the calls
        self.closed = False
        self.citations = sequence(value.get("citations"))

    def start(self, key: str) -> str:
        """Return a member as it was announced."""
        value = self.value.get(key)
        return value if isinstance(value, str) else ""

    def text(self) -> str:
        """Return the text of a text block."""
        return str(replace_surrogates(self.start("text") + "".join(self.pieces)))

    def input(self) -> str:
        """Return a tool's arguments as JSON text."""
        if any(self.pieces):
            return str(replace_surrogates("".join(self.pieces)))
        try:
            span = splice.members(self.raw).get("input")
        except Unreadable:
            span = None
        return self.raw[span.value : span.end].decode() if span else "{}"

    def filled(self) -> str:
        """Return the announced block with everything that its deltas brought."""
        grown: dict[str, bytes] = {}
        if any(self.pieces):
            joined = "".join(self.pieces)
            key = _GROWING.get(str(self.kind))
            grown[key or "input"] = (
                json_string(self.start(key) + joined)
                if key
                else replace_surrogates(joined).encode()
            )
        if self.signature:
            grown["signature"] = json_string(self.start("signature") + "".join(self.signature))
        if not grown:
            return self.raw.decode()
        try:
            place, has = Span(0, 0, len(self.raw)), splice.members(self.raw)
            return splice.apply(self.raw, splice.revise(place, has, grown)).decode()
        except Unreadable:  # a key twice: the last one counts, as it does for every reader
            return splice.dumps(self.value | {k: Raw(raw) for k, raw in grown.items()}).decode()

    def events(self) -> list[AssistantMessage | ToolCall]:
        """Return the canonical events of a block that is no thought."""
        if self.kind == "text":
            text = self.text()
            return [AssistantMessage(parts=(Text(text=text),))] if text else []
        if self.kind == "tool_use":
            call = Call(name=self.start("name"), arguments=self.input(), id=self.start("id"))
            return [ToolCall(call=call)]
        return [AssistantMessage(parts=(raw_blob(self.filled(), block_blob),))]
