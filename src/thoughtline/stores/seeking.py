"""Which sessions a query means: the same for every store.

What a store can ask its own way (an index, a scan in SQL) it may; these functions say what the
answer has to be. Text is sought where people and tools speak, as it reads and not as it is
spelled in JSON, and whatever its case. Thoughts are never sought: an answer would tell of them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from thoughtline.errors import Unreadable
from thoughtline.events import (
    AssistantMessage,
    Event,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    decode,
)
from thoughtline.parts import Text
from thoughtline.stores.base import Query

SCAN = 1_000
"""Sessions that one search looks at, at most."""

SAID = ("user_message", "assistant_message", "tool_call", "tool_result")
"""Events in which text is sought."""

RUNNING = "running"


def matches(which: Query, events: Sequence[Event]) -> bool:
    """Whether a session is meant; its tenant is looked at elsewhere."""
    return (
        which.status in {None, status(events)}
        and (which.provider is None or any(_by(e, which.provider) for e in events))
        and (which.model is None or any(_of(e, which.model) for e in events))
        and (which.text is None or any(says(e.type, e.version, e.data, which.text) for e in events))
    )


def status(events: Sequence[Event]) -> str | None:
    """How the last turn ended; None without turns."""
    for event in reversed(events):
        if event.type == "turn_started":
            return RUNNING
        if event.type == "turn_ended":
            ended = _body(event)
            return str(ended.outcome) if isinstance(ended, TurnEnded) else None
    return None


def _by(event: Event, provider: str) -> bool:
    body = _body(event) if event.type == "turn_started" else None
    target = body.target if isinstance(body, TurnStarted) else None
    return target is not None and target.provider == provider


def _of(event: Event, model: str) -> bool:
    body = _body(event) if event.type in ("turn_started", "turn_ended") else None
    if isinstance(body, TurnEnded):
        return body.model == model
    target = body.target if isinstance(body, TurnStarted) else None
    return target is not None and model in (target.model, target.asked)


def says(type: str, version: int, data: str, text: str) -> bool:
    """Whether the text stands in what is said, called or answered here."""
    if type not in SAID:
        return False
    needle = text.casefold()
    return any(needle in said.casefold() for said in _spoken(type, version, data))


def _spoken(type: str, version: int, data: str) -> list[str]:
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


def _body(event: Event) -> Any:
    try:
        return event.body()
    except Unreadable:
        return None


def spellings(text: str) -> list[str]:
    """The text as JSON has it, in the cases that it is likely to have.

    For stores that ignore the case of ASCII letters only: a first, rough look.
    """
    cases = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize(), text.title()))
    return [msgspec.json.encode(case).decode()[1:-1] for case in cases]
