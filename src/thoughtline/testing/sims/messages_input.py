"""A Messages request, read and checked field by field, before any rule about thinking.

`read` gives a `Call`: what the simulator acts on, with every message as a list of blocks. What does
not fit is a `Problem` in the words of api.anthropic.com: the path, a colon, what should be there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from thoughtline.testing.sims.messages_rows import (
    EMPTY,
    TWICE,
    UNANSWERED,
    UNASKED,
    Model,
    Row,
)
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.values import Tool, decode

_KINDS: dict[str, tuple[type, ...]] = {
    "a valid string": (str,),
    "a valid list": (list,),
    "a valid dictionary": (dict,),
    "a valid integer": (int,),
    "a valid boolean": (bool,),
}
_STRING, _LIST, _OBJECT, _INTEGER, _BOOLEAN = _KINDS

PARAMETERS: dict[str, str | None] = {
    "cache_control": None,
    "container": None,
    "context_management": None,
    "fallbacks": None,
    "inference_geo": None,
    "max_tokens": _INTEGER,
    "mcp_servers": _LIST,
    "messages": _LIST,
    "metadata": _OBJECT,
    "model": _STRING,
    "output_config": _OBJECT,
    "output_format": None,
    "service_tier": _STRING,
    "speed": _STRING,
    "stop_sequences": _LIST,
    "stream": _BOOLEAN,
    "system": None,
    "temperature": None,
    "thinking": _OBJECT,
    "tool_choice": _OBJECT,
    "tools": _LIST,
    "top_k": None,
    "top_p": None,
}
BLOCKS: dict[str, dict[str, str]] = {
    "text": {"text": _STRING},
    "thinking": {"signature": _STRING, "thinking": _STRING},
    "redacted_thinking": {"data": _STRING},
    "tool_use": {"id": _STRING, "name": _STRING, "input": _OBJECT},
    "tool_result": {"tool_use_id": _STRING},
}
OTHERS = (
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "document",
    "fallback",
    "image",
    "mcp_tool_result",
    "mcp_tool_use",
    "search_result",
    "server_tool_use",
    "tool_reference",
    "tool_addition",
    "tool_removal",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
)
THOUGHTS = ("thinking", "redacted_thinking")
BOTH_SAMPLINGS = (
    "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
)
_TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

Block = dict[str, Any]


class Message(NamedTuple):
    """One message, its content always as blocks."""

    role: str
    blocks: tuple[Block, ...]

    def of(self, *kinds: str) -> list[Block]:
        """Its blocks of these types."""
        return [block for block in self.blocks if block["type"] in kinds]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    body: dict[str, Any]
    model: Model
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    stream: bool
    parallel: bool


def read(raw: bytes, row: Row, *, counting: bool = False) -> Call:
    """Read a request body; one that only counts tokens needs no `max_tokens`.

    Raises:
        Problem: it is not what the API documents.
    """
    body = _document(raw)
    for name, value in body.items():
        if name not in PARAMETERS:
            raise Problem(400, f"{name}: Extra inputs are not permitted")
        kind = PARAMETERS[name]
        if kind is not None and (value is not None or name in ("model", "messages", "max_tokens")):
            expect(value, kind, name)
    required = ["messages", "model"]
    required += ["max_tokens"] if row.anthropic and not counting else []
    for name in required:
        if name not in body:
            raise Problem(400, f"{name}: Field required")
    if body.get("max_tokens", 1) < 1:
        raise Problem(400, "max_tokens: Input should be greater than or equal to 1")
    if row.anthropic and None not in (body.get("temperature"), body.get("top_p")):
        raise Problem(400, BOTH_SAMPLINGS)
    messages = tuple(_message(one, at, row) for at, one in enumerate(body["messages"]))
    _system(body.get("system"))
    tools = _tools(body.get("tools") or [])
    _order(messages)
    choice = body.get("tool_choice") or {}
    return Call(
        body=body,
        model=_model(body["model"], row),
        messages=messages,
        tools=() if choice.get("type") == "none" else tools,
        stream=body.get("stream") is True,
        parallel=choice.get("disable_parallel_tool_use") is not True,
    )


def expect(value: object, kind: str, path: str) -> None:
    """Check a type."""
    fits = isinstance(value, _KINDS[kind])
    if not fits or (kind == _INTEGER and isinstance(value, bool)):
        raise Problem(400, f"{path}: Input should be {kind}")


def blocks_of(content: object) -> tuple[Block, ...]:
    """Content as blocks, whichever way it was written."""
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    return tuple(content) if isinstance(content, list) else ()


def text_of(message: Message) -> str:
    """What is visible of a message."""
    return "\n".join(str(block["text"]) for block in message.of("text"))


def _document(raw: bytes) -> dict[str, Any]:
    try:
        body = decode(raw)
    except ValueError as error:
        raise Problem(400, f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Problem(400, "Input should be a valid dictionary or object to extract fields from")
    return body


def _model(name: str, row: Row) -> Model:
    # A dated name is the same model: claude-sonnet-4-5-20250929.
    for model in sorted(row.models, key=lambda one: -len(one.name)):
        if re.fullmatch(re.escape(model.name) + r"(-\d{8}|-latest)?", name):
            return model
    raise Problem(404, f"model: {name}")


def _message(value: Any, at: int, row: Row) -> Message:
    path = f"messages.{at}"
    if not isinstance(value, dict):
        raise Problem(400, f"{path}: Input should be a valid dictionary")
    for name in ("role", "content"):
        if name not in value:
            raise Problem(400, f"{path}.{name}: Field required")
    if value["role"] not in ("user", "assistant", "system"):
        raise Problem(400, f"{path}.role: Input should be 'user', 'assistant' or 'system'")
    content = value["content"]
    if not isinstance(content, str | list):
        raise Problem(400, f"{path}.content: Input should be a valid list")
    if isinstance(content, list):
        for index, block in enumerate(content):
            _block(block, f"{path}.content.{index}", row)
            _belongs(block["type"], f"{path}.content.{index}", value["role"])
    return Message(value["role"], blocks_of(content))


def _block(block: Any, path: str, row: Row) -> None:
    if not isinstance(block, dict):
        raise Problem(400, f"{path}: Input should be a valid dictionary")
    if "type" not in block:
        raise Problem(400, f"{path}.type: Field required")
    kind = block["type"]
    if not isinstance(kind, str) or kind not in (*BLOCKS, *OTHERS):
        tags = ", ".join(f"'{tag}'" for tag in sorted((*BLOCKS, *OTHERS)))
        raise Problem(
            400,
            f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected"
            f" tags: {tags}",
        )
    for name, expected in BLOCKS.get(kind, {}).items():
        if name == "signature" and not row.anthropic:
            continue  # DeepSeek's is a request id, and nobody reads it
        if name not in block:
            raise Problem(400, f"{path}.{kind}.{name}: Field required")
        expect(block[name], expected, f"{path}.{kind}.{name}")
    if kind == "text" and not block["text"]:
        raise Problem(400, "messages: text content blocks must be non-empty")
    if kind == "tool_use" and _TOOL_ID.fullmatch(block["id"]) is None:
        raise Problem(400, f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _belongs(kind: str, path: str, role: str) -> None:
    """Each role has its blocks."""
    if role != "assistant" and kind in (*THOUGHTS, "tool_use"):
        raise Problem(400, f"{path}: `{kind}` blocks can only be in `assistant` messages")
    if role != "user" and kind == "tool_result":
        raise Problem(400, f"{path}: `tool_result` blocks can only be in `user` messages")


def _system(value: object) -> None:
    if value is None or isinstance(value, str):
        return
    expect(value, _LIST, "system")
    given: list[Any] = value if isinstance(value, list) else []
    for at, block in enumerate(given):
        if not isinstance(block, dict) or not isinstance(block.get("text"), str):
            raise Problem(400, f"system.{at}.text: Input should be a valid string")


def _tools(value: Sequence[Any]) -> tuple[Tool, ...]:
    tools = []
    for at, tool in enumerate(value):
        expect(tool, _OBJECT, f"tools.{at}")
        if tool.get("type") not in (None, "custom"):
            continue
        path = f"tools.{at}.custom"
        if "name" not in tool:
            raise Problem(400, f"{path}.name: Field required")
        expect(tool["name"], _STRING, f"{path}.name")
        if _TOOL_NAME.fullmatch(tool["name"]) is None:
            pattern = "^[a-zA-Z0-9_-]{1,128}$"
            raise Problem(400, f"{path}.name: String should match pattern '{pattern}'")
        if "input_schema" not in tool:
            raise Problem(400, f"{path}.input_schema: Field required")
        expect(tool["input_schema"], _OBJECT, f"{path}.input_schema")
        tools.append(Tool(tool["name"], tool["input_schema"]))
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise Problem(400, "tools: Tool names must be unique.")
    return tuple(tools)


def _order(messages: Sequence[Message]) -> None:
    """Who speaks when, and which result belongs to which call."""
    if not messages:
        raise Problem(400, "messages: at least one message is required")
    if messages[0].role == "assistant":
        raise Problem(400, 'messages: first message must use the "user" role')
    asked: list[str] = []
    ever: set[str] = set()
    for at, message in enumerate(messages):
        if message.role == "system":
            continue  # it has rules of its own
        if not message.blocks and (at < len(messages) - 1 or message.role == "user"):
            raise Problem(400, EMPTY.format(at=at))
        answered = _results(message, at, asked)
        unanswered = [one for one in asked if one not in answered]
        if unanswered and message.role != "assistant":
            raise Problem(400, UNANSWERED.format(at=at - 1, ids=", ".join(unanswered)))
        uses = [block["id"] for block in message.of("tool_use")]
        for one in uses:
            if one in ever:
                raise Problem(400, f"messages.{at}: `tool_use` ids must be unique")
            ever.add(one)
        asked = [*unanswered, *uses]
    if asked:
        raise Problem(400, UNANSWERED.format(at=len(messages) - 1, ids=", ".join(asked)))


def _results(message: Message, at: int, asked: Sequence[str]) -> list[str]:
    answered: list[str] = []
    for index, block in enumerate(message.blocks):
        if block["type"] != "tool_result":
            continue
        path, name = f"messages.{at}.content.{index}", block["tool_use_id"]
        if name in answered:
            raise Problem(400, TWICE.format(path=path, id=name))
        if name not in asked:
            raise Problem(400, UNASKED.format(path=path, id=name))
        answered.append(name)
    return answered
