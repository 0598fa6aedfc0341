"""Which sessions match a query: the rules for every store.

A store may evaluate a query its own way (an index, a scan in SQL); these functions define the
result. Text is searched in messages, calls and results, as it reads and not as JSON spells it, and
ignoring case. Thoughts are never searched: a match would reveal what they say.
"""

from collections.abc import Sequence

import msgspec

from thoughtline.errors import Unreadable
from thoughtline.log.events import (
    AssistantMessage,
    Event,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    decode,
)
from thoughtline.log.parts import Text
from thoughtline.stores.base import SessionQuery

MAX_SCANNED = 1_000
"""How many sessions one search looks at, at most."""

TEXT_TYPES = ("user_message", "assistant_message", "tool_call", "tool_result")
"""Types of the events whose text is searched."""

RUNNING = "running"


def session_matches(query: SessionQuery, events: Sequence[Event]) -> bool:
    """Whether a session with these events matches; its id and tenant are compared by the store."""
    return (
        query.status in {None, status(events)}
        and (query.provider is None or any(_has_provider(e, query.provider) for e in events))
        and (query.model is None or any(_has_model(e, query.model) for e in events))
        and (
            query.text is None
            or any(contains_text(e.type, e.version, e.data, query.text) for e in events)
        )
    )


def status(events: Sequence[Event]) -> str | None:
    """Return how the last turn ended; None without turns."""
    for event in reversed(events):
        if event.type == "turn_started":
            return RUNNING
        if event.type == "turn_ended":
            ended = event.readable_body()
            return str(ended.outcome) if isinstance(ended, TurnEnded) else None
    return None


def _has_provider(event: Event, provider: str) -> bool:
    body = event.readable_body() if event.type == "turn_started" else None
    target = body.target if isinstance(body, TurnStarted) else None
    return target is not None and target.provider == provider


def _has_model(event: Event, model: str) -> bool:
    body = event.readable_body() if event.type in ("turn_started", "turn_ended") else None
    if isinstance(body, TurnEnded):
        return body.model == model
    target = body.target if isinstance(body, TurnStarted) else None
    return target is not None and model in (target.model, target.asked)


def contains_text(type: str, version: int, data: str, text: str) -> bool:
    """Whether the text occurs in the message, call or result of an event."""
    if type not in TEXT_TYPES:
        return False
    needle = text.casefold()
    return any(needle in text.casefold() for text in _texts(type, version, data))


def _texts(type: str, version: int, data: str) -> list[str]:
    try:
        body = decode(type, version, data)
    except Unreadable:
        return []
    match body:
        case UserMessage() | AssistantMessage():
            return [part.text for part in body.parts if isinstance(part, Text)]
        case ToolCall():
            return [body.call.name, body.call.arguments]
        case ToolResult():
            return [body.result.content]
    return []


def spellings(text: str) -> list[str]:
    """Return the text as JSON spells it, in its likely upper and lower cases.

    For a rough first search in stores that ignore the case of ASCII letters only.
    """
    cases = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize(), text.title()))
    return [msgspec.json.encode(case).decode()[1:-1] for case in cases]
