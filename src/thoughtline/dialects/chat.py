"""Chat Completions: one assistant message is one output, its thoughts are keys beside `content`.

Thoughts come under many keys and shapes here (see `Carrier`): plain strings, OpenRouter's typed
list, inline `<think>`, Mistral's chunks inside `content`, Gemini's signature on a tool call. All
of them are read, and patched under whichever one is asked for. Streams are read in `chat_reader`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects import chat_patch
from thoughtline.dialects.base import Reader, Request, Revision, Tool
from thoughtline.dialects.chat_patch import MEMBERS
from thoughtline.dialects.chat_reader import ChatReader
from thoughtline.dialects.content import blob, hints, joined, texts
from thoughtline.dialects.inline import inner, split
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.parts import Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn

_SYSTEM = frozenset({"system", "developer"})


class Chat:
    """The Chat Completions dialect."""

    name = "chat"

    def read(self, body: bytes) -> Request:
        document = splice.loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
            raise Unreadable("expected a JSON object with a list under `messages`")
        turns: list[Turn] = []
        anchors: list[int] = []
        heard: list[Part] = []
        for index, message in enumerate(document["messages"]):
            role = message.get("role") if isinstance(message, dict) else None
            if role == "assistant":
                turns.append(Turn(input=tuple(heard), output=tuple(_output(message))))
                anchors.append(index)
                heard = []
            elif role not in _SYSTEM:
                heard += _input(message, role)
        if heard:
            turns.append(Turn(input=tuple(heard)))
            anchors.append(-1)
        model = document.get("model")
        return Request(
            body=body,
            model=model if isinstance(model, str) else "",
            stream=document.get("stream") is True,
            tools=bool(document.get("tools") or document.get("functions")),
            thinking=_thinking(document),
            turns=tuple(turns),
            hints=hints(document),
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
        return ChatReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        kind = "invalid_request_error" if status < 500 else "api_error"
        error = {"message": message, "type": kind, "param": None, "code": code or None}
        return splice.dumps({"error": error})

    def ping(self) -> bytes:
        return b": keep-alive\n\n"


# -- reading -------------------------------------------------------------------------------------


def _output(message: dict[str, Any]) -> list[Part]:
    parts: list[Part] = []
    for carrier in MEMBERS:
        value = message.get(carrier)
        if value is not None:
            parts.append(thought(carrier, value))
    parts += _content(message.get("content"))
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            parts += _call(call)
    if isinstance(legacy := message.get("function_call"), dict):
        parts += _call({"function": legacy})
    return parts


def _content(content: Any) -> list[Part]:
    if isinstance(content, str):
        inline, rest = split(content)
        parts: list[Part] = [thought(Carrier.THINK, inline, text=inner(inline))] if inline else []
        return [*parts, Text(text=rest)] if rest else parts
    if not isinstance(content, list):
        return [] if content is None else [blob("unknown", content)]
    return [part for element in content for part in _element(element)]


def _element(element: Any) -> list[Part]:
    if isinstance(element, dict):
        if element.get("type") == "thinking":
            return [thought(Carrier.CHUNK, element)]
        if isinstance(element.get("text"), str):
            return _content(element["text"])
        return [blob(str(element.get("type", "unknown")), element)]
    return _content(element) if isinstance(element, str) else [blob("unknown", element)]


def _call(call: Any) -> list[Part]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return [blob("unknown", call)]
    name, arguments, id = function.get("name"), function.get("arguments"), call.get("id")
    if not isinstance(arguments, str):
        arguments = splice.dumps(arguments).decode() if arguments is not None else ""
    made = Call(
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        id=id if isinstance(id, str) else "",
    )
    extra = call.get("extra_content")
    return [thought(Carrier.EXTRA_CONTENT, extra), made] if extra is not None else [made]


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
    if role == "user":
        return texts(message.get("content"))
    return [blob("unknown", message)]


def _thinking(document: dict[str, Any]) -> bool | None:
    """Whether the client switched thinking on or off, in any of the spellings in use."""
    switch = document.get("thinking")
    if isinstance(switch, dict) and isinstance(switch.get("type"), str):
        return bool(switch["type"] != "disabled")
    if isinstance(document.get("enable_thinking"), bool):
        return bool(document["enable_thinking"])
    effort = document.get("reasoning_effort")
    return bool(effort != "none") if isinstance(effort, str) else None


# -- writing -------------------------------------------------------------------------------------


def _written_input(parts: Sequence[Part]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    said: list[str] = []
    for part in parts:
        if isinstance(part, Result):
            messages.append({"role": "tool", "tool_call_id": part.call, "content": part.content})
        elif isinstance(part, Text):
            said.append(part.text)
    if said:
        messages.append({"role": "user", "content": "".join(said)})
    return messages


def _written_output(parts: Sequence[Part]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    extra: Any = None
    for part in parts:
        if isinstance(part, Thought):
            value = splice.loads(part.raw.encode())
            if part.carrier in MEMBERS:
                message[part.carrier] = value
            elif part.carrier is Carrier.EXTRA_CONTENT:
                extra = value
            else:
                content.append(value)
        elif isinstance(part, Text):
            content.append(part.text)
        elif isinstance(part, Call):
            function = {"name": part.name, "arguments": part.arguments}
            call = {"id": part.id, "type": "function", "function": function}
            calls.append(call if extra is None else call | {"extra_content": extra})
            extra = None
    if content:
        message["content"] = _written_content(content)
    if calls:
        message["tool_calls"] = calls
    return message


def _written_content(pieces: list[Any]) -> Any:
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in pieces]


def _written_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
