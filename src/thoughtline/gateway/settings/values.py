"""One value: from TOML, a variable or a flag to what a key holds, and back to how it is written.

`msgspec` converts and checks bounds; what people write in words (`30d`, `64MiB`, `yes`, `a, b`) is
turned into plain values first. Text from variables and flags is read generously, values from a file
as they are. An error says what was expected; the value itself is only quoted where it cannot be a
secret.
"""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import msgspec

from thoughtline.errors import nearest_name
from thoughtline.gateway.settings.keys import Key
from thoughtline.gateway.settings.sections import Line, Secret, mask

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_NONE = "none"
_MAX_QUOTED = 60
_HUGE = 1 << 64


# --- Durations and sizes -----------------------------------------------------------------------

SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
BYTES = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1, "": 1}
DOLLARS = {"": 1}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)")
_MAX_AMOUNT = 1e15


def parse_amount(value: object, units: Mapping[str, int]) -> float | None:
    """Seconds or bytes, from a plain number or from text such as `30d`; None when it is neither."""
    if isinstance(value, str):
        found = _AMOUNT.fullmatch(value.strip())
        factors = {unit.lower(): factor for unit, factor in units.items()}
        factor = factors.get(found[2].lower()) if found else None
        return float(found[1]) * factor if found and factor else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _MAX_AMOUNT else None  # so not nan either


def spell_amount(amount: float, units: Mapping[str, int]) -> str | float:
    """An amount in its largest unit that is exact, or as a plain number: `"30d"`, `"64MiB"`, 45."""
    for unit, factor in units.items():
        if factor > 1 and amount >= factor and amount % factor == 0:
            return f"{int(amount // factor)}{unit}"
    return int(amount) if float(amount).is_integer() else amount


# --- From what was written to what a key holds -------------------------------------------------


def convert(key: Key, raw: object, *, text: bool) -> Any:
    """What the key holds when this was written for it; raises `msgspec.ValidationError`."""
    if isinstance(raw, str):
        raw = raw.strip()
        if key.optional and raw.lower() in (_NONE, ""):
            return None
    plain = _plain(key, raw, text=text)
    if plain is None:
        raise msgspec.ValidationError
    return msgspec.convert(plain, key.type, dec_hook=_custom)


def _plain(key: Key, raw: object, *, text: bool) -> object:
    """A value without the words that people write in place of it; None where there is none."""
    if key.kind == "duration":
        return parse_amount(raw, SECONDS)
    if key.kind == "dollars":
        return parse_amount(raw, DOLLARS)
    if key.kind == "size":
        amount = parse_amount(raw, BYTES)
        return int(amount) if isinstance(raw, str) and amount and amount.is_integer() else amount
    if key.kind == "list" and isinstance(raw, list | tuple):
        return tuple(item for item in map(_stripped, raw) if item != "")
    if not isinstance(raw, str):
        return raw
    match key.kind:
        case "number" if text and _WHOLE.fullmatch(raw):
            return int(raw)
        case "bool" if text:
            return _WORDS.get(raw.lower())
        case "choice":
            return raw.lower()
        case "list" if text:
            items = from_json(raw) if raw.startswith("[") else raw.split(",")
            return None if items is None else _plain(key, items, text=False)
    return raw


def _stripped(item: object) -> object:
    return item.strip() if isinstance(item, str) else item


def _custom(kind: type, value: Any) -> Any:
    """What `msgspec` does not know: a secret is a text."""
    return Secret(msgspec.convert(value, Line)) if kind is Secret else value


def from_json(text: str) -> Any:
    """JSON in a variable; None when it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


# --- What a key takes, in words ----------------------------------------------------------------


def expected(key: Key) -> str:
    """What a key takes, to end a sentence with."""
    return _expected(key) + (' or "none"' if key.optional else "")


def _expected(key: Key) -> str:
    low, high = key.bounds.ge, key.bounds.le
    match key.kind:
        case "duration":
            least = " above 0" if key.bounds.gt is not None else ""
            return f'seconds{least}, as a number or as "30s", "10m", "12h", "30d" or "2w"'
        case "dollars":
            return "US dollars, as a number, 0 or more"
        case "size":
            return 'bytes, as a whole number or as "512KiB" or "64MiB"'
        case "number" if high is not None:
            return f"a whole number from {low} to {high}"
        case "number":
            return f"a whole number, {low} or more"
        case "bool":
            return "true or false"
        case "choice":
            *others, last = (f'"{choice}"' for choice in key.choices)
            return f"{', '.join(others)} or {last}"
        case "list":
            return "a list of strings"
        case "secret" | "text":
            return "a string without control characters"


def suggestion(key: Key, raw: object) -> str:
    """A choice that is near to what was written, as a hint; empty when there is none."""
    close = nearest_name(raw, key.choices) if isinstance(raw, str) else ""
    return f'; did you mean "{close}"?' if close else ""


# --- Back to how it is written -----------------------------------------------------------------


_TOML_KINDS = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
    dict: "a table",
    **dict.fromkeys((datetime, date, time), "a date or time"),
}


def kind_of(raw: object) -> str:
    """What something is, in the words of TOML."""
    return _TOML_KINDS.get(type(raw)) or f"a {type(raw).__name__}"


def quote(raw: object, *, hidden: bool) -> str:
    """What was found, for an error text: quoted where that is harmless and short."""
    if hidden or isinstance(raw, dict | list | tuple):
        return kind_of(raw)
    if isinstance(raw, int) and abs(raw) >= _HUGE:
        return "a huge number"
    text = spell(raw)
    return kind_of(raw) if len(text) > _MAX_QUOTED else f"{text}, {kind_of(raw)}"


def spell(value: object, key: Key | None = None) -> str:
    """A value as it is written in the file; secrets are masked."""
    if isinstance(value, float | int) and key and key.kind in ("duration", "size"):
        value = spell_amount(value, SECONDS if key.kind == "duration" else BYTES)
    match value:
        case None:
            return f'"{_NONE}"'
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return f"[{', '.join(spell(item) for item in value)}]"
        case str() | Secret():
            text = json.dumps(mask(str(value)), ensure_ascii=False)
            return text.replace("\x7f", "\\u007f")
        case _:
            return str(value)


def default(key: Key) -> str:
    """A key's default as it is written."""
    return f'"{key.default_text}"' if key.default_text else spell(key.default, key)
