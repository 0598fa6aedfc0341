"""The body of a Chat Completions response that came whole, decoded.

`decode` is strict and takes one pass: the members of the message stay raw, so that a thought among
them is its value and its JSON text at once. What it refuses, `lenient` may still read: half an
emoji, other types than expected, thoughts that stand deeper inside.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline import splice
from thoughtline.dialects.chat_message import NAMES, Raws, exact
from thoughtline.errors import Unreadable
from thoughtline.parts import Carrier


class ChatAnswer(Struct):
    """What is looked at."""

    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    finish_reason: Any = None
    message: dict[str, Any] | None = None  # of the first choice
    raws: Raws = {}  # the provider's own spelling of the thoughts in it


class _Choice(Struct):
    message: dict[str, Raw] | None = None
    finish_reason: Any = None


class _Body(Struct):
    id: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    choices: list[_Choice] | None = None


_body = msgspec.json.Decoder(_Body).decode
_value = msgspec.json.Decoder().decode
REFUSED = (msgspec.MsgspecError, ValueError, RecursionError)
"""What `decode` raises."""


def decode(body: bytes) -> ChatAnswer:
    """A body as it should be, with no thoughts but those that are members of the message."""
    read = _body(body)
    choice = read.choices[0] if read.choices else None
    if choice is None or choice.message is None:
        return ChatAnswer(read.id, read.model, read.usage, read.error)
    message: dict[str, Any] = {}
    raws: dict[tuple[Carrier, int], str] = {}
    for name, raw in choice.message.items():
        message[name] = _value(raw)
        if name in NAMES:
            raws[NAMES[name], 0] = str(raw, "utf-8")
    if _deep(message):
        raise ValueError("thoughts may stand deeper inside")
    return ChatAnswer(
        read.id, read.model, read.usage, read.error, choice.finish_reason, message, raws
    )


def _deep(message: dict[str, Any]) -> bool:
    """Whether there is a list that thoughts may stand in, or calls that they may ride on."""
    if isinstance(message.get("content"), list):
        return True
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any("extra_content" in c for c in calls if type(c) is dict)


def lenient(body: bytes) -> ChatAnswer:
    """Any body that is JSON at all. Raises `Unreadable` for others."""
    document = splice.loads(body)
    if not isinstance(document, dict):
        return ChatAnswer()
    answer = ChatAnswer(
        id=document.get("id"),
        model=document.get("model"),
        usage=document.get("usage"),
        error=document.get("error"),
    )
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict) and isinstance(message := choice.get("message"), dict):
        answer.finish_reason, answer.message = choice.get("finish_reason"), message
        answer.raws = _raws(body)
    return answer


def _raws(body: bytes) -> Raws:
    try:
        choice = splice.elements(body, splice.members(body)["choices"])[0]
        return exact(body, splice.members(body, choice)["message"])
    except (Unreadable, LookupError):
        return {}
