"""Chat Completions: one assistant message is one output, its thoughts are keys beside `content`.

Thoughts come under many keys and shapes here (see `Carrier`): plain strings, OpenRouter's typed
list, inline `<think>`, Mistral's chunks inside `content`, Gemini's signature on a tool call. All
of them are read, and patched under whichever one is asked for. Streams are read in `chat_reader`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects import chat_patch
from thoughtline.dialects.base import Reader, Request, Revision, Tool
from thoughtline.dialects.chat_message import MEMBERS, output
from thoughtline.dialects.chat_reader import ChatReader
from thoughtline.dialects.chat_whole import ChatBody
from thoughtline.dialects.content import blob, group, hints, joined, texts
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob, Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn


class Chat:
    """The Chat Completions dialect."""

    name = "chat"

    def read(self, body: bytes) -> Request:
        document = splice.loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
            raise Unreadable("expected a JSON object with a list under `messages`")
        try:
            turns, anchors = _turns(document["messages"])
        except RecursionError:
            raise Unreadable("nested too deeply to be read") from None
        model = document.get("model")
        return Request(
            body=body,
            model=model if isinstance(model, str) else "",
            stream=document.get("stream") is True,
            tools=bool(document.get("tools") or document.get("functions")),
            thinking=_thinking(document),
            turns=tuple(turns),
            hints=hints(document),
            group=group(document),
            anchors=tuple(anchors),
        )

    def patch(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        return chat_patch.patch(request, revisions, fields or {})

    def write(
        self,
        turns: Sequence[Turn],
        *,
        model: str,
        system: str = "",
        tools: Sequence[Tool] = (),
        stream: bool = True,
        fields: Mapping[str, Any] | None = None,
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

    def prefixes(self, request: Request) -> Sequence[str]:
        return ()

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        made = ChatReader if stream else ChatBody
        return made(clock=clock, origin=origin, sent=sent)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        kind = "invalid_request_error" if status < 500 else "api_error"
        error = {"message": message, "type": kind, "param": None, "code": code or None}
        return splice.dumps({"error": error})

    def ping(self) -> bytes:
        return b": keep-alive\n\n"


# -- reading -------------------------------------------------------------------------------------


def _turns(messages: list[Any]) -> tuple[list[Turn], list[int]]:
    """The path of turns, and for each the position of its output (-1: there is none yet)."""
    turns: list[Turn] = []
    anchors: list[int] = []
    heard: list[Part] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            turns.append(Turn(input=tuple(heard), output=tuple(output(message))))
            anchors.append(index)
            heard = []
        elif role == "user":
            heard += texts(message.get("content"))
        elif role not in ("system", "developer"):
            heard += _input(message, role)
    if heard:
        turns.append(Turn(input=tuple(heard)))
        anchors.append(-1)
    return turns, anchors


def _input(message: Any, role: Any) -> list[Part]:
    if role in ("tool", "function"):
        id, name = message.get("tool_call_id"), message.get("name")
        return [
            Result(
                content=joined(message.get("content")),
                call=id if isinstance(id, str) else "",
                name=name if isinstance(name, str) else "",
            )
        ]
    return [blob("unknown", message)]


_SWITCH = ("thinking", "enable_thinking", "think")
_SWITCHES = frozenset({*_SWITCH, "chat_template_kwargs", "reasoning", "reasoning_effort"})


def _thinking(document: dict[str, Any]) -> bool | None:
    """Whether the client switched thinking on or off, in any of the spellings in use."""
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
    messages: list[dict[str, Any]] = []
    said: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            messages.append({"role": "tool", "tool_call_id": part.call, "content": part.content})
        elif isinstance(part, Text):
            said.append(part.text)
        elif isinstance(part, Blob) and part.raw:
            said.append(Raw(part.raw))
    if said:
        messages.append({"role": "user", "content": _written_content(said)})
    return messages


def _written_output(parts: Sequence[Part]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    riding: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier in MEMBERS:
                message[part.carrier] = Raw(part.raw)
            elif part.carrier is Carrier.EXTRA_CONTENT:
                riding = {"extra_content": Raw(part.raw)}
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
            calls.append({"id": part.id, "type": "function", "function": function} | riding)
            riding = {}
    if content:
        message["content"] = _written_content(content)
    if calls:
        message["tool_calls"] = calls
    return message


def _written_content(pieces: list[Any]) -> Any:
    """A string where that is enough, else a list of parts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in pieces]


def _written_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
