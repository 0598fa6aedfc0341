"""The free text of a custom tool, which a provider without such tools wraps in an object.

`free_text` unwraps arguments that are complete; `FreeTextStream` as they come, so that a client can
show a long text while the model writes it.
"""

import json
import re
from typing import Any

_INPUTS = ("input", "patch", "content", "text")
"""Members under which models have been seen to put the free text of a custom tool."""
_BEGINNING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_CHARACTERS = re.compile(
    r"""(?:
        [^"\\]++
        | \\["\\/bfnrt]
        | \\u (?!d[89a-f]) [0-9a-f]{4}
        | \\u d[89ab][0-9a-f]{2} \\u d[c-f][0-9a-f]{2}
    )*+""",
    re.VERBOSE | re.IGNORECASE,
)
"""Whole characters of a JSON string; half of a surrogate pair is none."""

_LONGEST_BEGINNING, _LONGEST_ESCAPE = 64, 12


def free_text(arguments: str) -> str:
    """The text that a model meant for a custom tool, however it wrapped it."""
    try:
        value: Any = json.loads(arguments, strict=False)
        text = _unwrapped(value)
        return arguments if text is None or _damaged(text) else text
    except (ValueError, RecursionError):
        return arguments


def _unwrapped(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((v for name in _INPUTS if isinstance(v := value.get(name), str)), None)
    return None


def _damaged(text: str) -> bool:
    """Whether half of a surrogate pair is in it, which cannot be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


class FreeTextStream:
    """Unwraps arguments while they come."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._rest = ""  # what is not told yet
        self._begun = self._ended = False  # what can be told at once

    @property
    def arguments(self) -> str:
        """The arguments so far, as the provider wraps them."""
        return "".join(self._pieces)

    def feed(self, piece: str) -> str:
        """What of the text can be told now; an unusual wrapping waits for the end."""
        self._pieces.append(piece)
        if self._ended:
            return ""
        self._rest += piece
        if not self._begun:
            beginning = _BEGINNING.match(self._rest)
            if beginning is None:
                self._ended = len(self._rest) > _LONGEST_BEGINNING
                return ""
            self._begun, self._rest = True, self._rest[beginning.end() :]
        told = _CHARACTERS.match(self._rest)
        end = told.end() if told else 0
        characters, self._rest = self._rest[:end], self._rest[end:]
        self._ended = self._rest.startswith('"') or len(self._rest) > _LONGEST_ESCAPE
        text: str = json.loads(f'"{characters}"', strict=False)
        return text
