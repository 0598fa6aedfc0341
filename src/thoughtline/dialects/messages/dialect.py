"""The Messages dialect: content is a list of blocks, and thoughts are blocks among them.

A thought is a complete `thinking` or `redacted_thinking` block, signed by its provider; an empty
one with a signature is complete. What a signature may be bound to is digested in `prefix`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import Dialect, Prefixes, Reader, Request
from thoughtline.dialects.content import (
    HINTED,
    blob,
    content_parts,
    joined_text,
    session_hints,
)
from thoughtline.dialects.error_bodies import anthropic_error
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.media import is_media
from thoughtline.dialects.messages import params as messages_params
from thoughtline.dialects.messages import patch as messages_patch
from thoughtline.dialects.messages import prefix as messages_prefix
from thoughtline.dialects.messages.answer import MessagesAnswerWriter
from thoughtline.dialects.messages.patch import block_blob, block_kind
from thoughtline.dialects.messages.reader import MessagesReader
from thoughtline.dialects.messages.rewrites import REWRITES
from thoughtline.dialects.messages.write import (
    mark_cached,
    with_call_ids,
    written_input,
    written_output,
    written_tool,
)
from thoughtline.dialects.model_lists import ANTHROPIC
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.token_counts import TokenCount
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.dialects.values import string
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Part, Result, Text
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
    always_versioned = True
    model_shape = ANTHROPIC
    model_places = (("model",), ("message", "model"))
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
    effort_members: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "thinking": (),
        "output_config": ("effort",),
    }
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
            thinking=self.thinking_switch(document),
            turns=tuple(turns),
            hints=session_hints(document),
            anchors=tuple(anchors),
            parts=parts,
        )

    def thinking_switch(self, members: Mapping[str, Any]) -> bool | None:
        switch = members.get("thinking")
        name = switch.get("type") if isinstance(switch, dict) else None
        return name != "disabled" if isinstance(name, str) else None

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
        for turn in map(with_call_ids, turns, range(len(turns))):
            messages += written_input(turn.input, before)
            own = turn.target is None or turn.target.dialect == self.name
            if content := written_output(turn.output, own=own):
                messages.append({"role": "assistant", "content": content})
            before = turn.output
        document: dict[str, Any] = {"model": model, "max_tokens": MAX_TOKENS}
        if system:
            document["system"] = system
        document["messages"] = messages
        if tools:
            document["tools"] = [written_tool(tool) for tool in tools]
        if stream:
            document["stream"] = True
        if cache_breakpoints:
            mark_cached(document)
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
        return anthropic_error(error)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        error = {"type": _ERRORS.get(status, "api_error"), "message": message}
        if code:
            error["code"] = code
        return splice.dumps({"type": "error", "error": error})


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
    return [block_blob(block)]


def _call(block: dict[str, Any]) -> Call:
    input = block.get("input")
    if not isinstance(input, str):
        input = splice.dumps(input).decode() if input is not None else ""
    return Call(name=string(block.get("name")), arguments=input, id=string(block.get("id")))


def _input(message: Any, role: Any) -> list[Part]:
    if role != "user":
        return [blob("unknown", message)]
    content = message.get("content")
    if content is None:
        return []
    parts: list[Part] = []
    for block in _list(content):
        if isinstance(block, dict) and block.get("type") == "tool_result":
            parts.append(
                Result(
                    content=joined_text(block.get("content")),
                    call=string(block.get("tool_use_id")),
                    error=block.get("is_error") is True,
                )
            )
        else:
            parts += content_parts([block])
    return parts
