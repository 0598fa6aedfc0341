"""One chunk of a streamed Chat Completions response, decoded.

The structs name only what is looked at, and everything in them may be of any type. `decode` is
strict and fast; what it refuses, `lenient` may still read: half an emoji, or a list where an object
is expected. Bad output of a provider must not break a stream that is passing through.
"""

import json
from typing import Any

import msgspec
from msgspec import Struct


class ChatDelta(Struct, gc=False):
    """What is new in a message."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    reasoning_text: Any = None
    reasoning_opaque: Any = None
    tool_calls: Any = None
    function_call: Any = None


class ChatChoice(Struct, gc=False):
    """One of the answers; there is hardly ever more than one."""

    delta: ChatDelta | None = None
    index: Any = 0
    finish_reason: Any = None
    usage: Any = None


class ChatChunk(Struct, gc=False):
    """One event."""

    choices: list[ChatChoice] | None = None
    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None


decode = msgspec.json.Decoder(ChatChunk).decode
REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)
"""What `decode` raises."""


def lenient(data: bytes) -> ChatChunk | None:
    """A chunk of which at least some is what it should be; None for everything else."""
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    choices = document.get("choices")
    if not isinstance(choices, list):
        choices = []
    found = [_choice(choice) for choice in choices if isinstance(choice, dict)]
    return ChatChunk(**_known(ChatChunk, document) | {"choices": found})


def _choice(choice: dict[str, Any]) -> ChatChoice:
    delta = choice.get("delta")
    made = ChatDelta(**_known(ChatDelta, delta)) if isinstance(delta, dict) else None
    return ChatChoice(**_known(ChatChoice, choice) | {"delta": made})


def _known(struct: type[Struct], value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in struct.__struct_fields__ if key in value}
