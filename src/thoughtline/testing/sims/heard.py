"""What a model hears in a request: the user's last words, and what tools have answered since.

Reads the body of any of the four dialects, and nothing in it makes it raise: a script acts on it
after the simulator has judged the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from thoughtline.testing.sims.values import decode

_ASIDE = re.compile(r"<([a-z]+[-_][a-z_-]+)>.*?</\1>\s*", re.DOTALL)
"""What coding tools put into a user's message: `<system-reminder>`, `<environment_context>`, …"""
_FOLDER = re.compile(rb"(?:[Ww]orking (?:in the )?directory:?\s+|<cwd>)`?(/[^\s\"<`\\]*)")
"""Where a coding tool says that it works."""


class Answered(NamedTuple):
    """What one tool has answered."""

    name: str
    text: str


class Heard(NamedTuple):
    """What a model goes by."""

    asked: str = ""
    """The user's last words, without what their tool puts around them."""
    answered: tuple[Answered, ...] = ()
    """What tools have answered since."""
    schema: Any = None
    """The JSON schema that the answer has to follow, if the request has one."""
    folder: str = ""
    """The folder that the user's tool works in, if it says so."""


def listen(body: bytes) -> Heard:
    """Read a request's body."""
    try:
        request = decode(body)
    except ValueError:
        return Heard()
    if not isinstance(request, dict):
        return Heard()
    asked, answered = "", []
    names: dict[str, str] = {}
    for role, kind, value in _parts(request):
        if kind == "call":
            names[str(value.get("id"))] = str(value.get("name"))
        elif kind == "result":
            name = names.get(str(value.get("id"))) or str(value.get("name") or "")
            answered.append(Answered(name, value["text"]))
        elif role == "user" and (words := _ASIDE.sub("", value).strip()):
            asked, answered = words, []
    folder = _FOLDER.search(body)
    return Heard(
        asked,
        tuple(answered),
        _schema(request),
        folder[1].decode("utf-8", "replace").rstrip(".,") if folder else "",
    )


def _parts(request: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Role, kind and value of everything that was said, called or answered."""
    turns = request.get("messages") or request.get("input") or request.get("contents") or []
    if isinstance(turns, str):
        yield "user", "text", turns
        return
    for turn in turns if isinstance(turns, list) else []:
        if not isinstance(turn, dict):
            continue
        role = str(turn.get("role") or "")
        content = turn.get("content", turn.get("parts"))
        for call in turn.get("tool_calls") or []:
            yield role, "call", {"id": call.get("id"), **(call.get("function") or {})}
        if role == "tool":
            yield role, "result", {"id": turn.get("tool_call_id"), "text": text_in(content)}
        elif not role:
            yield from _item(turn)
        else:
            yield from _content(role, content)


def _content(role: str, content: Any) -> Iterator[tuple[str, str, Any]]:
    said: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "tool_use":
            yield role, "call", part
        elif isinstance(part, dict) and part.get("type") == "tool_result":
            text = text_in(part.get("content"))
            yield role, "result", {"id": part.get("tool_use_id"), "text": text}
        elif isinstance(part, dict) and isinstance(answer := part.get("functionResponse"), dict):
            yield role, "result", {**answer, "text": text_in(answer.get("response"))}
        else:
            said.append(text_in(part))
    if any(said):
        yield role, "text", "\n".join(text for text in said if text)


def _item(item: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """An item of the Responses API that is no message."""
    kind = str(item.get("type"))
    if kind.endswith("_call"):
        yield "", "call", {"id": item.get("call_id"), "name": item.get("name")}
    elif kind.endswith("_call_output"):
        yield "", "result", {"id": item.get("call_id"), "text": text_in(item.get("output"))}


def text_in(value: Any) -> str:
    """The text in a content of any shape, also where a tool has put JSON into it."""
    if isinstance(value, str):
        return _told_as_json(value) or value
    if isinstance(value, list):
        return "\n".join(text for part in value if (text := text_in(part)))
    if isinstance(value, dict):
        for name in ("text", "output", "content", "result", "error"):
            if name in value:
                return text_in(value[name])
    return ""


def _told_as_json(text: str) -> str:
    if text[:1] not in "[{" or len(text) > 1 << 20:
        return ""
    try:
        return text_in(decode(text.encode()))
    except ValueError:
        return ""


def _schema(request: dict[str, Any]) -> Any:
    """Where the four dialects put the schema of a structured answer."""
    for path in (
        ("response_format", "json_schema", "schema"),
        ("text", "format", "schema"),
        ("output_config", "format", "schema"),
        ("generationConfig", "responseJsonSchema"),
        ("generationConfig", "responseSchema"),
    ):
        value: Any = request
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return value
    return None
