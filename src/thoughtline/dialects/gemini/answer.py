"""An answer as a `generateContent` client takes it: a stream of responses, or one.

Calls come whole and in order. A handle that names the turn in the log stands where this API has
signatures: on the first call, or where there is none on an empty last part. U+2028 and its kind are
escaped: some clients take them for the end of a line.
"""

from collections.abc import Iterable
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.answers import (
    AnswerEnd,
    AnswerHead,
    Block,
    BlockCitation,
    BlockDelta,
    BlockEnd,
    BlockEvent,
)
from thoughtline.dialects.content import checked_arguments
from thoughtline.dialects.error_bodies import google_error
from thoughtline.dialects.gemini.citations import grounding
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.log.events import Citation, StopReason
from thoughtline.log.usage import Usage

_FINISH = {
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.WINDOW: "MAX_TOKENS",
    StopReason.FILTER: "SAFETY",
    StopReason.OTHER: "OTHER",
}
_LINE_ENDS = [(end.encode(), b"\\u%04x" % ord(end)) for end in "\u2028\u2029\u0085"]


class GeminiAnswerWriter:
    """Writes one `GenerateContentResponse`, in pieces or as a whole."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._parts: list[dict[str, Any]] = []
        self._refused = False
        self._citations: list[Citation] = []
        self._thought = False  # a thought came that no handle names yet
        self._sent = False  # of an array: something stands in it

    def start(self) -> bytes:
        return b""

    def write(self, events: Iterable[BlockEvent]) -> bytes:
        return b"".join([self._write(event) for event in events])

    def _write(self, event: BlockEvent) -> bytes:
        block = event.block
        match event:
            case BlockDelta() if block.kind == "thought":
                self._thought = True
                shown = {"text": event.text, "thought": True}
                return self._take(shown) if self._head.wants_thoughts else b""
            case BlockDelta() if block.kind in ("text", "refusal"):
                self._refused |= block.kind == "refusal"
                return self._take({"text": event.text})
            case BlockCitation():
                self._citations.append(event.citation)
            case BlockEnd() if block.kind == "call":
                return self._take(self._call(block))
            case BlockEnd() if block.kind == "thought":
                self._thought = True
        return b""

    def _call(self, block: Block) -> dict[str, Any]:
        name = block.tool.name if block.tool is not None else ""
        call = {"id": block.id, "name": name, "args": checked_arguments(block.text)}
        part: dict[str, Any] = {"functionCall": call}
        if block.nth == 0:
            part["thoughtSignature"] = self._head.handle(0)
            self._thought = False
        return part

    def _take(self, part: dict[str, Any]) -> bytes:
        self._parts.append(part)
        return self._event(self._response([part]))

    def finish(self, end: AnswerEnd) -> bytes:
        last = [{"text": "", "thoughtSignature": self._head.handle(0)}] if self._thought else []
        reason = "SAFETY" if self._refused else _FINISH.get(end.stop, "STOP")
        parts = last if self._head.stream else [*_joined(self._parts), *last]
        response = self._response(parts, reason) | {"usageMetadata": _usage(end.usage)}
        if self._citations:
            said = [part["text"] for part in self._parts if "text" in part and len(part) == 1]
            links = grounding(self._citations, "".join(said))
            response["candidates"][0]["groundingMetadata"] = links
        if not self._head.stream:
            return splice.dumps(response)
        made = self._event(response)
        return made + b"]" if self._head.array else made

    def fail_with(self, error: UpstreamError) -> bytes:
        return self._framed(google_error(error)) + (b"]" if self._head.array else b"")

    def keepalive(self) -> bytes:
        return b"\n" if self._head.array else b": keep-alive\n\n"

    def _response(self, parts: list[dict[str, Any]], reason: str = "") -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        return {
            "candidates": [candidate],
            "modelVersion": self._head.model,
            "responseId": self._head.id,
        }

    def _event(self, value: dict[str, Any]) -> bytes:
        if not self._head.stream:
            return b""
        return self._framed(splice.dumps(value))

    def _framed(self, data: bytes) -> bytes:
        """An event of the stream, or an element of the array that clients get unless they ask."""
        for character, escaped in _LINE_ENDS:
            data = data.replace(character, escaped)
        if not self._head.array:
            return b"data: " + data + b"\r\n\r\n"
        before, self._sent = b",\r\n" if self._sent else b"[", True
        return before + data


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts that continue one another as one."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        before = joined[-1] if joined else {}
        if "text" in part and "text" in before and part.get("thought") == before.get("thought"):
            before["text"] += part["text"]
        else:
            joined.append(dict(part))
    return joined


def _usage(usage: Usage) -> dict[str, int]:
    spent, made, thoughts = usage.input or 0, usage.output or 0, usage.reasoning or 0
    counts = {
        "promptTokenCount": spent,
        "candidatesTokenCount": max(made - thoughts, 0),
        "totalTokenCount": spent + made,
        "thoughtsTokenCount": thoughts,
        "cachedContentTokenCount": usage.cached or 0,
    }
    return {name: count for name, count in counts.items() if count or not name.startswith("c")}
