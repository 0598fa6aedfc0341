"""Top-level members of a request body: read at a glance, or with their places.

`Wishes` is what a Responses request says about state and seals, in one pass that skips the rest of
the body; it is read for every request. `Top` finds where members stand, for whoever changes one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.errors import Unreadable


class _Item(Struct, gc=False):
    role: Any = None


class Wishes(Struct):
    """What a Responses request asks of the server's memory."""

    store: Any = None
    include: Any = None
    conversation: Any = None
    background: Any = None
    reasoning: Any = None
    input: list[_Item] | str | None = None

    @property
    def asides(self) -> bool:
        """Whether there is a message that belongs to no turn."""
        items = self.input if isinstance(self.input, list) else []
        return any(item.role in ("system", "developer") for item in items)


_decode = msgspec.json.Decoder(Wishes).decode


def wishes(body: bytes) -> Wishes:
    """Read them. Raises `Unreadable` for what is not an object."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = splice.loads(body)
    if not isinstance(document, dict):
        raise Unreadable("expected a JSON object")
    said = {name: document.get(name) for name in Wishes.__struct_fields__ if name != "input"}
    items = document.get("input")
    found = items if isinstance(items, list) else []
    roles = [_Item(item.get("role")) for item in found if isinstance(item, dict)]
    return Wishes(**said, input=roles)


class Top:
    """The top-level members of a body, and where they stand."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.has = splice.members(body)

    def value(self, name: str) -> Any:
        """What a member says; None where it is not there."""
        place = self.has.get(name)
        return splice.loads(self.body[place.value : place.end]) if place else None

    def nested(self, name: str, wanted: Mapping[str, bytes | None]) -> bytes:
        """An object with some of its members set; made where it is not there."""
        place = self.has.get(name)
        raw = self.body[place.value : place.end] if place else b"{}"
        raw = raw if raw[:1] == b"{" else b"{}"
        return splice.apply(raw, top_level.edits(raw, splice.members(raw), wanted))
