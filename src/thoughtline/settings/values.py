"""One value: from TOML, a variable or a flag to what a key holds, and back to how it is written.

Text from variables and flags is read generously (`yes`, `8080`, `a, b`), values from a file as they
are. What does not fit is answered with what was expected; the value itself is only quoted where it
cannot be a secret.
"""

import json
import re
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any

from msgspec import DecodeError, inspect
from msgspec.json import decode

from thoughtline.settings import quantities
from thoughtline.settings.masks import Secret, mask
from thoughtline.settings.schema import Key

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, halves of characters
_NONE = "none"
_LONGEST = 60
_HUGE = 1 << 64


class Misfit(ValueError):
    """The value is not of the key's kind."""


def convert(key: Key, raw: object, *, text: bool) -> Any:
    """What the key holds when this was written for it; raises `Misfit`."""
    if key.optional and isinstance(raw, str) and raw.strip().lower() in (_NONE, ""):
        return None
    return _convert(_inner(key), key.unit, raw, text=text)


def _inner(key: Key) -> inspect.Type:
    """A key's kind without "none" and without annotations."""
    kind = key.kind
    if isinstance(kind, inspect.UnionType):
        kind = next(t for t in kind.types if not isinstance(t, inspect.NoneType))
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _convert(kind: inspect.Type, unit: str, raw: object, *, text: bool) -> Any:
    match kind:
        case inspect.FloatType():
            return _bounded(quantities.seconds(raw), kind)
        case inspect.IntType() if unit:
            return _bounded(quantities.size(raw), kind)
        case inspect.IntType():
            return _bounded(_whole(raw, text=text), kind)
        case inspect.BoolType():
            return _truth(raw, text=text)
        case inspect.LiteralType():
            return _choice(raw, kind)
        case inspect.VarTupleType():
            return _list(raw, text=text)
        case inspect.CustomType():
            return Secret(_string(raw))
        case _:
            return _string(raw)


def _bounded(value: float | None, kind: inspect.IntType | inspect.FloatType) -> float:
    if (
        value is None
        or (kind.ge is not None and value < kind.ge)
        or (kind.gt is not None and value <= kind.gt)
        or (kind.le is not None and value > kind.le)
    ):
        raise Misfit
    return value


def _whole(raw: object, *, text: bool) -> int | None:
    if text and isinstance(raw, str) and _WHOLE.fullmatch(raw.strip()):
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _truth(raw: object, *, text: bool) -> bool:
    if isinstance(raw, bool):
        return raw
    if text and isinstance(raw, str) and raw.strip().lower() in _WORDS:
        return _WORDS[raw.strip().lower()]
    raise Misfit


def _choice(raw: object, kind: inspect.LiteralType) -> Any:
    wanted = raw.strip().lower() if isinstance(raw, str) else raw
    if not isinstance(wanted, str) or wanted not in kind.values:
        raise Misfit
    return wanted


def _list(raw: object, *, text: bool) -> tuple[str, ...]:
    if text and isinstance(raw, str):
        raw = from_json(raw) if raw.lstrip().startswith("[") else raw.split(",")
    if not isinstance(raw, list | tuple):
        raise Misfit
    return tuple(item for item in map(_string, raw) if item)


def _string(raw: object) -> str:
    if not isinstance(raw, str) or _UNFIT.search(raw.strip()):
        raise Misfit
    return raw.strip()


def from_json(text: str) -> Any:
    """JSON in a variable; None when it is none."""
    try:
        return decode(text)
    except (DecodeError, UnicodeError, RecursionError):
        return None


def expected(key: Key) -> str:
    """What a key takes, to end a sentence with."""
    return _expected(_inner(key), key.unit) + (' or "none"' if key.optional else "")


def _expected(kind: inspect.Type, unit: str) -> str:
    match kind:
        case inspect.FloatType():
            least = " above 0" if kind.gt is not None else ""
            return f'seconds{least}, as a number or as "30s", "10m", "12h", "30d" or "2w"'
        case inspect.IntType() if unit:
            return 'bytes, as a whole number or as "512KiB" or "64MiB"'
        case inspect.IntType() if kind.ge is not None and kind.le is not None:
            return f"a whole number from {kind.ge} to {kind.le}"
        case inspect.IntType():
            return f"a whole number, {kind.ge} or more"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            *most, last = (f'"{value}"' for value in kind.values)
            return f"{', '.join(most)} or {last}"
        case inspect.VarTupleType():
            return "a list of strings"
        case _:
            return "a string without control characters"


def short(key: Key) -> str:
    """A key's kind in a word or two, for the reference."""
    return _short(_inner(key), key.unit) + (" or none" if key.optional else "")


def _short(kind: inspect.Type, unit: str) -> str:
    match kind:
        case inspect.FloatType():
            return "duration"
        case inspect.IntType() if unit:
            return "size"
        case inspect.IntType() if kind.ge is not None and kind.le is not None:
            return f"{kind.ge} to {kind.le}"
        case inspect.IntType():
            return "number"
        case inspect.VarTupleType():
            return "list"
        case inspect.CustomType():
            return "secret"
        case inspect.BoolType() | inspect.LiteralType():
            return _expected(kind, unit).replace('"', "")
        case _:
            return "text"


def suggestion(key: Key, raw: object) -> str:
    """A choice that is near to what was written, as a hint; empty when there is none."""
    if not isinstance(key.kind, inspect.LiteralType) or not isinstance(raw, str):
        return ""
    close = get_close_matches(raw.lower(), [str(value) for value in key.kind.values], n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def kind_of(raw: object) -> str:
    """What something is, in the words of TOML."""
    match raw:
        case bool():
            return "a boolean"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case datetime() | date() | time():
            return "a date or time"
        case dict():
            return "a table"
        case _:
            return f"a {type(raw).__name__}"


def quote(raw: object, *, hidden: bool) -> str:
    """What was found, for an error text: quoted where that is harmless and short."""
    if hidden or isinstance(raw, dict | list | tuple):
        return kind_of(raw)
    if isinstance(raw, int) and abs(raw) >= _HUGE:
        return "a huge number"
    shown = spell(raw)
    if len(shown) > _LONGEST:
        return kind_of(raw)
    return f"{shown}, {kind_of(raw)}"


def spell(value: object, unit: str = "") -> str:
    """A value as it is written in the file; secrets are masked."""
    match value:
        case None:
            return f'"{_NONE}"'
        case bool():
            return "true" if value else "false"
        case float() if unit:
            return _written(quantities.spell_seconds(value))
        case int() if unit:
            return _written(quantities.spell_size(value))
        case list() | tuple():
            return f"[{', '.join(spell(item) for item in value)}]"
        case Secret():
            return _written(str(value))
        case _:
            return _written(value)


def _written(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(mask(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
