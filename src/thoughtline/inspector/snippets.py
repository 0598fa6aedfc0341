"""Where a session has what was searched for: a few words around it, and the turn."""

import re

from msgspec import Struct

from thoughtline.log.events import AssistantMessage, Event, ToolCall, ToolResult, UserMessage
from thoughtline.log.parts import Text

BEFORE, AFTER = 40, 120
"""Characters that are shown around what was searched for."""
_SEARCHED = frozenset({"user_message", "assistant_message", "tool_call", "tool_result"})


class Snippet(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was found, with the words around it on one line."""

    turn: str
    role: str  # user, assistant, call or result
    before: str
    match: str
    after: str


def find_snippet(event: Event, text: str) -> Snippet | None:
    """The first place in an event that has the text, whatever its case; None: it has none."""
    if event.type not in _SEARCHED:
        return None
    for role, words in _texts(event):
        found = re.search(re.escape(text), words, re.IGNORECASE)
        if found is None:
            continue
        start, end = found.span()
        before, after = words[max(0, start - BEFORE) : start], words[end : end + AFTER]
        return Snippet(
            turn=event.parent,
            role=role,
            before=("…" if start > BEFORE else "") + _line(before),
            match=_line(found[0]),
            after=_line(after) + ("…" if end + AFTER < len(words) else ""),
        )
    return None


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _texts(event: Event) -> list[tuple[str, str]]:
    match body := event.readable_body():
        case UserMessage() | AssistantMessage():
            role = "user" if isinstance(body, UserMessage) else "assistant"
            return [(role, part.text) for part in body.parts if isinstance(part, Text)]
        case ToolCall():
            return [("call", body.call.name), ("call", body.call.arguments)]
        case ToolResult():
            return [("result", body.result.content)]
    return []
