"""Puts thinking blocks into a Messages body and touches only the messages concerned.

The blocks of a revision stand right before the text or tool_use they led to; other thinking and
redacted blocks of that message go. Equal ones in place keep their bytes, everything between them
too. A content string becomes a list only when a block has to stand beside it. A message of which
nothing is left goes altogether: no provider takes an empty one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Request, Revision
from thoughtline.dialects.content import blob
from thoughtline.dialects.list_patch import Existing, ListPatch, slots
from thoughtline.dialects.splice import Edit, Span
from thoughtline.dialects.values import mapping, string
from thoughtline.log.parts import Blob, Carrier

THINKING = ("thinking", "redacted_thinking")
"""Types of the blocks that are thoughts."""


def block_kind(block: Any) -> str:
    """Return the kind of an element of an assistant's content: thought, text, call, blob or "".

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


def block_blob(block: Any) -> Blob:
    """Return the blob that a block is: a tool of the server, its result, a compaction."""
    said = mapping(block)
    id = string(said.get("id")) or string(said.get("tool_use_id"))
    return blob(str(said.get("type") or "unknown"), block, id)


def edits(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> list[Edit]:
    """Return the edits that revise these outputs; see `Dialect.edits`."""
    body = request.body
    layout = splice.layout(body, "messages")
    edits = splice.set_members(body, layout.members, fields)
    if revisions:
        messages = layout.elements
        emptied: list[Span] = []
        for revision in revisions:
            span = messages[request.anchors[revision.turn]]
            changes = _message(body, span, revision.thoughts)
            if changes is None:
                emptied.append(span)
            else:
                edits += changes
        if emptied:
            edits += splice.cut(emptied, messages)
    return edits


def _message(body: bytes, span: Span, thoughts: Sequence[PlacedThought]) -> list[Edit] | None:
    """Return the edits of one message; None where nothing is left of it."""
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


def _list(body: bytes, place: Span, wanted: Sequence[PlacedThought]) -> list[Edit] | None:
    values = splice.loads(body[place.value : place.end])
    spans = splice.elements(body, place)
    others: list[Span] = []
    kinds: list[str] = []
    existing: list[Existing] = []
    for value, span in zip(values, spans, strict=True):
        found = block_kind(value)
        if found == "thought":
            existing.append(Existing(len(others), (span,), body[span.value : span.end]))
        else:
            others.append(span)
            kinds.append(found)
    if existing and not others and not wanted:
        return None
    at = slots(kinds, wanted, existing)
    raws = [(slot, p.raw.encode()) for slot, p in zip(at, wanted, strict=True)]
    patch = ListPatch()
    patch.put_thoughts(others, existing, raws)
    return patch.edits(spans, place)
