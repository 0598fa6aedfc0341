"""The Chat Completions dialect: one assistant message is one output, its thoughts are members.

Thoughts come under many keys and shapes here (see `Carrier`): plain strings, OpenRouter's typed
list, inline `<think>`, Mistral's chunks inside `content`, Gemini's signature on a tool call. All
of them are read, and patched under whichever one is asked for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import Dialect, Reader, Request
from thoughtline.dialects.chat import params as chat_params
from thoughtline.dialects.chat import patch as chat_patch
from thoughtline.dialects.chat.answer import ChatAnswerWriter
from thoughtline.dialects.chat.message import output_parts
from thoughtline.dialects.chat.reader import ChatReader
from thoughtline.dialects.chat.response import ChatBodyReader
from thoughtline.dialects.chat.rewrites import REWRITES
from thoughtline.dialects.chat.write import written_input, written_output, written_tool
from thoughtline.dialects.content import (
    HINTED,
    blob,
    content_parts,
    joined_text,
    session_hints,
    shared_hint,
)
from thoughtline.dialects.error_bodies import openai_body, openai_error
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.splice import holds_anything
from thoughtline.dialects.upstream_errors import UpstreamError
from thoughtline.dialects.values import string
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Carrier, Origin, Part, Result
from thoughtline.log.turns import Turn


class ChatCompletions(Dialect):
    """The Chat Completions dialect."""

    name = "chat"
    path_suffix = "/chat/completions"
    path_neighbour = "/embeddings"
    path_prefix = "/v1beta/openai/"  # Google's, for its own models
    reasoning_carrier = Carrier.REASONING_CONTENT
    joins_texts = True
    signature_carrier = Carrier.EXTRA_CONTENT
    string_carriers = (Carrier.REASONING_CONTENT, Carrier.REASONING)
    rewrites = REWRITES
    effort_members: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(("reasoning", "reasoning_effort", "thinking", "think"), ()),
        **dict.fromkeys(("enable_thinking", "thinking_budget"), ()),
        "chat_template_kwargs": ("thinking", "enable_thinking"),
    }
    calls_member = "tool_calls"
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
            thinking=self.thinking_switch(document),
            turns=tuple(turns),
            hints=hints,
            shared_hint=shared_hint(document) if hints else "",
            anchors=tuple(anchors),
            parts=parts,
        )

    def thinking_switch(self, members: Mapping[str, Any]) -> bool | None:
        if _SWITCHES.isdisjoint(members):
            return None
        template = members.get("chat_template_kwargs")
        for holder in (members, template if isinstance(template, dict) else {}):
            for key in _SWITCH:
                switch = holder.get(key)
                if isinstance(switch, bool):
                    return switch
                if isinstance(switch, dict) and isinstance(switch.get("type"), str):
                    return bool(switch["type"] != "disabled")
        reasoning = members.get("reasoning")
        reasoning = reasoning if isinstance(reasoning, dict) else {}
        if isinstance(reasoning.get("enabled"), bool):
            return bool(reasoning["enabled"])
        effort = members.get("reasoning_effort", reasoning.get("effort"))
        return effort != "none" if isinstance(effort, str) else None

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
            messages += written_input(turn.input)
            if turn.output:
                messages.append(written_output(turn.output))
        document: dict[str, Any] = {"model": model, "messages": messages}
        if tools:
            document["tools"] = [written_tool(tool) for tool in tools]
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
        return openai_error(error)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        kind = "invalid_request_error" if status < 500 else "api_error"
        return openai_body(message, kind, code or None)


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
        content = joined_text(message.get("content"))
        id, name = string(message.get("tool_call_id")), string(message.get("name"))
        return [Result(content=content, call=id, name=name)]
    return [blob("unknown", message)]


_SWITCH = ("thinking", "enable_thinking", "think")
_SWITCHES = frozenset({*_SWITCH, "chat_template_kwargs", "reasoning", "reasoning_effort"})

_loads = splice.some_members(
    HINTED | _SWITCHES | {"model", "messages", "stream"}, slices=("tools", "functions")
)
