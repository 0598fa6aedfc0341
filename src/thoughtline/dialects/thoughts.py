"""Thoughts from what a provider emitted or a client echoed, whatever they travel in.

One function per question, shared by all dialects, so that capture and look-up can never disagree:
what in a carrier is readable text, what is its id, which values in it are sealed. Nothing here
changes a thought; `raw` is always the given JSON text.
"""

import json
from collections.abc import Callable
from typing import Any

from thoughtline import splice
from thoughtline.keys import canonical, seal
from thoughtline.parts import Carrier, Origin, Thought, Timing

BYPASSES = frozenset(
    {
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    }
)
"""Values that Gemini takes in place of a signature: never a thought, never kept as one."""

_SEALED_KEYS = ("encrypted_content", "signature", "data", "thoughtSignature", "thought_signature")
_TEXT_KEYS = ("thinking", "text", "summary", "content")
_SECRET = frozenset({Carrier.REASONING_OPAQUE, Carrier.SIGNATURE, Carrier.EXTRA_CONTENT})
"""Carriers in which there is nothing to be read."""


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for element in value for text in _texts(element)]
    if isinstance(value, dict):
        return [text for key in _TEXT_KEYS if key in value for text in _texts(value[key])]
    return []


def _opaque(value: Any, found: list[str]) -> list[str]:
    if isinstance(value, list):
        for element in value:
            _opaque(element, found)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                if key in _SEALED_KEYS and inner and inner not in BYPASSES:
                    found.append(inner)
            else:
                _opaque(inner, found)
    return found


def seals(carrier: Carrier, value: Any) -> tuple[str, ...]:
    """Digests of the opaque values inside a carrier's value."""
    if carrier in (Carrier.REASONING_OPAQUE, Carrier.SIGNATURE):
        usable = isinstance(value, str) and value and value not in BYPASSES
        return (seal(value),) if usable else ()
    return tuple(seal(opaque) for opaque in _opaque(value, []))


def thought(
    carrier: Carrier,
    value: Any,
    raw: str | None = None,
    *,
    text: str | None = None,
    origin: Origin | None = None,
    timing: Timing | None = None,
) -> Thought:
    """A thought from a carrier's decoded value and, where it is at hand, its exact JSON text."""
    if raw is None:
        raw = splice.dumps(value).decode()
    readable = carrier not in _SECRET
    if readable and type(value) is str:  # the usual case: nothing is inside
        text = value if text is None else text
        return Thought(carrier=carrier, raw=raw, text=text, origin=origin, timing=timing)
    id = value.get("id") if isinstance(value, dict) else None
    if text is None:
        text = "\n\n".join(t for t in _texts(value) if t) if readable else ""
    return Thought(
        carrier=carrier,
        raw=raw,
        text=text,
        id=id if isinstance(id, str) else "",
        seals=seals(carrier, value),
        origin=origin,
        timing=timing,
    )


STRINGS = frozenset({Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_TEXT})
"""Carriers that hold plain text: the same text under another name."""


def recast(made: Thought, carrier: Carrier) -> str | None:
    """A plain thought as another carrier spells it; None where that cannot be, or must not.

    A sealed thought has one shape only. Plain text is the same text under any key.
    """
    if made.carrier is carrier:
        return made.raw
    if made.sealed or made.carrier is Carrier.REFERENCE:
        return None
    if carrier in STRINGS and made.carrier in STRINGS:
        return made.raw
    shape = _SHAPES.get(carrier)
    return splice.dumps(shape(made.text)).decode() if shape else None


_SHAPES: dict[Carrier, Callable[[str], Any]] = {
    Carrier.REASONING_CONTENT: lambda text: text,
    Carrier.REASONING: lambda text: text,
    Carrier.REASONING_TEXT: lambda text: text,
    Carrier.REASONING_DETAILS: lambda text: [{"type": "reasoning.text", "text": text}],
    Carrier.THINK: lambda text: f"<think>\n{text}\n</think>\n\n",
    Carrier.CHUNK: lambda text: {"type": "thinking", "thinking": [{"type": "text", "text": text}]},
    Carrier.BLOCK: lambda text: {"type": "thinking", "thinking": text, "signature": ""},
    Carrier.ITEM: lambda text: {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
    },
}


def nameless(raw: str) -> str:
    """A sealed item without its id; one that is not sealed has nothing else to be known by."""
    body = raw.encode()
    has = splice.members(body)
    if "id" not in has or "encrypted_content" not in has:
        return raw
    return splice.apply(body, splice.cut([has["id"]], list(has.values()))).decode()


def same(one: str, other: str) -> bool:
    """Whether two JSON texts say the same, however they are spelled; `1` and `true` do not."""
    return one == other or _canonical(one) == _canonical(other)


def verbatim(one: str, other: str) -> bool:
    """Whether two JSON texts are one but for spaces and escapes: keys in order, same digits."""
    try:
        return one == other or _letters(one) == _letters(other)
    except (ValueError, RecursionError):
        return False


def _letters(text: str) -> Any:
    digits = str.encode
    return json.loads(text, parse_int=digits, parse_float=digits, object_pairs_hook=tuple)


def _canonical(text: str) -> str:
    return canonical(splice.loads(text.encode()))
