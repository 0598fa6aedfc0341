"""A Responses request, read and checked field by field, before any rule about reasoning.

`read` gives a `Create`: the parameters a simulator acts on and the input items, each with the bytes
it came in. What does not fit is a `Problem` in the words of api.openai.com: which parameter, what
was expected, what was found.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_oddities import SERVED
from thoughtline.testing.sims.spelling import elements, fields
from thoughtline.testing.sims.values import Tool, decode

STRING, ARRAY, OBJECT, BOOLEAN = "a string", "an array", "an object", "a boolean"
INTEGER, DECIMAL, NULL = "an integer", "a decimal", "null"

_NAMES: dict[type, str] = {
    str: STRING,
    list: ARRAY,
    dict: OBJECT,
    bool: BOOLEAN,
    int: INTEGER,
    float: DECIMAL,
    type(None): NULL,
}

# Every parameter of `POST /v1/responses` that clients were seen to send, and its type.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "background": (BOOLEAN,),
    "client_metadata": (OBJECT,),
    "context_management": (ARRAY, OBJECT),
    "conversation": (STRING, OBJECT),
    "include": (ARRAY,),
    "input": (ARRAY, STRING),
    "instructions": (STRING, ARRAY),
    "max_output_tokens": (INTEGER,),
    "max_tool_calls": (INTEGER,),
    "metadata": (OBJECT,),
    "model": (STRING,),
    "parallel_tool_calls": (BOOLEAN,),
    "previous_response_id": (STRING,),
    "prompt": (OBJECT,),
    "prompt_cache_key": (STRING,),
    "prompt_cache_options": (OBJECT,),
    "prompt_cache_retention": (STRING,),
    "reasoning": (OBJECT,),
    "safety_identifier": (STRING,),
    "service_tier": (STRING,),
    "store": (BOOLEAN,),
    "stream": (BOOLEAN,),
    "stream_options": (OBJECT,),
    "temperature": (DECIMAL, INTEGER),
    "text": (OBJECT,),
    "tool_choice": (STRING, OBJECT),
    "tools": (ARRAY,),
    "top_logprobs": (INTEGER,),
    "top_p": (DECIMAL, INTEGER),
    "truncation": (STRING,),
    "user": (STRING,),
}
SOCKET_PARAMETERS: dict[str, tuple[str, ...]] = {"type": (STRING,), "generate": (BOOLEAN,)}
"""Those that exist on a WebSocket only, beside `stream_id` where there are lanes."""

BLOB = "reasoning.encrypted_content"
INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    BLOB,
    "message.output_text.logprobs",
)
CONTEXTS = ("auto", "current_turn", "all_turns")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")


class Item(NamedTuple):
    """One item of the conversation."""

    raw: bytes
    """As it was written."""
    value: dict[str, Any]
    where: str = ""
    """`input[3]`; nothing for an item that the server remembered."""

    @property
    def kind(self) -> str:
        """Its type; a message may leave it out, and so may a reference."""
        kind = self.value.get("type")
        if isinstance(kind, str):
            return kind
        return "message" if "role" in self.value else "item_reference"

    @property
    def id(self) -> str:
        """Its id, or nothing."""
        value = self.value.get("id")
        return value if isinstance(value, str) else ""

    @property
    def assistant(self) -> bool:
        """The model wrote this."""
        if self.kind == "message":
            return self.value.get("role") == "assistant"
        return self.kind in ("reasoning", "function_call", "custom_tool_call", *SERVED)


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    body: dict[str, Any]
    model: str
    items: tuple[Item, ...]
    previous: str | None
    store: bool
    stream: bool
    generate: bool
    included: bool
    """The sealed thoughts were asked for."""
    tools: tuple[Tool, ...]
    parallel: bool
    effort: str | None
    context: str | None


def read(raw: bytes, *, socket: bool = False, lanes: bool = False) -> Create:
    """Read a request body, or a `response.create` frame.

    Raises:
        Problem: it is not what the API documents.
    """
    body = document(raw)
    known = PARAMETERS | (SOCKET_PARAMETERS if socket else {})
    known |= {"stream_id": (STRING,)} if lanes else {}
    for name, value in body.items():
        if name not in known:
            raise Problem(
                400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name
            )
        if value is not None or name == "model":
            expect(value, known[name], name)
    if "model" not in body:
        raise missing("model")
    reasoning = _reasoning(body.get("reasoning"))
    generate = body.get("generate")
    items = _items(raw, body)
    previous = body.get("previous_response_id")
    if items is None and not (previous or body.get("prompt") or generate is False):
        raise missing("input")
    return Create(
        body=body,
        model=body["model"],
        items=items or (),
        previous=previous,
        store=body.get("store") is not False,
        stream=body.get("stream") is True,
        generate=generate is not False,
        included=BLOB in _include(body.get("include")),
        tools=_tools(body.get("tools"), body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls") is not False,
        effort=reasoning.get("effort"),
        context=reasoning.get("context"),
    )


def document(raw: bytes) -> dict[str, Any]:
    """The JSON object in these bytes."""
    try:
        body = decode(raw)
    except ValueError:
        raise Problem(
            400,
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't"
            " using your HTTP library correctly. The OpenAI API expects a JSON payload, but what"
            " was sent was not valid JSON.)",
        ) from None
    if not isinstance(body, dict):
        raise Problem(
            400,
            f"Invalid type for request body: expected an object, but got {name_of(body)} instead.",
            code="invalid_type",
        )
    return body


def name_of(value: object) -> str:
    """What the API calls a value of this type."""
    return _NAMES.get(type(value), OBJECT)


def expect(value: object, kinds: tuple[str, ...], param: str) -> None:
    """Check a type."""
    if name_of(value) in kinds:
        return
    expected = kinds[0] if len(kinds) == 1 else f"one of {' or '.join(kinds)}"
    raise Problem(
        400,
        f"Invalid type for '{param}': expected {expected}, but got {name_of(value)} instead.",
        code="invalid_type",
        param=param,
    )


def missing(param: str) -> Problem:
    """The problem that a required parameter is not there."""
    return Problem(
        400,
        f"Missing required parameter: '{param}'.",
        code="missing_required_parameter",
        param=param,
    )


def choose(value: object, choices: tuple[str, ...], param: str) -> None:
    """Check that a value is one of a few."""
    if isinstance(value, str) and value in choices:
        return
    names = [f"'{choice}'" for choice in choices]
    listed = f"{', '.join(names[:-1])}, and {names[-1]}" if len(names) > 2 else " and ".join(names)
    raise Problem(
        400,
        f"Invalid value: '{value}'. Supported values are: {listed}.",
        code="invalid_value",
        param=param,
    )


def _reasoning(value: dict[str, Any] | None) -> dict[str, Any]:
    value = value or {}
    for name, choices in (("effort", EFFORTS), ("context", CONTEXTS)):
        if value.get(name) is not None:
            expect(value[name], (STRING,), f"reasoning.{name}")
            choose(value[name], choices, f"reasoning.{name}")
    return value


def _include(value: list[Any] | None) -> list[Any]:
    for at, name in enumerate(value or ()):
        expect(name, (STRING,), f"include[{at}]")
        choose(name, INCLUDES, f"include[{at}]")
    return value or []


def _tools(value: list[Any] | None, choice: object) -> tuple[Tool, ...]:
    tools = []
    for at, tool in enumerate(value or ()):
        where = f"tools[{at}]"
        expect(tool, (OBJECT,), where)
        if "type" not in tool:
            raise missing(f"{where}.type")
        expect(tool["type"], (STRING,), f"{where}.type")
        if tool["type"] != "function":
            continue
        if "name" not in tool:
            raise missing(f"{where}.name")
        expect(tool["name"], (STRING,), f"{where}.name")
        if _TOOL_NAME.fullmatch(tool["name"]) is None:
            raise Problem(
                400,
                f"Invalid '{where}.name': string does not match pattern. Expected a string that"
                " matches the pattern '^[a-zA-Z0-9_-]+$'.",
                code="invalid_value",
                param=f"{where}.name",
            )
        tools.append(Tool(tool["name"], tool.get("parameters")))
    return () if choice == "none" else tuple(tools)


def _items(raw: bytes, body: dict[str, Any]) -> tuple[Item, ...] | None:
    given = body.get("input")
    if given is None:
        return None
    if isinstance(given, str):
        value = {"type": "message", "role": "user", "content": given}
        return (Item(msgspec.json.encode(value), value, "input[0]"),)
    for at, value in enumerate(given):
        expect(value, (OBJECT,), f"input[{at}]")
    written = elements(fields(raw).get("input", b"[]"))
    return tuple(
        Item(one, value, f"input[{at}]")
        for at, (one, value) in enumerate(zip(written, given, strict=True))
    )
