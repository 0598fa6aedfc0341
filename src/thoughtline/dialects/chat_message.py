"""One assistant message, as a provider emits it whole or a client echoes it: its parts in order.

Capture and look-up share this, so that they cannot disagree about what stands in a message: the
thoughts that are its members, then what is in `content`, then the tool calls. `exact` finds the
JSON texts of the thoughts in a body, for whoever has to keep them to the byte.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from thoughtline import splice
from thoughtline.dialects.content import blob
from thoughtline.dialects.inline import inner, pieces, plain
from thoughtline.dialects.thoughts import thought
from thoughtline.errors import Unreadable
from thoughtline.parts import Blob, Call, Carrier, Origin, Text, Thought, Timing
from thoughtline.splice import Span

MEMBERS = (
    Carrier.REASONING_CONTENT,
    Carrier.REASONING,
    Carrier.REASONING_DETAILS,
    Carrier.REASONING_TEXT,
    Carrier.REASONING_OPAQUE,
)
"""Carriers that are members of the message itself, under their own names."""

NAMES = {carrier.value: carrier for carrier in MEMBERS}
"""The same by their names: a plain string is looked up faster."""
_NAMED = frozenset(NAMES)

Said = Text | Thought | Call | Blob
"""What an assistant message is made of."""

Raws = Mapping[tuple[Carrier, int], str]
"""JSON texts of thoughts: by carrier, and by position where it may stand more than once."""


class Making(Struct, frozen=True):
    """How the thoughts of a message were made; nothing is known of those that a client echoes."""

    origin: Origin | None = None
    timing: Timing | None = None
    raws: Raws = {}  # to be kept instead of a new spelling

    def thought(self, carrier: Carrier, value: Any, index: int = 0) -> Thought:
        """One of them."""
        raw = self.raws.get((carrier, index)) if self.raws else None
        return thought(carrier, value, raw, origin=self.origin, timing=self.timing)


ECHOED = Making()


def output(message: Mapping[str, Any], making: Making = ECHOED) -> list[Said]:
    """The parts of a message."""
    parts: list[Said] = []
    if not _NAMED.isdisjoint(message):
        for name, carrier in NAMES.items():
            value = message.get(name)
            if value is not None:
                parts.append(making.thought(carrier, value))
    parts += _content(message.get("content"), making)
    if isinstance(calls := message.get("tool_calls"), list):
        for index, call in enumerate(calls):
            parts += _call(call, index, making)
    if isinstance(legacy := message.get("function_call"), dict):
        parts += _call({"function": legacy}, 0, making)
    return parts


def _content(content: Any, making: Making) -> list[Said]:
    if content is None:
        return []
    if isinstance(content, str):
        return _spoken(content, making)
    if not isinstance(content, list):
        return [blob("unknown", content)]
    parts: list[Said] = []
    for index, element in enumerate(content):
        if (text := text_of(element)) is not None:
            parts += _spoken(text, making)
        elif is_chunk(element):
            parts.append(making.thought(Carrier.CHUNK, element, index))
        else:
            kind = element.get("type") if isinstance(element, dict) else None
            parts.append(blob(str(kind or "unknown"), element))
    return parts


def _spoken(text: str, making: Making) -> list[Said]:
    """A text, and the thoughts in front of it and between its words if there are any."""
    if plain(text):
        return [Text(text=text)] if text else []
    parts: list[Said] = []
    for inline, said in pieces(text):
        if inline:
            made = thought(
                Carrier.THINK,
                inline,
                text=inner(inline),
                origin=making.origin,
                timing=making.timing,
            )
            parts.append(made)
        if said:
            parts.append(Text(text=said))
    return parts


def is_chunk(element: Any) -> bool:
    """Whether an element of a content list is a thought."""
    return isinstance(element, dict) and element.get("type") == "thinking"


def text_of(element: Any) -> str | None:
    """The text of an element of a content list; None when it is something else."""
    if isinstance(element, dict) and not is_chunk(element):
        element = element.get("text")
    return element if isinstance(element, str) else None


def called(call: Any) -> tuple[str, str] | None:
    """The name and the arguments of a tool call or a custom tool's; None when it is neither."""
    if not isinstance(call, dict):
        return None
    function, custom = call.get("function"), call.get("custom")
    if isinstance(function, dict):
        name, arguments = function.get("name"), function.get("arguments")
    elif isinstance(custom, dict):
        name, arguments = custom.get("name"), custom.get("input")
    else:
        return None
    if not isinstance(arguments, str):
        arguments = splice.dumps(arguments).decode() if arguments is not None else ""
    return name if isinstance(name, str) else "", arguments


def _call(call: Any, index: int, making: Making) -> list[Said]:
    found = called(call)
    if found is None:
        return [blob("unknown", call)]
    id, extra = call.get("id"), call.get("extra_content")
    made = Call(name=found[0], arguments=found[1], id=id if isinstance(id, str) else "")
    if extra is None:
        return [made]
    return [making.thought(Carrier.EXTRA_CONTENT, extra, index), made]


def exact(body: bytes, message: Span) -> Raws:
    """The JSON texts of the thoughts in a message; nothing where the body cannot be read twice."""
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
