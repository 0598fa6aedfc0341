"""An answer as a Messages client takes it: a stream of blocks, or one message.

A thought is a thinking block whose signature is a handle: it names the turn in the log. It comes in
exactly one `signature_delta` at the end of its block; a thought that cannot be read is a redacted
block, and one that the client does not want to see an empty one.
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
    BlockStart,
)
from thoughtline.dialects.content import checked_arguments
from thoughtline.dialects.error_bodies import anthropic_error
from thoughtline.dialects.messages.citations import citation_block
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.log.events import StopReason
from thoughtline.log.usage import Usage

_STOP = {
    StopReason.CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.STOP_TEXT: "stop_sequence",
    StopReason.FILTER: "refusal",
    StopReason.WINDOW: "model_context_window_exceeded",
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "thought": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


class MessagesAnswerWriter:
    """Writes one message."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._blocks: list[dict[str, Any]] = []
        self._open: Block | None = None
        self._begun = False  # the open block is announced
        self._refused = False

    def start(self) -> bytes:
        usage = _usage(Usage(input=self._head.input_estimate, output=1))
        message = self._message([], None, None, usage)
        return self._event("message_start", message=message) + self._event("ping")

    def write(self, events: Iterable[BlockEvent]) -> bytes:
        return b"".join([self._write(event) for event in events])

    def _write(self, event: BlockEvent) -> bytes:
        block = event.block
        match event:
            case BlockStart():
                self._open = block
                self._refused |= block.kind == "refusal"
                # A thought with nothing to read is a block of another type: wait for its text.
                self._begun = block.kind != "thought" or not self._head.wants_thoughts
                return self._announce(block) if self._begun else b""
            case BlockDelta() if block.kind == "thought" and not self._head.wants_thoughts:
                return b""
            case BlockDelta():
                made = b"" if self._begun else self._announce(block)
                self._begun = True
                kind, member = _DELTAS[block.kind]
                return made + self._delta(block, {"type": kind, member: event.text})
            case BlockEnd():
                return self._done(block)
            case BlockCitation():
                return self._cite(block, citation_block(event.citation))

    def _cite(self, block: Block, citation: dict[str, Any]) -> bytes:
        """A link of a text; of a stream only while its block is open."""
        if block is self._open:
            return self._delta(block, {"type": "citations_delta", "citation": citation})
        self._blocks[block.index].setdefault("citations", []).append(citation)
        return b""

    def _announce(self, block: Block) -> bytes:
        start: dict[str, Any] = {"type": "text", "text": ""}
        if block.kind == "thought":
            start = {"type": "thinking", "thinking": "", "signature": ""}
        elif block.kind == "call":
            start = {"type": "tool_use", "id": block.id, "name": _name(block), "input": {}}
        return self._event("content_block_start", index=block.index, content_block=start)

    def _delta(self, block: Block, delta: dict[str, Any]) -> bytes:
        return self._event("content_block_delta", index=block.index, delta=delta)

    def _done(self, block: Block) -> bytes:
        self._open = None
        made = b""
        whole: dict[str, Any]
        if block.kind == "thought":
            handle = self._head.handle(block.nth)
            if self._begun:
                made = self._delta(block, {"type": "signature_delta", "signature": handle})
                shown = block.text if self._head.wants_thoughts else ""
                whole = {"type": "thinking", "thinking": shown, "signature": handle}
            else:
                whole = {"type": "redacted_thinking", "data": handle}
                made = self._event("content_block_start", index=block.index, content_block=whole)
        elif block.kind == "call":
            # A stream has shown them already, and its client says what is wrong with them.
            input = {} if self._head.stream else checked_arguments(block.text)
            whole = {"type": "tool_use", "id": block.id, "name": _name(block), "input": input}
        else:
            whole = {"type": "text", "text": block.text}
        self._blocks.append(whole)
        return made + self._event("content_block_stop", index=block.index)

    def finish(self, end: AnswerEnd) -> bytes:
        stop = "refusal" if self._refused else _STOP.get(end.stop, "end_turn")
        text = end.stop_text if stop == "stop_sequence" else None
        if not self._head.stream:
            blocks = self._blocks or [{"type": "text", "text": ""}]
            return splice.dumps(self._message(blocks, stop, text, _usage(end.usage)))
        made = self._cut() if self._blocks or self._open else self._nothing()
        delta = {"stop_reason": stop, "stop_sequence": text}
        made += self._event("message_delta", delta=delta, usage=_usage(end.usage))
        return made + self._event("message_stop")

    def _nothing(self) -> bytes:
        """An answer without any content: clients want a block all the same."""
        start = self._event(
            "content_block_start", index=0, content_block={"type": "text", "text": ""}
        )
        return start + self._event("content_block_stop", index=0)

    def fail_with(self, error: UpstreamError) -> bytes:
        return self._cut() + b"event: error\ndata: " + anthropic_error(error) + b"\n\n"

    def _cut(self) -> bytes:
        """The end of a block that was cut off, which no client may be left waiting for."""
        block, self._open = self._open, None
        cut = block is not None and self._begun
        return self._event("content_block_stop", index=block.index) if block and cut else b""

    def keepalive(self) -> bytes:
        return self._event("ping")

    def _message(
        self, blocks: list[Any], stop: str | None, text: str | None, usage: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "id": f"msg_{self._head.id}",
            "type": "message",
            "role": "assistant",
            "model": self._head.model,
            "content": blocks,
            "stop_reason": stop,
            "stop_sequence": text,
            "usage": usage,
        }

    def _event(self, type: str, /, **members: Any) -> bytes:
        if not self._head.stream:
            return b""
        data = splice.dumps({"type": type, **members})
        return b"event: " + type.encode() + b"\ndata: " + data + b"\n\n"


def _name(block: Block) -> str:
    return block.tool.name if block.tool is not None else ""


def _usage(usage: Usage) -> dict[str, Any]:
    """This API counts what was read from its cache, or written to it, beside the input."""
    cached, written = usage.cached or 0, usage.cache_write or 0
    counts: dict[str, Any] = {
        "input_tokens": max((usage.input or 0) - cached - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output or 0,
    }
    if usage.reasoning is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return counts
