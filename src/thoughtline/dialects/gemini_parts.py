"""Parts of a Gemini content: what each one is, in both spellings, and which belong together.

Streams cut a text, or a thought's summary, at the borders of chunks, and Google's own SDK sends
every chunk back as a content of its own. So parts that go on across such a border are one run, by
the same rule for what is captured and for what is echoed: plain texts are one text; summaries are
one thought, up to the part that is signed. A signed text is never joined with another, and parts
that came side by side stay apart.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from thoughtline import splice
from thoughtline.dialects.escapes import quoted
from thoughtline.errors import Unreadable
from thoughtline.splice import Span

SIGNATURES = ("thoughtSignature", "thought_signature")
"""The key that a signature stands under: in the API's spelling, and in some clients'."""

SEPARATE = ("thought", "seal")
"""Kinds of parts that are thoughts by themselves."""

_SNAKE = {
    "functionCall": "function_call",
    "functionDeclarations": "function_declarations",
    "functionResponse": "function_response",
    "generationConfig": "generation_config",
    "includeThoughts": "include_thoughts",
    "thinkingBudget": "thinking_budget",
    "thinkingConfig": "thinking_config",
    "thinkingLevel": "thinking_level",
}


def either(value: Any, key: str) -> Any:
    """A member under the API's camelCase name, or under its snake_case twin."""
    if not isinstance(value, dict):
        return None
    found = value.get(key)
    return value.get(_SNAKE[key]) if found is None else found


def signature(part: Any) -> str:
    """A part's signature; empty where it has none."""
    if isinstance(part, dict):
        for key in SIGNATURES:
            if isinstance(found := part.get(key), str) and found:
                return found
    return ""


def kind(part: Any) -> str:
    """What a part is: thought, seal (nothing but a signature), text, call, blob or nothing ("")."""
    if not isinstance(part, dict):
        return "blob"
    if part.get("thought") is True:
        return "thought"
    text = part.get("text")
    if isinstance(text, str) and text:
        return "text"
    if isinstance(either(part, "functionCall"), dict):
        return "call"
    if all(key in ("text", "thought", *SIGNATURES) for key in part) and not text:
        return "seal" if signature(part) else ""
    return "blob"


def continues(last: str, last_signed: bool, kind: str, signed: bool) -> bool:
    """Whether the first part of a chunk goes on where the last one ended."""
    if last != kind or last_signed:
        return False
    return kind == "thought" or (kind == "text" and not signed)


class Run:
    """Parts that are one: their kind, and where they stand among all."""

    __slots__ = ("kind", "parts", "places", "signed")

    def __init__(self, kind: str, signed: bool, place: int, part: Any) -> None:
        self.kind = kind
        self.signed = signed
        self.places = [place]
        self.parts = [part]


def runs(contents: Iterable[Sequence[Any]]) -> list[Run]:
    """All runs of an output's contents, in order; parts that say nothing are in none."""
    found: list[Run] = []
    place = -1
    for parts in contents:
        border = True
        for part in parts:
            place += 1
            what, signed = kind(part), bool(signature(part))
            if not what:
                continue
            last = found[-1] if found and border else None
            border = False
            if last is not None and continues(last.kind, last.signed, what, signed):
                last.signed = signed
                last.places.append(place)
                last.parts.append(part)
            else:
                found.append(Run(what, signed, place, part))
    return found


def text(part: Any) -> str:
    """A part's text; empty where it has none."""
    found = part.get("text")
    return found if isinstance(found, str) else ""


def merged(raw: bytes, texts: Sequence[str], last: Any) -> bytes:
    """A run's parts as one: the first one's JSON text, all the text, the last one's signature."""
    if len(texts) == 1:
        return raw
    raw = put(raw, "text", quoted("".join(texts)))
    for key in SIGNATURES:
        if last.get(key) == signature(last) != "":
            raw = put(raw, key, quoted(last[key]))
    return raw


def put(raw: bytes, key: str, value: bytes) -> bytes:
    """An object's JSON text with one member set, everything else as it was."""
    try:
        edit = splice.put(Span(0, 0, len(raw)), key, value, splice.members(raw))
    except Unreadable:  # a key twice: the last one counts, as it does for every reader
        return put(_again(raw), key, value)
    return splice.apply(raw, [edit])


def unsigned(raw: bytes) -> bytes:
    """A part's JSON text without its signature."""
    try:
        has = splice.members(raw)
    except Unreadable:
        return unsigned(_again(raw))
    return splice.apply(raw, splice.revise(Span(0, 0, len(raw)), has, dict.fromkeys(SIGNATURES)))


def _again(raw: bytes) -> bytes:
    """The same object spelled by us; what is nested too deeply for that is left out."""
    try:
        return splice.dumps(splice.loads(raw))
    except Unreadable:
        return b"{}"
