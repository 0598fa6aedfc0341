"""Messages: content is a list of blocks, and thoughts are blocks among them.

A thought is a whole `thinking` or `redacted_thinking` block, signed by its provider; an empty one
with a signature is complete. Streams are read in `messages_reader`; what a signature may be bound
to is digested in `messages_prefix`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects import messages_patch, messages_prefix
from thoughtline.dialects.base import Reader, Request, Revision, Tool
from thoughtline.dialects.content import blob, hints, joined, texts
from thoughtline.dialects.messages_patch import kind
from thoughtline.dialects.messages_reader import MessagesReader
from thoughtline.dialects.pairs import answered
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob, Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn

MAX_TOKENS = 8192
"""The API demands a limit; this one fits every model that thinks."""

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages:
    """The Messages dialect."""

    name = "messages"

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
            tools=bool(document.get("tools")),
            thinking=_thinking(document.get("thinking")),
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
        return messages_patch.patch(request, revisions, fields or {})

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
        messages: list[Any] = []
        before: Sequence[Part] = ()
        for turn in map(_named, turns, range(len(turns))):
            if said := _written_input(turn.input, before):
                messages.append({"role": "user", "content": said})
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
        return splice.dumps(document | dict(fields or {}))

    def prefixes(self, request: Request) -> Sequence[str]:
        return messages_prefix.prefixes(request)

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return MessagesReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        error = {"type": _ERRORS.get(status, "api_error"), "message": message}
        if code:
            error["code"] = code
        return splice.dumps({"type": "error", "error": error})

    def ping(self) -> bytes:
        return b'event: ping\ndata: {"type": "ping"}\n\n'


# -- reading -------------------------------------------------------------------------------------


def _turns(messages: list[Any]) -> tuple[list[Turn], list[int]]:
    """The history as turns, and where each one's output stands."""
    turns: list[Turn] = []
    anchors: list[int] = []
    heard: list[Part] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant":
            turns.append(Turn(input=tuple(heard), output=tuple(_output(message))))
            anchors.append(index)
            heard = []
        elif role != "system":
            heard += _input(message, role)
    if heard:
        turns.append(Turn(input=tuple(heard)))
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
    found = kind(block)
    if found == "thought":
        return [thought(Carrier.BLOCK, block)]
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
                    content=joined(block.get("content")),
                    call=id if isinstance(id, str) else "",
                    error=block.get("is_error") is True,
                )
            )
        else:
            parts += texts([block])
    return parts


def _thinking(switch: Any) -> bool | None:
    name = switch.get("type") if isinstance(switch, dict) else None
    return name != "disabled" if isinstance(name, str) else None


# -- writing -------------------------------------------------------------------------------------


def _named(turn: Turn, number: int) -> Turn:
    """The turn with an id on every call: this API has no other way to say what a result answers."""
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
    """Everything since the last answer as one message, results first: the API wants them there."""
    calls = [part.id for part in before if isinstance(part, Call)]
    ids = iter(answered(before, parts))
    results: list[Any] = []
    said: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            place = next(ids)
            id = part.call if place is None else calls[place]
            block = {"type": "tool_result", "tool_use_id": id, "content": part.content}
            results.append(block | {"is_error": True} if part.error else block)
        elif isinstance(part, Text) and part.text:
            said.append({"type": "text", "text": part.text})
        elif isinstance(part, Blob) and part.raw:
            said.append(msgspec.Raw(part.raw))
    return results + said


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
            input = _arguments(part.arguments)
            content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": input})
        elif isinstance(part, Blob) and part.raw and own:  # what other dialects made is not ours
            content.append(msgspec.Raw(part.raw))
    return content


def _arguments(text: str) -> Any:
    """A call's arguments as they were emitted; the API takes nothing but an object."""
    try:
        usable = isinstance(splice.loads(text.encode()), dict)
    except (Unreadable, UnicodeEncodeError):
        usable = False
    return msgspec.Raw(text) if usable else {}


def _written_tool(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters or {"type": "object"}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}
