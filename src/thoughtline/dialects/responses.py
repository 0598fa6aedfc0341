"""Responses: a conversation is a flat list of items, and a run of the model's own is one output.

Reasoning items stand among calls and messages, each right before what it led to, and go back as
they came. Clients may name items by id only (`item_reference`); `expand` puts the items themselves
there. What an item is, is said in `responses_items`; bodies are patched in `responses_patch`;
output is read in `responses_reader`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from thoughtline import splice
from thoughtline.clock import Clock
from thoughtline.dialects import responses_patch
from thoughtline.dialects.base import Reader, Request, Revision, Tool
from thoughtline.dialects.content import group, hints
from thoughtline.dialects.responses_items import ARGUMENTS, Side, heard, kind, said, side, string
from thoughtline.dialects.responses_reader import ResponsesReader
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob, Call, Carrier, Origin, Part, Result, Text, Thought
from thoughtline.turns import Turn

_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Members that may stand in for `input`: what is asked is kept by the server."""


class Responses:
    """The Responses dialect."""

    name = "responses"

    def read(self, body: bytes) -> Request:
        document = splice.loads(body)
        if not isinstance(document, dict):
            raise Unreadable("expected a JSON object")
        try:
            turns, anchors = _turns(_items(document))
        except RecursionError:
            raise Unreadable("the items are nested too deeply") from None
        return Request(
            body=body,
            model=string(document, "model"),
            stream=document.get("stream") is True,
            tools=bool(document.get("tools")),
            thinking=_thinking(document.get("reasoning")),
            turns=tuple(turns),
            hints=_hints(document),
            group=group(document),
            previous=string(document, "previous_response_id"),
            anchors=tuple(anchors),
        )

    def patch(
        self,
        request: Request,
        revisions: Sequence[Revision],
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        return responses_patch.patch(request, revisions, fields or {})

    def expand(self, request: Request, items: Mapping[str, str]) -> bytes:
        """The same body with references replaced by the items (id → JSON text) that are given."""
        return responses_patch.expand(request, items)

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
        items: list[Any] = []
        odd: dict[str, str] = {}  # call id → its item's type, where a result must know
        for turn in turns:
            items += _written_input(turn.input, odd)
            for part in turn.output:
                items += _written(part, odd)
        document: dict[str, Any] = {"model": model, "input": items}
        if system:
            document["instructions"] = system
        if tools:
            document["tools"] = [_written_tool(tool) for tool in tools]
        # The server keeps nothing and seals its thoughts for us to keep.
        document |= {"store": False, "include": ["reasoning.encrypted_content"]}
        if stream:
            document["stream"] = True
        return splice.dumps(document | dict(fields or {}))

    def prefixes(self, request: Request) -> Sequence[str]:
        return ()  # seals of this shape are bound to an account, not to what came before

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return ResponsesReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        type = "invalid_request_error" if status < 500 else "server_error"
        error = {"message": message, "type": type, "param": None, "code": code or None}
        return splice.dumps({"error": error})

    def ping(self) -> bytes:
        return b": keep-alive\n\n"


# -- reading -------------------------------------------------------------------------------------


def _items(document: dict[str, Any]) -> list[Any]:
    given = document.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, list):
        return given
    if given is None and any(document.get(key) for key in _ELSEWHERE):
        return []
    raise Unreadable("expected a string or a list of items under `input`")


def _turns(items: list[Any]) -> tuple[list[Turn], list[tuple[int, ...]]]:
    """Cut the list into turns, and say which items each output is made of.

    Whatever is not the model's own ends its output, also a system message: what comes after that
    was another answer.
    """
    turns: list[Turn] = []
    anchors: list[tuple[int, ...]] = []
    question: list[Part] = []
    answer: list[Part] = []
    places: list[int] = []
    for index, item in enumerate(items):
        whose = side(item)
        if whose is Side.OUTPUT:
            answer.append(said(item))
            places.append(index)
            continue
        if places:
            turns.append(Turn(input=tuple(question), output=tuple(answer)))
            anchors.append(tuple(places))
            question, answer, places = [], [], []
        if whose is Side.INPUT:
            question += heard(item)
    if question or places:
        turns.append(Turn(input=tuple(question), output=tuple(answer)))
        anchors.append(tuple(places))
    return turns, anchors


def _thinking(reasoning: Any) -> bool | None:
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort != "none" if isinstance(effort, str) else None


def _hints(document: dict[str, Any]) -> tuple[str, ...]:
    conversation = document.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    named = (conversation,) if isinstance(conversation, str) and conversation else ()
    return tuple(dict.fromkeys((*hints(document), *named)))


# -- writing -------------------------------------------------------------------------------------


def _written_input(parts: Sequence[Part], odd: Mapping[str, str]) -> list[Any]:
    items: list[Any] = []
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            items.append(_written_result(part, odd))
        elif isinstance(part, Text):
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, Blob) and _own(part.raw).startswith("input_"):
            content.append(_verbatim(part.raw))
    if content:
        words = all(isinstance(element, dict) for element in content)
        told = "".join(element["text"] for element in content) if words else content
        items.append({"role": "user", "content": told})
    return items


def _written_result(part: Result, odd: Mapping[str, str]) -> Any:
    if _own(part.raw).endswith("_call_output"):
        return _verbatim(part.raw)
    type = odd.get(part.call, "function_call") + "_output"
    return {"type": type, "call_id": part.call, "output": part.content}


def _written(part: Part, odd: dict[str, str]) -> list[Any]:
    """One item of an output.

    Calls and messages go without their ids: then servers have nothing to pair up, whichever
    thoughts go along.
    """
    if isinstance(part, Thought):
        own = part.carrier in (Carrier.ITEM, Carrier.REFERENCE)
        return [_verbatim(part.raw)] if own else []
    if isinstance(part, Text):
        message = {"type": "message", "role": "assistant", "content": part.text}
        phase = string(_loaded(part.raw), "phase")
        return [message | {"phase": phase} if phase else message]
    if isinstance(part, Call):
        return [_written_call(part, odd)]
    return [_verbatim(part.raw)] if isinstance(part, Blob) and _hosted(_own(part.raw)) else []


def _hosted(type: str) -> bool:
    """Whether a blob's type is one of this API's: blobs of other shapes have no place here."""
    return type.endswith(("_call", "_output")) or type.startswith(("mcp_", "compaction"))


def _written_call(part: Call, odd: dict[str, str]) -> Any:
    type = _own(part.raw)
    if type.endswith("_call") and type != "function_call":
        odd[part.id] = type
        if type not in ARGUMENTS:
            return _verbatim(part.raw)
    else:
        type = "function_call"
    return {
        "type": type,
        "call_id": part.id,
        "name": part.name,
        ARGUMENTS[type]: part.arguments,
    }


def _loaded(raw: str) -> dict[str, Any]:
    try:
        value = splice.loads(raw.encode()) if raw else None
    except (Unreadable, UnicodeEncodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _own(raw: str) -> str:
    """The type of a part's item, where the part came from an API of this shape."""
    return kind(_loaded(raw))


def _verbatim(raw: str) -> Raw:
    return Raw(raw.encode())


def _written_tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,  # the API's own default refuses schemas with optional members
    }
