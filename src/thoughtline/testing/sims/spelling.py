"""JSON and its spelling: written with fragments kept as they are, compared with or without it.

`5.0` and `5` are one number and two spellings; so are two orders of the same keys. `write` puts
`Fragment`s into a document untouched, `letter` is a form in which only whitespace and string
escapes are ignored, and `plain` is a form in which everything is that JSON says does not matter.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec


class Fragment(str):
    """JSON text that is written exactly as it is."""

    __slots__ = ()


def write(value: object, *, escaped: bool = False) -> bytes:
    r"""Write compact JSON; with `escaped` all that is not ASCII is written as `\uXXXX`."""
    return _write(value, escaped).encode("utf-8")


def letter(raw: bytes) -> str:
    """The document to the letter: order of keys and spelling of numbers count."""
    value = json.loads(raw, parse_int=Fragment, parse_float=Fragment)
    return _write(value, escaped=True)


def plain(value: object) -> str:
    """What the document means: order of keys and spelling of numbers do not count."""
    return json.dumps(_tidy(value), sort_keys=True, separators=(",", ":"))


def fields(body: bytes) -> dict[str, bytes]:
    """The values of an object, each with its spelling; nothing when it is not an object."""
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {name: bytes(part) for name, part in parts.items()}


def elements(body: bytes) -> list[bytes]:
    """The values of an array, each with its spelling; nothing when it is not an array."""
    try:
        return [bytes(part) for part in msgspec.json.decode(body, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def _write(value: object, escaped: bool) -> str:
    if isinstance(value, Fragment):
        return _ascii(value) if escaped else str(value)
    if isinstance(value, dict):
        pairs = (f"{_write(str(k), escaped)}:{_write(v, escaped)}" for k, v in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_write(one, escaped) for one in value) + "]"
    return json.dumps(value, ensure_ascii=escaped)


def _ascii(text: str) -> str:
    # Outside of strings JSON is ASCII, so that whatever is not is inside of one.
    return "".join(char if char < "\x7f" else json.dumps(char)[1:-1] for char in text)


def _tidy(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _tidy(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_tidy(one) for one in value]
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value
