"""JSON as people and machines spell it: any value, in any legal formatting."""

import json
from random import Random

from hypothesis import strategies as st

KEYS = st.text(max_size=8) | st.sampled_from(
    ["role", "content", "a", "b", "messages", "é", '"', "\\"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)
RANDOMS = st.integers(0, 2**32 - 1).map(Random)

_GAPS = ["", "", "", " ", "\n", "\t", "\r\n  "]
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\"}


def spell(value, random):
    """One of the many JSON texts of a value."""
    gap = lambda: random.choice(_GAPS)  # noqa: E731
    match value:
        case str():
            return string(value, random)
        case list():
            return (
                "["
                + gap()
                + (gap() + "," + gap()).join(spell(v, random) for v in value)
                + gap()
                + "]"
            )
        case dict():
            members = [
                string(key, random) + gap() + ":" + gap() + spell(inner, random)
                for key, inner in value.items()
            ]
            return "{" + gap() + (gap() + "," + gap()).join(members) + gap() + "}"
        case float():
            return random.choice([repr(value), f"{value:.17e}", json.dumps(value)])
    return json.dumps(value)


def string(text, random):
    """A JSON string with some of its characters escaped, as it takes some writer's fancy."""
    style = random.choice(["raw", "ascii", "mixed"])
    return '"' + "".join(_character(char, style, random) for char in text) + '"'


def _character(char, style, random):
    escape = style == "ascii" and char > "~"
    if style == "mixed":
        escape = random.random() < 0.3
    if char in _SHORT and not (escape and random.random() < 0.5):
        return _SHORT[char]
    if char == "/" and escape:
        return "\\/"
    if char < " " or escape or "\ud800" <= char <= "\udfff":
        units = char.encode("utf-16-be", "surrogatepass").hex()
        words = [units[at : at + 4] for at in range(0, len(units), 4)]
        return "".join("\\u" + (w if random.random() < 0.5 else w.upper()) for w in words)
    return char
