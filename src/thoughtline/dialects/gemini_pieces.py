"""One text, call or thought of a streamed answer, while it arrives.

It begins with a part in the provider's own JSON text and may go on in later chunks. What it is in
the end is that part with all of its text; fields that nobody knows keep their bytes.
"""

import json
from typing import Any

from thoughtline import splice
from thoughtline.dialects.blobs import kept
from thoughtline.dialects.escapes import quoted
from thoughtline.dialects.gemini_parts import (
    SEPARATE,
    SIGNATURES,
    either,
    kind,
    merged,
    signature,
    text,
    unsigned,
)
from thoughtline.dialects.halves import mend
from thoughtline.dialects.recorder import Stopwatch
from thoughtline.errors import Unreadable
from thoughtline.events import AssistantMessage, ToolCall
from thoughtline.parts import Call, Carrier, Text


class Piece:
    """One run of parts while it arrives."""

    __slots__ = ("first", "kind", "last", "raw", "rides", "texts", "watch")

    def __init__(self, part: dict[str, Any], raw: bytes) -> None:
        self.kind = kind(part)
        self.raw = raw  # of the first part
        self.first = self.last = part
        self.texts = [text(part)]
        self.rides = signature(part)
        self.watch: Stopwatch | None = None  # of the thought that it is or that rides on it

    def grow(self, part: dict[str, Any]) -> None:
        """Take in the part of a later chunk that goes on with this one."""
        self.last = part
        self.texts.append(text(part))
        self.rides = signature(part)

    def thought(self) -> tuple[Carrier, str] | None:
        """The thought that it is, or that rides on it, as JSON text."""
        if self.kind in SEPARATE:
            return Carrier.PART, merged(self.raw, self.texts, self.last).decode()
        return (Carrier.SIGNATURE, quoted(self.rides).decode()) if self.rides else None

    def said(self) -> AssistantMessage | ToolCall:
        """What it says aloud."""
        if self.kind == "call":
            return ToolCall(call=self.call())
        if self.kind == "text":
            return AssistantMessage(parts=(Text(text=mend("".join(self.texts))),))
        name = next((key for key in self.first if key not in SIGNATURES), "unknown")
        return AssistantMessage(parts=(kept(mend(name), unsigned(self.raw).decode()),))

    def call(self) -> Call:
        """The call that it is."""
        call = either(self.first, "functionCall")
        name, id = call.get("name"), call.get("id")
        return Call(
            name=mend(name) if isinstance(name, str) else "",
            arguments="{}" if call.get("args") is None else self._arguments(call["args"]),
            id=mend(id) if isinstance(id, str) else "",
        )

    def _arguments(self, args: Any) -> str:
        """A call's arguments in the provider's own spelling."""
        try:
            part = splice.members(self.raw)
            call = splice.members(self.raw, part.get("functionCall") or part["function_call"])
            span = call["args"]
        except (Unreadable, KeyError):  # a key twice: the last one counts
            return json.dumps(args)
        return self.raw[span.value : span.end].decode()


def spellings(data: bytes, place: int, parts: list[Any]) -> list[bytes]:
    """A candidate's parts as the provider spelled them; empty for what cannot be read again."""
    try:
        candidates = splice.elements(data, splice.members(data)["candidates"])
        content = splice.members(data, candidates[place])["content"]
        spans = splice.elements(data, splice.members(data, content)["parts"])
        raws = [data[span.value : span.end] for span in spans]
    except (Unreadable, KeyError, IndexError):
        raws = [b""] * len(parts)
    return [_readable(raw) or _again(part) for raw, part in zip(raws, parts, strict=True)]


def _readable(raw: bytes) -> bytes:
    try:
        splice.loads(raw)
    except Unreadable:
        return b""
    return raw


def _again(part: Any) -> bytes:
    try:
        return _readable(json.dumps(part).encode())
    except (ValueError, RecursionError):
        return b""
