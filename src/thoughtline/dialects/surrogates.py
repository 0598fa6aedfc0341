"""UTF-16 surrogates that JSON can escape and UTF-8 cannot carry.

Some providers cut their text between the two surrogates of an emoji and send each as an escape in
a chunk of its own. Side by side the two are a character again (`join_surrogates`); one that stays
alone is shown as U+FFFD (`replace_surrogates`).
"""

import json
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from thoughtline.log.events import Delta, ReasoningDelta, TextDelta, ToolCallDelta


def is_encodable(text: str) -> bool:
    """Whether UTF-8 can carry the text: it has no surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def join_surrogates(value: Any) -> Any:
    """Return the value with surrogate pairs joined to characters, in every string of it."""
    return _each(value, "surrogatepass")


def replace_surrogates(value: Any) -> Any:
    """Return the value with pairs joined and lone surrogates replaced by U+FFFD."""
    if type(value) is str and value.isascii():
        return value  # the usual case
    return _each(value, "replace")


def _each(value: Any, lone: str) -> Any:
    if isinstance(value, str):
        if is_encodable(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", lone)
    if isinstance(value, list):
        return [_each(element, lone) for element in value]
    if isinstance(value, dict):
        return {_each(key, lone): _each(inner, lone) for key, inner in value.items()}
    return value


def json_string(text: str) -> bytes:
    """Return the text as a JSON string; a lone surrogate stays an escape."""
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()


class SurrogateJoiner:
    """Makes deltas that UTF-8 can carry: a half at the end waits for the next of its kind."""

    def __init__(self) -> None:
        self._halves: dict[tuple[type, int], str] = {}

    def __call__(self, delta: Delta) -> Delta:
        if isinstance(delta, TextDelta | ReasoningDelta):
            delta = replace(delta, text=self._joined((type(delta), 0), delta.text))
        elif isinstance(delta, ToolCallDelta):
            place = type(delta), delta.index
            delta = replace(delta, arguments=self._joined(place, delta.arguments))
        return type(delta)(*map(replace_surrogates, astuple(delta)))

    def _joined(self, place: tuple[type, int], text: str) -> str:
        text = self._halves.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[place] = text[-1]
            return text[:-1]
        return text
