"""Thoughts made from what a provider emitted or a client echoed, in any carrier.

One function per question, shared by all dialects, so that capture and look-up can never disagree:
what in a carrier is readable text, what is its id, which values in it are sealed. Nothing here
changes a thought; `raw` is always the given JSON text.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from thoughtline.dialects import splice
from thoughtline.log.canonical import canonical_json
from thoughtline.log.handles import is_handle
from thoughtline.log.keys import string_digest
from thoughtline.log.parts import Carrier, Origin, Thought, Timing

SIGNATURE_BYPASSES = frozenset(
    {
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    }
)
"""Values that Gemini takes in place of a signature: never a thought, never stored as one."""

_SIGNATURE = ("thoughtSignature", "thought_signature")
KEYS: Mapping[Carrier, tuple[str, ...]] = {
    Carrier.REASONING_CONTENT: ("reasoning_content",),
    Carrier.REASONING: ("reasoning",),
    Carrier.REASONING_DETAILS: ("reasoning_details",),
    Carrier.REASONING_TEXT: ("reasoning_text",),
    Carrier.REASONING_OPAQUE: ("reasoning_opaque",),
    Carrier.CHUNK: ("thinking",),
    Carrier.EXTRA_CONTENT: ("extra_content", "thought_signature"),
    Carrier.ITEM: ("reasoning", "encrypted_content"),
    Carrier.BLOCK: ("thinking", "redacted_thinking", "signature"),
    Carrier.PART: ("thought", *_SIGNATURE),
    Carrier.SIGNATURE: _SIGNATURE,
}
"""The keys and types of a body that are there only because of a thought in this carrier."""

_SEALED_KEYS = ("encrypted_content", "signature", "data", "thoughtSignature", "thought_signature")
_BASE64_KEYS = frozenset({"thoughtSignature", "thought_signature"})
"""Keys whose values are bytes to their provider, who reads every alphabet of base64."""
_TEXT_KEYS = ("thinking", "text", "summary", "content")
_OPAQUE_CARRIERS = frozenset({Carrier.REASONING_OPAQUE, Carrier.SIGNATURE, Carrier.EXTRA_CONTENT})
"""Carriers without readable text."""


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
                if key in _SEALED_KEYS and inner and inner not in SIGNATURE_BYPASSES:
                    found.append(standard_base64(inner) if key in _BASE64_KEYS else inner)
            else:
                _opaque(inner, found)
    return found


def opaque_values(carrier: Carrier, value: Any) -> list[str]:
    """Return the strings inside a carrier's value that only their maker can read."""
    if carrier in (Carrier.REASONING_OPAQUE, Carrier.SIGNATURE):
        if not isinstance(value, str) or not value or value in SIGNATURE_BYPASSES:
            return []
        return [standard_base64(value) if carrier is Carrier.SIGNATURE else value]
    return _opaque(value, [])


def seal_digests(carrier: Carrier, value: Any) -> tuple[str, ...]:
    """Return digests of the opaque values inside a carrier's value."""
    return tuple(map(string_digest, opaque_values(carrier, value)))


def make_thought(
    carrier: Carrier,
    value: Any,
    raw: str | None = None,
    *,
    text: str | None = None,
    origin: Origin | None = None,
    timing: Timing | None = None,
) -> Thought:
    """Make a thought from a carrier's decoded value and, where it is at hand, its JSON text."""
    if raw is None:
        raw = splice.dumps(value).decode()
    readable = carrier not in _OPAQUE_CARRIERS
    if readable and type(value) is str:  # the usual case: nothing is inside
        text = value if text is None else text
        return Thought(carrier=carrier, raw=raw, text=text, origin=origin, timing=timing)
    id = value.get("id") if isinstance(value, dict) else None
    if text is None:
        text = "\n\n".join(t for t in _texts(value) if t) if readable else ""
    opaque = opaque_values(carrier, value)
    return Thought(
        carrier=carrier,
        raw=raw,
        text=text,
        id=id if isinstance(id, str) else "",
        seals=tuple(map(string_digest, opaque)),
        origin=origin,
        timing=timing,
        handle=next(filter(is_handle, opaque), ""),
    )


STRING_CARRIERS = frozenset({Carrier.REASONING_CONTENT, Carrier.REASONING, Carrier.REASONING_TEXT})
"""Carriers that are a plain string: the same text under another key."""


def convert(thought: Thought, carrier: Carrier) -> str | None:
    """Return the JSON text of a plain thought in another carrier; None where that is impossible.

    A sealed thought has one shape only. Plain text is the same text under any key.
    """
    if thought.carrier is carrier:
        return thought.raw
    if thought.sealed or thought.carrier is Carrier.REFERENCE:
        return None
    if carrier in STRING_CARRIERS and thought.carrier in STRING_CARRIERS:
        return thought.raw
    shape = _SHAPES.get(carrier)
    return splice.dumps(shape(thought.text)).decode() if shape else None


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


def without_id(raw: str) -> str:
    """Return a sealed item without its id; an item that is not sealed keeps it."""
    body = raw.encode()
    has = splice.members(body)
    if "id" not in has or "encrypted_content" not in has:
        return raw
    return splice.apply(body, splice.cut([has["id"]], list(has.values()))).decode()


def same_json(one: str, other: str) -> bool:
    """Whether two JSON texts have the same value, in any spelling; `1` and `true` differ."""
    return one == other or _canonical(one) == _canonical(other)


def same_thought(carrier: Carrier, one: str, other: str) -> bool:
    """Whether two JSON texts in a carrier say the same to its provider.

    A signature of Gemini's is bytes, and some clients spell it in another alphabet of base64.
    """
    if same_json(one, other):
        return True
    if carrier is Carrier.SIGNATURE:
        values = [splice.loads(text.encode()) for text in (one, other)]
        spelled = [standard_base64(value) for value in values if isinstance(value, str)]
        return len(spelled) == 2 and spelled[0] == spelled[1]
    if carrier not in (Carrier.PART, Carrier.EXTRA_CONTENT):
        return False
    first, second = (_standard(splice.loads(text.encode())) for text in (one, other))
    return canonical_json(first) == canonical_json(second)


def standard_base64(text: str) -> str:
    """Return base64 in the standard alphabet, with its padding; it stands for the same bytes."""
    bare = text.replace("-", "+").replace("_", "/").rstrip("=")
    return bare + "=" * (-len(bare) % 4)


def _standard(value: Any) -> Any:
    """Return a value with its signatures in the standard alphabet."""
    if isinstance(value, list):
        return [_standard(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: standard_base64(inner)
        if key in _BASE64_KEYS and isinstance(inner, str)
        else _standard(inner)
        for key, inner in value.items()
    }


_TOLD = frozenset({"text", "thought"})


def joined_part(one: str, other: str) -> str | None:
    """Return two readable parts of Gemini's as one; None where they are not pieces of a thought.

    Only the last piece may be signed.
    """
    first, second = splice.loads(one.encode()), splice.loads(other.encode())
    if not all(isinstance(part, dict) and part.get("thought") is True for part in (first, second)):
        return None
    texts = [part.get("text") for part in (first, second)]
    if first.keys() - _TOLD or not all(isinstance(text, str) for text in texts):
        return None
    return canonical_json({**second, "text": "".join(texts)})


def bare_signature(part: str) -> str | None:
    """Return the signature of a part of Gemini's that holds nothing else, as JSON text."""
    value = splice.loads(part.encode())
    if not isinstance(value, dict) or value.get("text") or value.get("thought"):
        return None
    signed = [value[key] for key in _SIGNATURE if key in value]
    alone = len(value.keys() - _TOLD) == len(signed) == 1
    return splice.dumps(signed[0]).decode() if alone else None


def same_spelling(one: str, other: str) -> bool:
    """Whether two JSON texts differ in spaces and escapes only: same key order, same digits."""
    try:
        return one == other or _spelling(one) == _spelling(other)
    except (ValueError, RecursionError):
        return False


def _spelling(text: str) -> Any:
    digits = str.encode
    return json.loads(text, parse_int=digits, parse_float=digits, object_pairs_hook=tuple)


def _canonical(text: str) -> str:
    return canonical_json(splice.loads(text.encode()))
