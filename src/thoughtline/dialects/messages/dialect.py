"""The Messages dialect: content is a list of blocks, and thoughts are blocks among them.

A thought is a complete `thinking` or `redacted_thinking` block, signed by its provider; an empty
one with a signature is complete. What a signature may be bound to is digested in `prefix`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import Dialect, Prefixes, Reader, Request
from thoughtline.dialects.content import (
    HINTED,
    answered_calls,
    blob,
    content_parts,
    joined_text,
    object_arguments,
    session_hints,
)
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.media import is_media
from thoughtline.dialects.messages import params as messages_params
from thoughtline.dialects.messages import patch as messages_patch
from thoughtline.dialects.messages import prefix as messages_prefix
from thoughtline.dialects.messages.answer import MessagesAnswerWriter
from thoughtline.dialects.messages.errors import error_body
from thoughtline.dialects.messages.patch import block_kind
from thoughtline.dialects.messages.reader import MessagesReader
from thoughtline.dialects.messages.rewrites import REWRITES
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.schemas import object_schema
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.token_counts import TokenCount
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Blob, Call, Carrier, Note, Origin, Part, Result, Text, Thought
from thoughtline.log.turns import Turn

_COUNTED = frozenset({"model", "messages", "system", "tools", "tool_choice", "thinking"})
"""Members of a request that the endpoint takes which counts its tokens."""
MAX_TOKENS = 8192
"""The API demands a limit; this one fits every model that thinks."""

_loads = splice.some_members(
    HINTED | {"model", "messages", "stream", "thinking"}, slices=("tools",)
)
_PLACEHOLDERS = tuple(
    f'{{"type":"thinking","thinking":{text},"signature":""}}' for text in ('""', '" "')
)
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages(Dialect):
    """The Messages dialect."""

    name = "messages"
    path_suffix = "/messages"
    count_suffix = "/messages/count_tokens"
    token_count = TokenCount(
        path="/v1/messages/count_tokens", member="input_tokens", takes=_COUNTED
    )
    credential_header = "x-api-key"
    request_headers = (("anthropic-version", "2023-06-01"),)
    models_query = "limit=1000"  # else 20
    base_url_variable = "ANTHROPIC_BASE_URL"
    thinking_on: ClassVar[Mapping[str, Any]] = {
        "thinking": {"type": "enabled", "budget_tokens": 1024}
    }
    reasoning_carrier = Carrier.BLOCK
    signed_blocks = True
    always_normalised = True
    rewrites = REWRITES
    _edits = staticmethod(messages_patch.edits)
    stream_end = re.compile(rb"message_stop")
    stream_stop = re.compile(rb'"stop_reason"\s*:\s*"[^"]')
    keepalive = b'event: ping\ndata: {"type": "ping"}\n\n'
    error_event_name = "error"

    def placeholders(self, *, every_output: bool) -> tuple[str, ...]:
        return _PLACEHOLDERS

    def read(self, body: bytes) -> Request:
        document = _loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
            raise Unreadable("expected a JSON object with a list under `messages`")
        try:
            history = document["messages"]
            parts = check_parts(history, len(body))
            turns, anchors = _turns(history)
        except RecursionError:
            raise Unreadable("nested too deeply to be read") from None
        model = document.get("model")
        return Request(
            body=body,
            model=model if isinstance(model, str) else "",
            stream=document.get("stream") is True,
            tools=splice.holds_anything(document.get("tools")),
            thinking=_thinking(document.get("thinking")),
            turns=tuple(turns),
            hints=session_hints(document),
            anchors=tuple(anchors),
            parts=parts,
        )

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[ToolSpec] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
        cache_breakpoints: bool = False,
    ) -> bytes:
        messages: list[Any] = []
        before: Sequence[Part] = ()
        for turn in map(_with_call_ids, turns, range(len(turns))):
            messages += _written_input(turn.input, before)
            own = turn.target is None or turn.target.dialect == self.name
            if content := _written_output(turn.output, own=own):
                messages.append({"role": "assistant", "content": content})
            before = turn.output
        document: dict[str, Any] = {"model": model, "max_tokens": MAX_TOKENS}
        if system:
            document["system"] = system
        document["messages"] = messages
        if tools:
            document["tools"] = [_written_tool(tool) for tool in tools]
        if stream:
            document["stream"] = True
        if cache_breakpoints:
            _mark_cached(document)
        return splice.dumps(document | dict(fields or {}))

    def rolling_prefixes(self, request: Request, after: Any = None) -> Prefixes | None:
        return messages_prefix.prefixes(request, after)

    def params(self, request: Request) -> RequestParams:
        return messages_params.read_params(request)

    def param_fields(self, params: RequestParams, takes: Capabilities) -> ParamFields:
        return messages_params.write_fields(params, takes)

    def says_media(self, part: Blob) -> bool:
        return is_media(part) and part.kind in ("image", "file")

    def answer_writer(self, head: AnswerHead) -> AnswerWriter:
        return MessagesAnswerWriter(head)

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return MessagesReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def upstream_error(self, error: UpstreamError) -> bytes:
        return error_body(error)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        error = {"type": _ERRORS.get(status, "api_error"), "message": message}
        if code:
            error["code"] = code
        return splice.dumps({"type": "error", "error": error})


# -- reading -------------------------------------------------------------------------------------


def _turns(messages: list[Any]) -> tuple[list[Turn], list[int]]:
    """Return the turns, and for each the position of its output (-1: there is none yet)."""
    turns: list[Turn] = []
    anchors: list[int] = []
    input_parts: list[Part] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            turns.append(Turn(input=tuple(input_parts), output=tuple(_output(message))))
            anchors.append(index)
            input_parts = []
        elif role != "system":
            input_parts += _input(message, role)
    if input_parts:
        turns.append(Turn(input=tuple(input_parts)))
        anchors.append(-1)
    return turns, anchors


def _output(message: dict[str, Any]) -> list[Part]:
    content = message.get("content")
    if content is None:
        return []
    return [part for block in _list(content) for part in _block(block)]


def _list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _block(block: Any) -> list[Part]:
    found = block_kind(block)
    if found == "thought":
        return [make_thought(Carrier.BLOCK, block)]
    if found == "text":
        return [Text(text=block if isinstance(block, str) else block["text"])]
    if found == "call":
        return [_call(block)]
    if not found:
        return []
    name = block.get("type") if isinstance(block, dict) else None
    return [blob(str(name or "unknown"), block)]


def _call(block: dict[str, Any]) -> Call:
    name, input, id = block.get("name"), block.get("input"), block.get("id")
    if not isinstance(input, str):
        input = splice.dumps(input).decode() if input is not None else ""
    return Call(
        name=name if isinstance(name, str) else "",
        arguments=input,
        id=id if isinstance(id, str) else "",
    )


def _input(message: Any, role: Any) -> list[Part]:
    if role != "user":
        return [blob("unknown", message)]
    content = message.get("content")
    if content is None:
        return []
    parts: list[Part] = []
    for block in _list(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            id = block.get("tool_use_id")
            parts.append(
                Result(
                    content=joined_text(block.get("content")),
                    call=id if isinstance(id, str) else "",
                    error=block.get("is_error") is True,
                )
            )
        else:
            parts += content_parts([block])
    return parts


def _thinking(switch: Any) -> bool | None:
    name = switch.get("type") if isinstance(switch, dict) else None
    return name != "disabled" if isinstance(name, str) else None


# -- writing -------------------------------------------------------------------------------------


def _with_call_ids(turn: Turn, number: int) -> Turn:
    """Return the turn with an id on every call: results of this API name their call by id."""
    if all(call.id for call in turn.calls):
        return turn
    output = tuple(
        replace(part, id=f"call_{number}_{place}")
        if isinstance(part, Call) and not part.id
        else part
        for place, part in enumerate(turn.output)
    )
    return replace(turn, output=output)


def _written_input(parts: Sequence[Part], before: Sequence[Part]) -> list[Any]:
    """Return the messages of an input, results first: the API demands that."""
    calls = [part.id for part in before if isinstance(part, Call)]
    ids = iter(answered_calls(before, parts))
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            place = next(ids)
            id = part.call if place is None else calls[place]
            block = {"type": "tool_result", "tool_use_id": id, "content": _written_result(part)}
            content.append(block | {"is_error": True} if part.error else block)
    said: list[Part] = [part for part in parts if not isinstance(part, Result)]
    notes: list[Any] = []  # the API takes instructions only behind all that a user says
    while said and isinstance(last := said[-1], Note) and (content or said[:-1]):
        notes.insert(0, {"role": "system", "content": last.text})
        said.pop()
    for part in said:
        if isinstance(part, Text | Note) and part.text:
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, Blob) and (written := _written_media(part)) is not None:
            content.append(written)
    return [{"role": "user", "content": content}, *notes] if content else notes


def _written_result(part: Result) -> Any:
    shown = [written for blob in part.media if (written := _written_media(blob)) is not None]
    if not shown:
        return part.content
    return [*([{"type": "text", "text": part.content}] if part.content else []), *shown]


def _written_media(part: Blob) -> Any:
    """Return a block; None where the part cannot be said here."""
    if part.raw:
        return msgspec.Raw(part.raw)
    source: dict[str, Any] = {"type": "url", "url": part.url}
    if part.data:
        source = {"type": "base64", "media_type": part.mime, "data": part.data}
    elif not part.url:
        return None
    if part.kind == "image":
        return {"type": "image", "source": source}
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source} | title if part.kind == "file" else None


def _written_output(parts: Sequence[Part], *, own: bool) -> list[Any]:
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier is Carrier.BLOCK:
                content.append(msgspec.Raw(part.raw))
        elif isinstance(part, Text):
            if part.text:
                content.append({"type": "text", "text": part.text})
        elif isinstance(part, Call):
            input = object_arguments(part.arguments)
            content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": input})
        elif (
            isinstance(part, Blob) and part.raw and own
        ):  # blobs of other dialects have no place here
            content.append(msgspec.Raw(part.raw))
    return content


def _written_tool(tool: ToolSpec) -> dict[str, Any]:
    schema = object_schema(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


_CACHED = {"cache_control": {"type": "ephemeral"}}


def _mark_cached(document: dict[str, Any]) -> None:
    """Ask for the instructions, the tools and the history to be cached, up to their last blocks."""
    if system := document.get("system"):
        document["system"] = [{"type": "text", "text": system, **_CACHED}]
    if tools := document.get("tools"):
        tools[-1] |= _CACHED
    asked = [message["content"] for message in document["messages"] if message["role"] == "user"]
    if asked and isinstance(asked[-1][-1], dict):
        asked[-1][-1] |= _CACHED
