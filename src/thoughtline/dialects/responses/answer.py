"""An answer as a Responses client takes it: a stream of events, or one response.

Items come strictly one after another, each announced, grown and repeated whole; the last event
repeats them all. A thought is a reasoning item whose `encrypted_content` is a handle: it names the
turn in the log, and the provider's own thought is never in it.
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
from thoughtline.dialects.content import whole_numbers
from thoughtline.dialects.responses.citations import annotation
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.log.events import Citation, StopReason
from thoughtline.log.index import client_response_id
from thoughtline.log.parts import ToolKind
from thoughtline.log.usage import Usage

_INCOMPLETE = {
    StopReason.LENGTH: "max_output_tokens",
    StopReason.WINDOW: "max_output_tokens",
    StopReason.FILTER: "content_filter",
    StopReason.OTHER: "max_output_tokens",
}
_TYPES = {
    ToolKind.FUNCTION: "function_call",
    ToolKind.CUSTOM: "custom_tool_call",
    ToolKind.SEARCH: "tool_search_call",
}
_CODES = {
    ErrorKind.CONTEXT: "context_length_exceeded",
    ErrorKind.QUOTA: "insufficient_quota",
    ErrorKind.RATE_LIMIT: "rate_limit_exceeded",
}
"""Codes of a response that failed: of errors that come in a stream, these are told apart."""
_PREFIXES = {"thought": "rs_", "text": "msg_", "refusal": "msg_", "call": "fc_"}
_TEXTS = {"text": "output_text", "refusal": "refusal"}
"""Names of the parts that messages have."""


class ResponsesAnswerWriter:
    """Writes one response."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._sequence = 0
        self._items: list[dict[str, Any]] = []
        self._annotations: dict[int, list[dict[str, Any]]] = {}  # by block
        self._open: Block | None = None
        self._part: dict[str, Any] = {}  # of the open item: what all of its events repeat
        self._growth: tuple[bytes, bytes, bytes] | None = None  # of the open item: its deltas

    # -- the stream ------------------------------------------------------------------------------

    def start(self) -> bytes:
        response = self._response("in_progress", [])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def keepalive(self) -> bytes:
        """An event that says nothing new: clients count events, not bytes."""
        return self._event("response.in_progress", response=self._response("in_progress", []))

    def write(self, events: Iterable[BlockEvent]) -> bytes:
        return b"".join([self._write(event) for event in events])

    def _write(self, event: BlockEvent) -> bytes:
        match event:
            case BlockStart():
                return self._added(event.block)
            case BlockDelta():
                return self._delta(event.block, event.text)
            case BlockEnd():
                return self._done(event.block)
            case BlockCitation():
                return self._cite(event.block, event.citation)

    def _cite(self, block: Block, citation: Citation) -> bytes:
        said = self._annotations.setdefault(block.index, [])
        said.append(annotation(citation, block.start))
        return self._event(
            "response.output_text.annotation.added",
            item_id=self._id(block),
            output_index=block.index,
            content_index=0,
            annotation_index=len(said) - 1,
            annotation=said[-1],
        )

    def finish(self, end: AnswerEnd) -> bytes:
        reason = _INCOMPLETE.get(end.stop, "")
        status = "incomplete" if reason else "completed"
        response = self._response(status, self._items + self._cut(), end.usage)
        if reason:
            response["incomplete_details"] = {"reason": reason}
        if not self._head.stream:
            return splice.dumps(response)
        return self._event(f"response.{status}", response=response)

    def fail_with(self, error: UpstreamError) -> bytes:
        code, message = _CODES.get(error.kind, "server_error"), error.message
        if error.kind is ErrorKind.RATE_LIMIT and error.retry_after is not None:
            message = f"{message} Please try again in {error.retry_after:g}s."
        said = {"code": code, "message": message}
        response = self._response("failed", self._items + self._cut()) | {"error": said}
        return self._event("response.failed", response=response)

    def _cut(self) -> list[dict[str, Any]]:
        """The item that was cut off, as far as it came; a thought that is not whole is none."""
        block = self._open
        if block is None or block.kind == "thought" or _tool_kind(block) is ToolKind.SEARCH:
            return []
        return [self._item(block, "incomplete")]

    # -- one item --------------------------------------------------------------------------------

    def _added(self, block: Block) -> bytes:
        self._open = block
        if not self._head.stream:
            return b""
        self._part = {"item_id": self._id(block), "output_index": block.index}
        self._growth = self._growth_of(block)
        item = self._item(block, "in_progress", empty=True)
        made = self._event("response.output_item.added", output_index=block.index, item=item)
        if block.kind in _TEXTS:
            part = self._content(block, "")
            return made + self._event(
                "response.content_part.added", **self._part, content_index=0, part=part
            )
        if block.kind == "thought" and self._head.wants_summary:
            return made + self._event(
                "response.reasoning_summary_part.added",
                **self._part,
                summary_index=0,
                part={"type": "summary_text", "text": ""},
            )
        return made

    def _delta(self, block: Block, text: str) -> bytes:
        """One more piece: all but its number and its text stays the same from piece to piece."""
        if not self._growth:
            return b""
        before, members, after = self._growth
        number = self._sequence
        self._sequence += 1
        return b"%b%d%b%b%b" % (before, number, members, splice.dumps(text), after)

    def _growth_of(self, block: Block) -> tuple[bytes, bytes, bytes] | None:
        """What stands before, between and behind the number and the text of a delta."""
        name, place, more = "", {}, b""
        if block.kind == "text":
            name, place, more = "output_text", {"content_index": 0}, b',"logprobs":[]'
        elif block.kind == "refusal":
            name, place = "refusal", {"content_index": 0}
        elif block.kind == "thought" and self._head.wants_summary:
            name, place = "reasoning_summary_text", {"summary_index": 0}
        elif block.kind == "thought":
            name, place = "reasoning_text", {"content_index": 0}
        else:
            name = _ARGUMENT_EVENTS.get(_tool_kind(block), "")
        if not name or not self._head.stream:
            return None
        type = f"response.{name}.delta"
        before = f'event: {type}\ndata: {{"type":"{type}","sequence_number":'.encode()
        members = b"," + splice.dumps({**self._part, **place})[1:-1] + b',"delta":'
        return before, members, more + b"}\n\n"

    def _done(self, block: Block) -> bytes:
        self._open = None
        item = self._item(block, "completed")
        self._items.append(item)
        if not self._head.stream:
            return b""
        made = b"".join(self._closing(block))
        return made + self._event("response.output_item.done", output_index=block.index, item=item)

    def _closing(self, block: Block) -> list[bytes]:
        text = block.text
        match block.kind:
            case "text" | "refusal" as said:
                texts = {"text": text, "logprobs": []} if said == "text" else {"refusal": text}
                return [
                    self._event(
                        f"response.{_TEXTS[said]}.done",
                        **self._part,
                        content_index=0,
                        **texts,
                    ),
                    self._event(
                        "response.content_part.done",
                        **self._part,
                        content_index=0,
                        part=self._content(block, text),
                    ),
                ]
            case "thought" if self._head.wants_summary:
                summary = {"type": "summary_text", "text": text}
                return [
                    self._event(
                        "response.reasoning_summary_text.done",
                        **self._part,
                        summary_index=0,
                        text=text,
                    ),
                    self._event(
                        "response.reasoning_summary_part.done",
                        **self._part,
                        summary_index=0,
                        part=summary,
                    ),
                ]
            case "thought" if text:
                return [
                    self._event(
                        "response.reasoning_text.done", **self._part, content_index=0, text=text
                    )
                ]
            case "thought":
                return []
        kind = _tool_kind(block)
        name = _ARGUMENT_EVENTS.get(kind)
        member = "input" if kind is ToolKind.CUSTOM else "arguments"
        text = text if kind is ToolKind.CUSTOM else whole_numbers(text)
        return (
            [self._event(f"response.{name}.done", **self._part, **{member: text})] if name else []
        )

    def _item(self, block: Block, status: str, *, empty: bool = False) -> dict[str, Any]:
        id, text = self._id(block), "" if empty else block.text
        if block.kind in _TEXTS:
            content = [] if empty else [self._content(block, text)]
            return {
                "id": id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": content,
            }
        if block.kind == "thought":
            return self._thought(block, id, text)
        free = _tool_kind(block) is ToolKind.CUSTOM
        return _call(block, id, text if free else whole_numbers(text), status)

    def _content(self, block: Block, text: str) -> dict[str, Any]:
        """The part of a message that a text is; its links may come when it is complete."""
        if block.kind == "refusal":
            return {"type": "refusal", "refusal": text}
        links = self._annotations.setdefault(block.index, []) if text else []
        return {"type": "output_text", "text": text, "annotations": links, "logprobs": []}

    def _thought(self, block: Block, id: str, text: str) -> dict[str, Any]:
        item: dict[str, Any] = {"id": id, "type": "reasoning", "summary": []}
        if text and self._head.wants_summary:
            item["summary"] = [{"type": "summary_text", "text": text}]
        elif text:
            item["content"] = [{"type": "reasoning_text", "text": text}]
        return item | {"encrypted_content": self._head.handle(block.nth)}

    def _id(self, block: Block) -> str:
        prefix = "ctc_" if _tool_kind(block) is ToolKind.CUSTOM else _PREFIXES[block.kind]
        return f"{prefix}{self._head.id}{block.index:02d}"

    # -- the response ----------------------------------------------------------------------------

    def _response(
        self, status: str, output: list[dict[str, Any]], usage: Usage | None = None
    ) -> dict[str, Any]:
        return {
            "id": client_response_id(self._head.id),
            "object": "response",
            "created_at": self._head.created,
            "status": status,
            "model": self._head.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "temperature": None,
            "top_p": None,
            "usage": _usage(usage) if usage is not None else None,
        }

    def _event(self, type: str, /, **members: Any) -> bytes:
        if not self._head.stream:
            return b""
        data = {"type": type, "sequence_number": self._sequence, **members}
        self._sequence += 1
        return b"event: " + type.encode() + b"\ndata: " + splice.dumps(data) + b"\n\n"


_ARGUMENT_EVENTS = {
    ToolKind.FUNCTION: "function_call_arguments",
    ToolKind.CUSTOM: "custom_tool_call_input",
}


def _tool_kind(block: Block) -> ToolKind:
    return block.tool.kind if block.tool is not None else ToolKind.FUNCTION


def _call(block: Block, id: str, arguments: str, status: str) -> dict[str, Any]:
    tool, kind = block.tool, _tool_kind(block)
    item: dict[str, Any] = {"id": id, "type": _TYPES[kind], "status": status, "call_id": block.id}
    if kind is ToolKind.SEARCH:
        return item | {"execution": "client", "arguments": _loaded(arguments)}
    item["name"] = tool.name if tool is not None else ""
    if tool is not None and tool.namespace:
        item["namespace"] = tool.namespace
    return item | {"input" if kind is ToolKind.CUSTOM else "arguments": arguments}


def _loaded(arguments: str) -> Any:
    return splice.loads(arguments.encode()) if arguments else {}


def _usage(usage: Usage) -> dict[str, Any]:
    spent, made = usage.input or 0, usage.output or 0
    return {
        "input_tokens": spent,
        "input_tokens_details": {
            "cached_tokens": usage.cached or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": spent + made,
    }
