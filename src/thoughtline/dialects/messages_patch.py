"""Putting thinking blocks into a Messages body, touching only the messages concerned.

The blocks of a revision stand right before the text or tool_use they led to; other thinking and
redacted blocks of that message go. Equal ones in place keep their bytes, everything between them
too. A content string becomes a list only when a block has to stand beside it. A message of which
nothing is left goes as a whole: no provider takes an empty one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Placed, Request, Revision
from thoughtline.dialects.slots import Standing, plan, slots
from thoughtline.parts import Carrier
from thoughtline.splice import Edit, Span

THINKING = ("thinking", "redacted_thinking")
"""Types of the blocks that are thoughts."""


def kind(block: Any) -> str:
    """What an element of an assistant's content is: thought, text, call, blob or nothing ("").

    An empty text is nothing: clients drop it, and the API refuses it.
    """
    if isinstance(block, str):
        return "text" if block else ""
    if not isinstance(block, dict):
        return "blob"
    name = block.get("type")
    if name in THINKING:
        return "thought"
    if name == "tool_use":
        return "call"
    text = block.get("text")
    if name not in ("text", None) or not isinstance(text, str):
        return "blob"
    return "text" if text else ""


def patch(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> bytes:
    """The body with these outputs revised; see `Dialect.patch`."""
    if not revisions and not fields:
        return request.body
    body = request.body
    top = splice.members(body)
    edits = top_level.edits(body, top, fields)
    if revisions:
        messages = splice.elements(body, top["messages"])
        emptied: list[Span] = []
        for revision in revisions:
            span = messages[request.anchors[revision.turn]]
            made = _message(body, span, revision.thoughts)
            if made is None:
                emptied.append(span)
            else:
                edits += made
        if emptied:
            edits += splice.cut(emptied, messages)
    return splice.apply(body, edits)


def _message(body: bytes, span: Span, thoughts: Sequence[Placed]) -> list[Edit] | None:
    """Edits of one message; None where nothing is left of it."""
    wanted = [p for p in thoughts if p.carrier is Carrier.BLOCK]
    has = splice.members(body, span)
    place = has.get("content")
    if place is not None and body[place.value : place.value + 1] == b"[":
        return _list(body, place, wanted)
    if not wanted:
        return []
    there = body[place.value : place.end] if place else b"null"
    text = splice.loads(there)
    if text is not None and not isinstance(text, str):
        return []
    kinds = ["text"] if text else []
    found = slots(kinds, wanted)
    pieces = [p.raw.encode() for p, slot in zip(wanted, found, strict=True) if not slot]
    if text:
        pieces.append(b'{"type":"text","text":' + there + b"}")
        pieces += [p.raw.encode() for p, slot in zip(wanted, found, strict=True) if slot]
    return [splice.put(span, "content", b"[" + b",".join(pieces) + b"]", has)]


def _list(body: bytes, place: Span, wanted: Sequence[Placed]) -> list[Edit] | None:
    values = splice.loads(body[place.value : place.end])
    spans = splice.elements(body, place)
    others: list[Span] = []
    kinds: list[str] = []
    standing: list[Standing] = []
    for value, span in zip(values, spans, strict=True):
        found = kind(value)
        if found == "thought":
            standing.append(Standing(len(others), (span,), body[span.value : span.end]))
        else:
            others.append(span)
            kinds.append(found)
    if standing and not others and not wanted:
        return None
    at = slots(kinds, wanted, standing)
    raws = [(slot, p.raw.encode()) for slot, p in zip(at, wanted, strict=True)]
    return plan(others, standing, raws).edits(spans, place)
