"""A running tool loop told as plain text: the last resort where its thoughts cannot be shown.

Some models go on with a tool loop only behind the thoughts that led to its calls. When those are
lost and thinking cannot be switched off, the calls and results since the last message of a person
are told in one message of theirs: nothing is lost but the form. Messages bodies only; pure.
"""

from typing import Any

from thoughtline import splice
from thoughtline.dialects.content import joined
from thoughtline.dialects.messages_patch import THINKING
from thoughtline.gateway.rewrites import listed


def flattened(body: bytes) -> bytes:
    """The body with its running loop told in a message of the user; itself where there is none."""
    messages = listed(body, "messages")
    start = max((at for at, (_, message) in enumerate(messages) if _asks(message)), default=-1)
    rest = messages[start + 1 :]
    if not any(_blocks(message, "tool_use") for _, message in rest):
        return body
    told = [block for _, message in rest for block in _told(message)]
    raw = splice.dumps({"role": "user", "content": told})
    return splice.apply(body, [(rest[0][0].start, rest[-1][0].end, raw)])


def _asks(message: Any) -> bool:
    """Whether a person says something, and not a tool."""
    user = isinstance(message, dict) and message.get("role") == "user"
    return user and not _blocks(message, "tool_result")


def _blocks(message: Any, type: str) -> list[dict[str, Any]]:
    return [block for block in _content(message) if block.get("type") == type]


def _content(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


def _told(message: Any) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for block in _content(message):
        match block.get("type"):
            case kind if kind in THINKING:
                continue
            case "tool_use":
                asked = splice.dumps(block.get("input")).decode()
                told.append(_text(f"<tool_call name={block.get('name')!r}>{asked}</tool_call>"))
            case "tool_result":
                told += _answer(block)
            case "text" if not block.get("text"):
                continue
            case _:
                told.append({key: value for key, value in block.items() if key != "cache_control"})
    return told


def _answer(block: dict[str, Any]) -> list[dict[str, Any]]:
    """A tool's answer: its text told, its pictures shown."""
    content = block.get("content")
    elements = content if isinstance(content, list) else [content]
    words = [e for e in elements if isinstance(e, str) or _of(e, "text")]
    shown = [e for e in elements if isinstance(e, dict) and not _of(e, "text")]
    return [_text(f"<tool_result>{joined(words)}</tool_result>"), *shown]


def _of(element: Any, type: str) -> bool:
    return isinstance(element, dict) and element.get("type") == type


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
