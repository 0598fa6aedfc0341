"""The Responses dialect: a flat list of items, in which a run of the model's is one output.

Reasoning items stand among calls and messages, each right before what it led to, and go back as
they came. Clients may name items by id only (`item_reference`); `expand` puts the items themselves
there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.dialects.answers import AnswerHead, AnswerWriter
from thoughtline.dialects.base import Dialect, Reader, Request, StateParams
from thoughtline.dialects.content import HINTED, is_session_id, session_hints, shared_hint
from thoughtline.dialects.error_bodies import openai_body, openai_error
from thoughtline.dialects.limits import check_parts
from thoughtline.dialects.params import ParamFields, RequestParams, ToolSpec
from thoughtline.dialects.responses import params as responses_params
from thoughtline.dialects.responses import patch as responses_patch
from thoughtline.dialects.responses.answer import ResponsesAnswerWriter
from thoughtline.dialects.responses.items import (
    Side,
    input_parts,
    output_part,
    side,
    string_member,
)
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.dialects.responses.rewrites import REWRITES
from thoughtline.dialects.responses.write import written, written_input, written_tool
from thoughtline.dialects.token_counts import TokenCount
from thoughtline.dialects.upstream_errors import ErrorKind, UpstreamError
from thoughtline.errors import Unreadable
from thoughtline.log.capabilities import Capabilities
from thoughtline.log.parts import Carrier, Origin, Part
from thoughtline.log.turns import Turn

_IN_STREAM = {"codex": frozenset({ErrorKind.CONTEXT})}
"""How a program's user agent begins: the errors that it knows by an event, and not by a status."""
_IN_FRAMES = frozenset({ErrorKind.CONTEXT, ErrorKind.RATE_LIMIT})
"""The same on a WebSocket: there Codex gives up at a rate limit that comes as an error."""
_WRONG_MEMBERS = {
    "previous_response_not_found": "previous_response_id",
    "invalid_stream_id": "stream_id",
    "websocket_stream_limit_reached": "stream_id",
    "invalid_value": "type",
}
"""Codes of errors: the member of the request that is wrong."""
_SEQUENCE_NUMBER = re.compile(rb'"sequence_number"\s*:\s*([0-9]+)')
_UNCOUNTED = frozenset(
    {"stream", "store", "include", "max_output_tokens", "temperature", "top_p", "metadata"}
)
"""Members of a request that the endpoint does not take which counts its tokens."""
_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Members that may replace `input`: the server stores what is asked."""


class _Item(Struct, gc=False):
    role: Any = None


class _Params(StateParams):
    input: list[_Item] | str | None = None


_loads = splice.some_members(
    HINTED | {"model", "input", "stream", "reasoning", *_ELSEWHERE}, slices=("tools",)
)
_PARAMS = tuple(name for name in StateParams.__struct_fields__ if name != "system_items")
_decode_params = msgspec.json.Decoder(_Params).decode


class Responses(Dialect):
    """The Responses dialect."""

    name = "responses"
    path_suffix = "/responses"
    model_places = (("model",), ("response", "model"))
    count_suffix = "/responses/input_tokens"
    count_members: ClassVar[Mapping[str, Any]] = {"object": "response.input_tokens"}
    token_count = TokenCount(
        path="/v1/responses/input_tokens", member="input_tokens", leaves=_UNCOUNTED
    )
    history_member = "input"
    reasoning_carrier = Carrier.ITEM
    reasoning_before_each_call = True
    joins_texts = True
    item_list = True
    server_state = True
    websockets = True
    always_normalised = True
    rewrites = REWRITES
    effort_members: ClassVar[Mapping[str, tuple[str, ...]]] = {"reasoning": ("effort",)}
    _edits = staticmethod(responses_patch.edits)
    stream_end = re.compile(rb"response\.(?:completed|incomplete|failed)")
    error_event_name = "error"
    translated_headers = (("x-reasoning-included", "true"),)  # the input tokens count thoughts

    def keepalive_after(self, opening: bytes, last: bytes) -> bytes:
        """Repeat that the response is in progress: some clients wait for events, not for bytes.

        It has the number of the event before it, so that those that follow go on from there.
        """
        if not opening:
            return self.keepalive
        numbers = _SEQUENCE_NUMBER.findall(last)
        number = b',"sequence_number":' + numbers[-1] if numbers else b""
        begun = opening.replace(b"\n", b" ")  # a line of the event, and never a part of a string
        data = b'{"type":"response.in_progress"' + number + b',"response":' + begun + b"}"
        return b"event: response.in_progress\ndata: " + data + b"\n\n"

    def read(self, body: bytes) -> Request:
        document = _loads(body)
        if not isinstance(document, dict):
            raise Unreadable("expected a JSON object")
        try:
            history = _items(document)
            parts = check_parts(history, len(body))
            turns, anchors = _turns(history)
        except RecursionError:
            raise Unreadable("the items are nested too deeply") from None
        return Request(
            body=body,
            model=string_member(document, "model"),
            stream=document.get("stream") is True,
            tools=splice.holds_anything(document.get("tools")),
            thinking=self.thinking_switch(document),
            turns=tuple(turns),
            hints=_hints(document),
            shared_hint=shared_hint(document),
            previous_response=string_member(document, "previous_response_id"),
            anchors=tuple(anchors),
            parts=parts,
        )

    def state_params(self, body: bytes) -> StateParams:
        """Read in one pass that skips the rest of the body: it is done for every request."""
        try:
            params: StateParams = (found := _decode_params(body))
            items = found.input if isinstance(found.input, list) else ()
            roles = [item.role for item in items]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            document = splice.loads(body)
            if not isinstance(document, dict):
                raise Unreadable("expected a JSON object") from None
            output_part: dict[str, Any] = {name: document.get(name) for name in _PARAMS}
            params = StateParams(**output_part)
            given = document.get("input")
            roles = [i.get("role") for i in _list(given) if isinstance(i, dict)]
        params.system_items = "system" in roles or "developer" in roles
        return params

    def expand(self, request: Request, items: Mapping[str, str]) -> bytes:
        return responses_patch.expand(request, items)

    def thinking_switch(self, members: Mapping[str, Any]) -> bool | None:
        reasoning = members.get("reasoning")
        effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
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
        items: list[Any] = []
        call_types: dict[str, str] = {}  # call id → its item's type, where a result must know
        for turn in turns:
            items += written_input(turn.input, call_types)
            for part in turn.output:
                items += written(part, call_types)
        document: dict[str, Any] = {"model": model, "input": items}
        if system:
            document["instructions"] = system
        if tools:
            document["tools"] = [written_tool(tool) for tool in tools]
        # The server keeps nothing and seals its thoughts for us to keep.
        document |= {"store": False, "include": ["reasoning.encrypted_content"]}
        if stream:
            document["stream"] = True
        return splice.dumps(document | dict(fields or {}))

    def params(self, request: Request) -> RequestParams:
        return responses_params.read_params(request)

    def param_fields(self, params: RequestParams, takes: Capabilities) -> ParamFields:
        return responses_params.write_fields(params, takes)

    def answer_writer(self, head: AnswerHead) -> AnswerWriter:
        return ResponsesAnswerWriter(head)

    def reader(self, *, stream: bool, clock: Clock, origin: Origin, sent: int) -> Reader:
        return ResponsesReader(stream=stream, clock=clock, origin=origin, sent=sent)

    def upstream_error(self, error: UpstreamError) -> bytes:
        return openai_error(error)

    def error_in_stream(self, kind: ErrorKind, program: str, *, socket: bool) -> bool:
        if socket:
            return kind in _IN_FRAMES
        name = program.lower()
        return any(name.startswith(known) and kind in told for known, told in _IN_STREAM.items())

    def error(self, status: int, message: str, *, code: str = "") -> bytes:
        type = "invalid_request_error" if status < 500 else "server_error"
        return openai_body(message, type, code or None, _WRONG_MEMBERS.get(code))


def _items(document: dict[str, Any]) -> list[Any]:
    given = document.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, list):
        return given
    if given is None and any(document.get(key) for key in _ELSEWHERE):
        return []
    raise Unreadable("expected a string or a list of items under `input`")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _turns(items: list[Any]) -> tuple[list[Turn], list[tuple[int, ...]]]:
    """Return the turns, and for each the positions of the items that its output is made of.

    Every item that is not the model's ends an output, also a system message.
    """
    turns: list[Turn] = []
    anchors: list[tuple[int, ...]] = []
    question: list[Part] = []
    answer: list[Part] = []
    places: list[int] = []
    for index, item in enumerate(items):
        whose = side(item)
        if whose is Side.OUTPUT:
            answer.append(output_part(item))
            places.append(index)
            continue
        if places:
            turns.append(Turn(input=tuple(question), output=tuple(answer)))
            anchors.append(tuple(places))
            question, answer, places = [], [], []
        if whose is Side.INPUT:
            question += input_parts(item)
    if question or places:
        turns.append(Turn(input=tuple(question), output=tuple(answer)))
        anchors.append(tuple(places))
    return turns, anchors


def _hints(document: dict[str, Any]) -> tuple[str, ...]:
    conversation = document.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    named = (conversation,) if is_session_id(conversation) else ()
    return tuple(dict.fromkeys((*session_hints(document), *named)))
