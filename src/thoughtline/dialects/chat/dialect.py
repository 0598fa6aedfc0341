"""The Chat Completions dialect: one assistant message is one output, its thoughts are members.

Thoughts come under many keys and shapes here (see `Carrier`): plain strings, OpenRouter's typed
list, inline `<think>`, Mistral's chunks inside `content`, Gemini's signature on a tool call. All
of them are read, and patched under whichever one is asked for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import Dialect, Reader, Request
from thoughtline.dialects.chat import params as chat_params
from thoughtline.dialects.chat import patch as chat_patch
from thoughtline.dialects.chat.answer import ChatAnswerWriter
from thoughtline.dialects.chat.errors import error_body
from thoughtline.dialects.chat.media import written_media, written_result_media
from thoughtline.dialects.chat.message import MEMBERS, output_parts
from thoughtline.dialects.chat.reader import ChatReader
from thoughtline.dialects.chat.response import ChatBodyReader
from thoughtline.dialects.chat.rewrites import REWRITES
from thoughtline.dialects.content import (
    HINTED,
    blob,
    content_parts,
    joined_text,
    session_hints,
    shared_hint,
)
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.splice import holds_anything
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Blob, Call, Carrier, Note, Origin, Part, Result, Text, Thought
from thoughtline.log.turns import Turn


class ChatCompletions(Dialect):
    """The Chat Completions dialect."""

    name = "chat"
    path_suffix = "/chat/completions"
    path_prefix = "/v1beta/openai/"  # Google's, for its own models
    reasoning_carrier = Carrier.REASONING_CONTENT
    joins_texts = True
    signature_carrier = Carrier.EXTRA_CONTENT
    string_carriers = (Carrier.REASONING_CONTENT, Carrier.REASONING)
    rewrites = REWRITES
    _edits = staticmethod(chat_patch.edits)
    stream_end = re.compile(rb"\[DONE\]")
    stream_stop = re.compile(rb'"finish_reason"\s*:\s*"[^"]')  # some say "" until it has

    def placeholders(self, *, every_output: bool) -> tuple[str, ...]:
        return ('" "', '""') if every_output else ('""', '" "')

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
        model, hints = document.get("model"), session_hints(document)
        return Request(
            body=body,
            model=model if isinstance(model, str) else "",
            stream=document.get("stream") is True,
            tools=holds_anything(document.get("tools"))
            or holds_anything(document.get("functions")),
            thinking=_thinking(document),
            turns=tuple(turns),
            hints=hints,
            shared_hint=shared_hint(document) if hints else "",
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
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        for turn in turns:
            messages += _written_input(turn.input)
            if turn.output:
                messages.append(_written_output(turn.output))
        document: dict[str, Any] = {"model": model, "messages": messages}
        if tools:
            document["tools"] = [_written_tool(tool) for tool in tools]
        if stream:
            document |= {"stream": True, "stream_options": {"include_usage": True}}
        return splice.dumps(document | dict(fields or {}))

    def params(self, request: Request) -> RequestParams:
        return chat_params.read_params(request)

    def param_fields(self, params: RequestParams, takes: Capabilities) -> ParamFields:
        return chat_params.write_fields(params, takes)

    def answer_writer(self, head: AnswerHead) -> AnswerWriter:
        return ChatAnswerWriter(head)

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        reader = ChatReader if stream else ChatBodyReader
        return reader(clock=clock, origin=origin, sent=sent)

    def upstream_error(self, error: UpstreamError) -> bytes:
        return error_body(error)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        kind = "invalid_request_error" if status < 500 else "api_error"
        error = {"message": message, "type": kind, "param": None, "code": code or None}
        return splice.dumps({"error": error})


# -- reading -------------------------------------------------------------------------------------


def _turns(messages: list[Any]) -> tuple[list[Turn], list[int]]:
    """Return the turns, and for each the position of its output (-1: there is none yet)."""
    turns: list[Turn] = []
    anchors: list[int] = []
    input_parts: list[Part] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            turns.append(Turn(input=tuple(input_parts), output=tuple(output_parts(message))))
            anchors.append(index)
            input_parts = []
        elif role == "user":
            input_parts += content_parts(message.get("content"))
        elif role not in ("system", "developer"):
            input_parts += _input(message, role)
    if input_parts:
        turns.append(Turn(input=tuple(input_parts)))
        anchors.append(-1)
    return turns, anchors


def _input(message: Any, role: Any) -> list[Part]:
    if role in ("tool", "function"):
        id, name = message.get("tool_call_id"), message.get("name")
        return [
            Result(
                content=joined_text(message.get("content")),
                call=id if isinstance(id, str) else "",
                name=name if isinstance(name, str) else "",
            )
        ]
    return [blob("unknown", message)]


_SWITCH = ("thinking", "enable_thinking", "think")
_SWITCHES = frozenset({*_SWITCH, "chat_template_kwargs", "reasoning", "reasoning_effort"})

_loads = splice.some_members(
    HINTED | _SWITCHES | {"model", "messages", "stream"}, slices=("tools", "functions")
)


def _thinking(document: dict[str, Any]) -> bool | None:
    """Whether the client switched thinking on or off, under any key in use; None: not said."""
    if _SWITCHES.isdisjoint(document):
        return None
    template = document.get("chat_template_kwargs")
    for holder in (document, template if isinstance(template, dict) else {}):
        for key in _SWITCH:
            switch = holder.get(key)
            if isinstance(switch, bool):
                return switch
            if isinstance(switch, dict) and isinstance(switch.get("type"), str):
                return bool(switch["type"] != "disabled")
    reasoning = document.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, dict) else {}
    if isinstance(reasoning.get("enabled"), bool):
        return bool(reasoning["enabled"])
    effort = document.get("reasoning_effort", reasoning.get("effort"))
    return effort != "none" if isinstance(effort, str) else None


# -- writing -------------------------------------------------------------------------------------


def _written_input(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the messages of an input: results right behind their calls, then everything else."""
    results: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    content: list[Any] = []  # of the user's message that is being written
    for part in parts:
        if isinstance(part, Result):
            results.append({"role": "tool", "tool_call_id": part.call, "content": part.content})
            content += written_result_media(part)
        elif isinstance(part, Text):
            content.append(part.text)
        elif isinstance(part, Blob) and (written := written_media(part)):
            content.append(written)
        elif isinstance(part, Note):
            if content:
                messages.append({"role": "user", "content": _written_content(content)})
            messages.append({"role": "system", "content": part.text})
            content = []
    if content:
        messages.append({"role": "user", "content": _written_content(content)})
    return results + messages


def _written_output(parts: Sequence[Part]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}  # of the next call
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier in MEMBERS:
                message[part.carrier] = Raw(part.raw)
            elif part.carrier is Carrier.EXTRA_CONTENT:
                extra = {"extra_content": Raw(part.raw)}
            elif part.carrier is Carrier.THINK:
                content.append(splice.loads(part.raw.encode()))
            elif part.carrier is Carrier.CHUNK:
                content.append(Raw(part.raw))
        elif isinstance(part, Text):
            content.append(part.text)
        elif isinstance(part, Blob) and part.raw:
            content.append(Raw(part.raw))
        elif isinstance(part, Call):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function} | extra)
            extra = {}
    if content:
        message["content"] = _written_content(content)
    if calls:
        message["tool_calls"] = calls
    return message


def _written_content(pieces: list[Any]) -> Any:
    """Return a string where that is enough, else a list of parts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in pieces]


def _written_tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
