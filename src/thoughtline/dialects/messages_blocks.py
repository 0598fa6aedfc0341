"""One block of a streamed message, while it arrives.

It is announced with its members, of which one grows by deltas. What it is in the end is the
announced block with that member filled in; fields that nobody knows keep their bytes.
"""

from typing import Any

from msgspec import Raw

from thoughtline import splice
from thoughtline.dialects.blobs import kept
from thoughtline.dialects.escapes import quoted
from thoughtline.dialects.halves import mend
from thoughtline.dialects.recorder import Stopwatch
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, ToolCall
from thoughtline.parts import Call, Text
from thoughtline.splice import Span

_GROWING = {"thinking": "thinking", "text": "text", "compaction": "content"}
"""Which member of a block grows; of all tools it is the input, and that is JSON text."""


class Block:
    """One block while it arrives."""

    __slots__ = ("closed", "kind", "nth", "pieces", "raw", "signature", "value", "watch")

    def __init__(self, raw: bytes, value: dict[str, Any]) -> None:
        self.raw = raw  # as announced
        self.value = value
        self.kind = value.get("type")
        self.pieces: list[str] = []  # of the member that grows
        self.signature: list[str] = []
        self.watch: Stopwatch | None = None
        self.nth = 0  # among the calls
        self.closed = False

    def start(self, key: str) -> str:
        """What the announcement already held."""
        value = self.value.get(key)
        return value if isinstance(value, str) else ""

    def text(self) -> str:
        """The whole text of a text block."""
        return str(mend(self.start("text") + "".join(self.pieces)))

    def input(self) -> str:
        """A tool's arguments as JSON text."""
        if any(self.pieces):
            return str(mend("".join(self.pieces)))
        try:
            span = splice.members(self.raw).get("input")
        except Unreadable:
            span = None
        return self.raw[span.value : span.end].decode() if span else "{}"

    def filled(self) -> str:
        """The announced block with everything that its deltas brought."""
        grown: dict[str, bytes] = {}
        if any(self.pieces):
            joined = "".join(self.pieces)
            key = _GROWING.get(str(self.kind))
            grown[key or "input"] = (
                quoted(self.start(key) + joined) if key else mend(joined).encode()
            )
        if self.signature:
            grown["signature"] = quoted(self.start("signature") + "".join(self.signature))
        if not grown:
            return self.raw.decode()
        try:
            place, has = Span(0, 0, len(self.raw)), splice.members(self.raw)
            return splice.apply(self.raw, splice.revise(place, has, grown)).decode()
        except Unreadable:  # a key twice: the last one counts, as it does for every reader
            return splice.dumps(self.value | {k: Raw(raw) for k, raw in grown.items()}).decode()

    def said(self) -> list[AssistantMessage | ToolCall]:
        """What a block that is no thought says."""
        if self.kind == "text":
            text = self.text()
            return [AssistantMessage(parts=(Text(text=text),))] if text else []
        if self.kind == "tool_use":
            call = Call(name=self.start("name"), arguments=self.input(), id=self.start("id"))
            return [ToolCall(call=call)]
        made = kept(str(self.kind or "unknown"), self.filled())
        return [AssistantMessage(parts=(made,))]
