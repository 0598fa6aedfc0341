"""Values that an endpoint takes, learned from its refusal: the nearest one goes in their place.

Many refusals list what would have been legal: "must be one of …", "valid levels: …", "allowed: …",
"please use low, high, or max", "[1, 131072]". What has an order has a nearest value: steps of
effort, and numbers. What was learned is a column of the row (`Policy.legal`: a path in the body and
what may stand there, a range as `LOW..HIGH`), so that the next request is right at once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.params import EFFORTS, nearest_effort
from thoughtline.dialects.splice import TopLevel
from thoughtline.providers.policy import Legal, Move

_LISTED = re.compile(
    r"(?:must be (?:one|any) of|(?:is|are|be|expected|use) one of"
    r"|(?:valid|supported|allowed|accepted|available|possible)"
    r" (?:values?|levels?|options?|efforts?)(?: are| is)?|allowed|valid levels"
    r"|only supports the following reasoning efforts|only supports?|only accepts?|please use"
    r"|must be|(?:should|expected to) be|choose (?:from|one of))\s*:?\s*(?P<list>[^.;{}\n]{3,240})"
)
_RANGE = re.compile(r"[\[(]\s*(\d{1,9})\s*,\s*(\d{1,9})\s*[\])]")
_WORD = re.compile(r"[a-z]+")
_LEAVES = 200
_LARGE = 4096
"""Bytes of a member that is no parameter, but something that is said."""
_OFF = "disabled"


def listed_values(text: str) -> tuple[str, ...]:
    """The legal steps of effort that a refusal lists, or a range; empty: it lists none."""
    lowered = text.lower()
    for found in _LISTED.finditer(lowered):
        words = [word for word in _WORD.findall(found["list"]) if word in EFFORTS]
        if len(words) > 1:
            return tuple(dict.fromkeys(words))
    if bounds := _RANGE.search(lowered):
        low, high = int(bounds[1]), int(bounds[2])
        return (f"{low}..{high}",) if low < high else ()
    return ()


def refused_value(body: bytes, history: str, text: str) -> Legal | None:
    """Which member of a body a refusal is about, and what may stand there; None: unknown."""
    legal = listed_values(text)
    if not legal:
        return None
    lowered = text.lower()
    found = [(path, value) for path, value in _leaves(body, history) if not _fits(value, legal)]
    named = [path for path, _ in found if path.rpartition(".")[2].lower() in lowered]
    if ".." in legal[0]:  # a number says nothing of where it stands
        return (named[0], legal) if named else None
    if not found:
        return None
    return (named[0] if named else found[0][0]), legal


def legal_fields(
    body: bytes, fields: Mapping[str, bytes | None], legal: Sequence[Legal], moves: Sequence[Move]
) -> tuple[dict[str, bytes | None], tuple[str, ...]]:
    """The top-level members to set so that all values are legal, and what was changed."""
    top, made = TopLevel(body), dict(fields)
    changed: list[str] = []
    for path, values in legal:
        value = _at(top, made, path)
        if value is not None and not _fits(value, values):
            put = _nearest(value, values)
            _put(top, made, path, put)
            changed.append(f"{path}:{value}>{'' if put is None else put}")
    for here, there in moves:
        value = _at(top, made, here)
        if value is not None:
            _put(top, made, here, None)
            _put(top, made, there, value)
            changed.append(f"{here}>{there}")
    return made, tuple(changed)


def _fits(value: Any, legal: Sequence[str]) -> bool:
    """Whether a value is legal, or is none of those that are meant."""
    if ".." in legal[0]:
        low, _, high = legal[0].partition("..")
        number = isinstance(value, int) and not isinstance(value, bool)
        return not number or int(low) <= value <= int(high)
    known = isinstance(value, str) and value.lower() in (*EFFORTS, _OFF)
    return not known or value.lower() in legal


def _nearest(value: Any, legal: Sequence[str]) -> Any:
    """The nearest legal value; None: the member is better left out."""
    if ".." in legal[0]:
        low, _, high = legal[0].partition("..")
        return min(max(value, int(low)), int(high))
    asked = value.lower()
    if asked == _OFF:
        return None
    steps = sorted(legal, key=EFFORTS.index)
    return nearest_effort(asked, steps) or steps[0]


def _leaves(body: bytes, history: str) -> Iterator[tuple[str, Any]]:
    """The parameters of a body, with their paths: not what is said in it."""
    top = TopLevel(body)
    for name, place in list(top.has.items())[:_LEAVES]:
        if name != history and place.end - place.value <= _LARGE:
            yield from _inside(name, top.value(name), 3)


def _inside(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth:
        for key, inner in value.items():
            yield from _inside(f"{path}.{key}", inner, depth - 1)
    elif isinstance(value, str | int):
        yield path, value


def _at(top: TopLevel, fields: Mapping[str, bytes | None], path: str) -> Any:
    """The value at a path, with these members set."""
    name, *keys = path.split(".")
    value = _member(top, fields, name)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _member(top: TopLevel, fields: Mapping[str, bytes | None], name: str) -> Any:
    if name not in fields:
        return top.value(name)
    raw = fields[name]
    return None if raw is None else splice.loads(raw)


def _put(top: TopLevel, fields: dict[str, bytes | None], path: str, value: Any) -> None:
    """Set a value at a path, or take it out (None), and what is empty without it."""
    name, *keys = path.split(".")
    if not keys:
        fields[name] = None if value is None else splice.dumps(value)
        return
    member = _member(top, fields, name)
    member = member if isinstance(member, dict) else {}
    inner = member
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    if value is None:
        inner.pop(keys[-1], None)
    else:
        inner[keys[-1]] = value
    fields[name] = splice.dumps(member) if member else None
