"""An answer as a Chat Completions client takes it: a stream of chunks, or one completion."""

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
    BlockKind,
    BlockStart,
)
from thoughtline.dialects.chat.citations import annotation
from thoughtline.dialects.error_bodies import openai_error
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.log.events import StopReason
from thoughtline.log.parts import ToolKind
from thoughtline.log.usage import Usage

_FINISH = {
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.WINDOW: "length",
    StopReason.FILTER: "content_filter",
}


_MEMBERS: dict[BlockKind, str] = {
    "text": "content",
    "refusal": "refusal",
    "thought": "reasoning_content",
}
"""Members of a message or of a delta, by what they say."""


class ChatAnswerWriter:
    """Writes one completion."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._said: dict[BlockKind, list[str]] = {"thought": [], "text": [], "refusal": []}
        self._annotations: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []

    def start(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def write(self, events: Iterable[BlockEvent]) -> bytes:
        return b"".join([self._write(event) for event in events])

    def _write(self, event: BlockEvent) -> bytes:
        block = event.block
        match event:
            case BlockStart() if block.kind == "call":
                return self._chunk({"tool_calls": [{"index": block.nth, **_call(block, "")}]})
            case BlockDelta() if block.kind == "call":
                member, name = _member(block)
                piece = {"index": block.nth, member: {name: event.text}}
                return self._chunk({"tool_calls": [piece]})
            case BlockDelta() if block.kind == "thought" and not self._head.wants_thoughts:
                return b""
            case BlockDelta():
                self._said[block.kind].append(event.text)
                return self._chunk({_MEMBERS[block.kind]: event.text})
            case BlockCitation():
                self._annotations.append(annotation(event.citation))
                return self._chunk({"annotations": self._annotations[-1:]})
            case BlockEnd() if block.kind == "call":
                self._calls.append(_call(block, block.text))
        return b""

    def finish(self, end: AnswerEnd) -> bytes:
        reason = _FINISH.get(end.stop, "stop")
        if not self._head.stream:
            return splice.dumps(self._completion(reason, end.usage))
        made = self._chunk({}, reason)
        if self._head.wants_usage:
            made += _event(self._about() | {"choices": [], "usage": _usage(end.usage)})
        return made + b"data: [DONE]\n\n"

    def fail_with(self, error: UpstreamError) -> bytes:
        return b"data: " + openai_error(error) + b"\n\n"

    def keepalive(self) -> bytes:
        return b": keep-alive\n\n"

    def _completion(self, reason: str, usage: Usage) -> dict[str, Any]:
        said = {_MEMBERS[kind]: "".join(pieces) for kind, pieces in self._said.items() if pieces}
        message: dict[str, Any] = {"role": "assistant", "content": None, **said}
        if self._annotations:
            message["annotations"] = self._annotations
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        about = self._about() | {"object": "chat.completion"}
        return about | {"choices": [choice], "usage": _usage(usage)}

    def _about(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._head.id}",
            "object": "chat.completion.chunk",
            "created": self._head.created,
            "model": self._head.model,
        }

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        if not self._head.stream:
            return b""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event(self._about() | {"choices": [choice]})


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + splice.dumps(value) + b"\n\n"


def _member(block: Block) -> tuple[str, str]:
    """The member of a call that holds its name, and the one in it that holds its arguments."""
    custom = block.tool is not None and block.tool.kind is ToolKind.CUSTOM
    return ("custom", "input") if custom else ("function", "arguments")


def _call(block: Block, arguments: str) -> dict[str, Any]:
    member, name = _member(block)
    called = block.tool.name if block.tool is not None else ""
    return {"id": block.id, "type": member, member: {"name": called, name: arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    spent, made = usage.input or 0, usage.output or 0
    cache = {"cached_tokens": usage.cached or 0}
    if usage.cache_write is not None:
        cache["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": spent,
        "completion_tokens": made,
        "total_tokens": spent + made,
        "prompt_tokens_details": cache,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }
