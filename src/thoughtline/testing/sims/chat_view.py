"""A Chat Completions request, read: the first thing every provider does, in its own strictness.

`read` checks the types of everything that is looked at later and gives either a `View` or the first
`Flaw`; how a flaw is worded is the business of `chat_errors`. Whatever a `View` offers can be
used without another type check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from thoughtline.testing.sims.values import Tool, decode

Message = dict[str, Any]
OPENAI_ROLES = ("system", "developer", "user", "assistant", "tool")


class Flaw(NamedTuple):
    """Something in the body that is not what it must be."""

    kind: str
    """`json`, `type`, `missing` or `role`."""
    path: tuple[str | int, ...]
    expected: str = ""
    got: Any = None
    size: int = 0
    """The bytes of the body."""


class View(NamedTuple):
    """A request whose shape is sound."""

    body: dict[str, Any]
    model: str
    messages: list[Message]
    tools: tuple[Tool, ...]
    stream: bool

    def assistants(self) -> Iterator[tuple[int, Message]]:
        """Each assistant message with its index."""
        return ((at, m) for at, m in enumerate(self.messages) if m["role"] == "assistant")

    @property
    def loop(self) -> int:
        """Where the current tool loop starts: after the last user message."""
        users = [at for at, m in enumerate(self.messages) if m["role"] == "user"]
        return users[-1] + 1 if users else 0

    @property
    def first_user_text(self) -> str:
        """What the conversation began with."""
        return next((text_of(m) for m in self.messages if m["role"] == "user"), "")

    def option(self, *path: str) -> Any:
        """A value in the body, or None when something on the way is missing."""
        value: Any = self.body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def text_of(message: Message) -> str:
    """The visible text of a message, whether a string or parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(p["text"] for p in parts if isinstance(p.get("text"), str))


def calls_of(message: Message) -> list[dict[str, Any]]:
    """The tool calls of a message."""
    return message.get("tool_calls") or []


def read(body: bytes, roles: tuple[str, ...] = OPENAI_ROLES) -> View | Flaw:
    """Read a body, or say what is wrong with it."""
    try:
        parsed = decode(body)
    except ValueError as error:
        return Flaw("json", (), str(error), size=len(body))
    flaw = next(_flaws(parsed, roles), None)
    if flaw is not None:
        return flaw._replace(size=len(body))
    return View(
        parsed,
        parsed["model"],
        parsed["messages"],
        tuple(_tools(parsed.get("tools") or [])),
        parsed.get("stream") is True,
    )


def _tools(tools: list[dict[str, Any]]) -> Iterator[Tool]:
    for tool in tools:
        if isinstance(function := tool.get("function"), dict):
            yield Tool(function["name"], function.get("parameters"))


def _flaws(body: Any, roles: tuple[str, ...]) -> Iterator[Flaw]:
    if not isinstance(body, dict):
        yield Flaw("type", (), "an object", body)
        return
    yield from _field(body, (), "model", str, "a string")
    yield from _field(body, (), "messages", list, "an array")
    yield from _field(body, (), "stream", bool, "a boolean", optional=True)
    yield from _field(body, (), "tools", list, "an array", optional=True)
    yield from _field(body, (), "stream_options", dict, "an object", optional=True)
    if not body["messages"]:
        yield Flaw("missing", ("messages",), "at least one message", [])
    for at, tool in enumerate(body.get("tools") or []):
        yield from _tool(tool, ("tools", at))
    for at, message in enumerate(body["messages"]):
        yield from _message(message, ("messages", at), roles)


def _message(message: Any, path: tuple[str | int, ...], roles: tuple[str, ...]) -> Iterator[Flaw]:
    if not isinstance(message, dict):
        yield Flaw("type", path, "an object", message)
        return
    yield from _field(message, path, "role", str, "a string")
    if message["role"] not in roles:
        yield Flaw("role", (*path, "role"), ", ".join(f"'{r}'" for r in roles), message["role"])
    if not isinstance(message.get("content"), str | list | None):
        yield Flaw("type", (*path, "content"), "a string or an array", message["content"])
    if message["role"] in ("user", "system") and message.get("content") is None:
        yield Flaw("missing", (*path, "content"), "content")
    if isinstance(message.get("content"), list):
        for at, part in enumerate(message["content"]):
            if not isinstance(part, dict):
                yield Flaw("type", (*path, "content", at), "an object", part)
    if message["role"] == "tool":
        yield from _field(message, path, "tool_call_id", str, "a string")
    yield from _field(message, path, "tool_calls", list, "an array", optional=True)
    for at, call in enumerate(message.get("tool_calls") or []):
        yield from _call(call, (*path, "tool_calls", at))


def _call(call: Any, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    if not isinstance(call, dict):
        yield Flaw("type", path, "an object", call)
        return
    yield from _field(call, path, "id", str, "a string")
    yield from _field(call, path, "function", dict, "an object")
    function = call["function"]
    yield from _field(function, (*path, "function"), "name", str, "a string")
    yield from _field(function, (*path, "function"), "arguments", str, "a string")


def _tool(tool: Any, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    if not isinstance(tool, dict):
        yield Flaw("type", path, "an object", tool)
        return
    if tool.get("type") == "function" or "function" in tool:
        yield from _field(tool, path, "function", dict, "an object")
        yield from _field(tool["function"], (*path, "function"), "name", str, "a string")


def _field(
    owner: dict[str, Any],
    path: tuple[str | int, ...],
    name: str,
    kind: type,
    expected: str,
    *,
    optional: bool = False,
) -> Iterator[Flaw]:
    value = owner.get(name)
    if optional and value is None:
        return
    if name not in owner:
        yield Flaw("missing", (*path, name), expected)
    elif not isinstance(value, kind):
        yield Flaw("type", (*path, name), expected, value)
