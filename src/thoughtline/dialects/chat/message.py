"""The parts of one assistant message, as a provider emits it or a client echoes it, in order.

Capture and look-up share this, so that they cannot disagree about what a message holds: the
thoughts that are its members, then what is in `content`, then the tool calls. `raw_thoughts` finds
the JSON texts of the thoughts in a body, which are kept to the byte.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.chat.inline import inner, pieces, plain
from thoughtline.dialects.content import blob
from thoughtline.dialects.splice import Span
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.values import mapping, says_anything
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Blob, Call, Carrier, Origin, Text, Thought, Timing

MEMBERS = (
    Carrier.REASONING_CONTENT,
    Carrier.REASONING,
    Carrier.REASONING_DETAILS,
    Carrier.REASONING_TEXT,
    Carrier.REASONING_OPAQUE,
)
"""Carriers that are members of the message itself, under their own keys."""

NAMES = {carrier.value: carrier for carrier in MEMBERS}
"""The same carriers by key: a plain string is looked up faster."""
_NAMED = frozenset(NAMES)

OutputPart = Text | Thought | Call | Blob
"""A part of an assistant message."""

RawThoughts = Mapping[tuple[Carrier, int], str]
"""JSON texts of thoughts: by carrier, and by position where a carrier may come several times."""


class Provenance(Struct, frozen=True):
    """Where and when the thoughts of a message were made; unknown where a client echoes them."""

    origin: Origin | None = None
    timing: Timing | None = None
    raws: RawThoughts = {}  # the provider's own spelling of them

    def thought(self, carrier: Carrier, value: Any, index: int = 0) -> Thought:
        """Make one thought of the message."""
        raw = self.raws.get((carrier, index)) if self.raws else None
        return make_thought(carrier, value, raw, origin=self.origin, timing=self.timing)


ECHOED = Provenance()


def output_parts(message: Mapping[str, Any], provenance: Provenance = ECHOED) -> list[OutputPart]:
    """Return the parts of a message."""
    parts: list[OutputPart] = []
    if not _NAMED.isdisjoint(message):
        for name in filter(message.__contains__, NAMES):
            value = message[name]
            if value is not None:
                parts.append(provenance.thought(NAMES[name], value))
    content = message.get("content")
    if type(content) is str and plain(content):  # the usual case
        if content:
            parts.append(Text(text=content))
    elif content is not None:
        parts += _content(content, provenance)
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        parts.append(Text(text=refusal, refused=True))
    if isinstance(calls := message.get("tool_calls"), list):
        for index, call in enumerate(calls):
            parts += _call(call, index, provenance)
    if isinstance(legacy := message.get("function_call"), dict):
        parts += _call({"function": legacy}, 0, provenance)
    return parts


def _content(content: Any, provenance: Provenance) -> list[OutputPart]:
    if isinstance(content, str):
        return _text_parts(content, provenance)
    if not isinstance(content, list):
        return [blob("unknown", content)]
    parts: list[OutputPart] = []
    for index, element in enumerate(content):
        if (text := element_text(element)) is not None:
            parts += _text_parts(text, provenance)
        elif is_thinking_chunk(element):
            parts.append(provenance.thought(Carrier.CHUNK, element, index))
        else:
            kind = element.get("type") if isinstance(element, dict) else None
            parts.append(blob(str(kind or "unknown"), element))
    return parts


def _text_parts(text: str, provenance: Provenance) -> list[OutputPart]:
    """Return a text with the inline thoughts before it and inside of it."""
    if plain(text):
        return [Text(text=text)] if text else []
    parts: list[OutputPart] = []
    for inline, rest in pieces(text):
        if inline:
            thought = make_thought(
                Carrier.THINK,
                inline,
                text=inner(inline),
                origin=provenance.origin,
                timing=provenance.timing,
            )
            parts.append(thought)
        if rest:
            parts.append(Text(text=rest))
    return parts


def is_thinking_chunk(element: Any) -> bool:
    """Whether an element of a content list is a thought (Mistral)."""
    return isinstance(element, dict) and element.get("type") == "thinking"


def element_text(element: Any) -> str | None:
    """Return the text of an element of a content list; None when it is something else."""
    if isinstance(element, dict) and not is_thinking_chunk(element):
        element = element.get("text")
    return element if isinstance(element, str) else None


def name_and_arguments(call: Any) -> tuple[str, str] | None:
    """Return the name and the arguments of a call of a tool or a custom tool.

    None for anything else, and where every member has its zero value: that is no call.
    """
    if not is_call(call):
        return None
    function = said_function(call)
    if not call.get("id") and not says_anything(function):
        return None
    name, arguments = function.get("name"), function.get("arguments", function.get("input"))
    if not isinstance(arguments, str):
        arguments = splice.dumps(arguments).decode() if arguments is not None else ""
    return name if isinstance(name, str) else "", arguments


def is_call(call: Any) -> bool:
    """Whether an element of a list of calls is one of a tool or a custom tool."""
    return isinstance(call, dict) and (
        isinstance(call.get("function"), dict) or isinstance(call.get("custom"), dict)
    )


def said_function(call: dict[str, Any]) -> dict[str, Any]:
    """Return what a call, or a piece of one, says of its tool or custom tool, in a stream as well.

    Servers that write every member with its zero value write both.
    """
    function, custom = call.get("function"), call.get("custom")
    if isinstance(custom, dict) and not says_anything(function):
        return custom
    return mapping(function)


def _call(call: Any, index: int, provenance: Provenance) -> list[OutputPart]:
    found = name_and_arguments(call)
    if found is None:
        return [] if is_call(call) else [blob("unknown", call)]
    id, extra = call.get("id"), call.get("extra_content")
    part = Call(name=found[0], arguments=found[1], id=id if isinstance(id, str) else "")
    if extra is None:
        return [part]
    return [provenance.thought(Carrier.EXTRA_CONTENT, extra, index), part]


def raw_thoughts(body: bytes, message: Span) -> RawThoughts:
    """Return the JSON texts of the thoughts in a message; none where spans cannot be found."""
    raws: dict[tuple[Carrier, int], str] = {}

    def keep(carrier: Carrier, index: int, span: Span) -> None:
        raws[carrier, index] = body[span.value : span.end].decode()

    try:
        has = splice.members(body, message)
        for carrier in MEMBERS:
            if carrier in has:
                keep(carrier, 0, has[carrier])
        for index, span in enumerate(_list(body, has.get("content"))):
            keep(Carrier.CHUNK, index, span)
        for index, span in enumerate(_list(body, has.get("tool_calls"))):
            if body[span.value : span.value + 1] == b"{":
                extra = splice.members(body, span).get("extra_content")
                if extra is not None:
                    keep(Carrier.EXTRA_CONTENT, index, extra)
    except Unreadable:
        return {}
    return raws


def _list(body: bytes, span: Span | None) -> list[Span]:
    if span is None or body[span.value : span.value + 1] != b"[":
        return []
    return splice.elements(body, span)
