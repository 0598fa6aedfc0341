"""Puts reasoning items into a Responses body and touches only the outputs concerned.

An output is a run of elements of `input`. Its thoughts are put right before what they led to, those
it should not have are taken out, and equal ones that stand where they should keep their bytes.
`ItemList` turns what changes into edits of that array.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Request, Revision
from thoughtline.dialects.chat.inline import CLOSE, split
from thoughtline.dialects.content import joined_text
from thoughtline.dialects.list_patch import Existing, ListPatch
from thoughtline.dialects.responses.items import (
    ARGUMENTS,
    Side,
    item_type,
    output_part,
    shape_letter,
    side,
    string_member,
)
from thoughtline.dialects.splice import Edit, Layout, Span
from thoughtline.log.parts import Blob, Carrier
from thoughtline.log.turns import Place

_KINDS = {"x": "text", "c": "call", "b": "blob"}


def edits(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> list[Edit]:
    """Return the edits that revise these outputs; see `Dialect.edits`."""
    revisions = [revision for revision in revisions if request.anchors[revision.turn]]
    if not revisions and not fields:
        return []
    body = request.body
    layout = splice.layout(body, "input")
    edits = splice.set_members(body, layout.members, fields)
    if revisions:
        items = ItemList(layout)
        for revision in revisions:
            _revise(items, request.anchors[revision.turn], revision)
        edits += items.edits()
    return edits


def expand(request: Request, items: Mapping[str, str]) -> bytes:
    """Return the body with each `item_reference` replaced by the item of that id, if known."""
    anchored = [index for anchor in request.anchors for index in anchor]
    named = any(t.carrier is Carrier.REFERENCE for turn in request.turns for t in turn.thoughts)
    if not items or not named:
        return request.body
    own = ItemList(splice.layout(request.body, "input"))
    edits: list[Edit] = []
    for index in anchored:
        value, span = own.value(index), own.spans[index]
        raw = (
            items.get(string_member(value, "id")) if item_type(value) == "item_reference" else None
        )
        if raw is not None:
            edits.append((span.start, span.end, raw.encode()))
    return splice.apply(request.body, edits)


class ItemList:
    """The items of a body: which of them go, what is put before which, and what changes inside."""

    def __init__(self, layout: Layout) -> None:
        self.body = layout.body
        self.place = layout.members[layout.history]
        self.spans = layout.elements
        self.patch = ListPatch()
        self.within: list[Edit] = []  # changes inside of items that stay

    def raw(self, index: int) -> bytes:
        """Return the JSON text of an item."""
        span = self.spans[index]
        return self.body[span.value : span.end]

    def value(self, index: int) -> Any:
        """Return an item, decoded."""
        return splice.loads(self.raw(index))

    def remove(self, indexes: Iterable[int]) -> None:
        """Remove items."""
        self.patch.removed += [self.spans[index] for index in indexes]

    def strip(self, index: int, key: str) -> None:
        """Take a member off an item."""
        has = splice.members(self.body, self.spans[index])
        if key in has:
            self.within += splice.cut([has[key]], has.values())

    def set(self, index: int, key: str, value: str) -> None:
        """Give a member of an item a value."""
        span = self.spans[index]
        has = splice.members(self.body, span)
        self.within.append(splice.put(span, key, splice.dumps(value), has))

    def edits(self) -> list[Edit]:
        """Return all changes as edits of the body."""
        return self.within + self.patch.edits(self.spans, self.place)


def _revise(items: ItemList, indexes: Sequence[int], revision: Revision) -> None:
    values = {index: items.value(index) for index in indexes}
    thoughts = [t for t in revision.thoughts if t.carrier in (Carrier.ITEM, Carrier.REFERENCE)]
    inline = {index for index, value in values.items() if thoughts and _is_inline_thought(value)}
    if inline != set(values):
        items.remove(inline)
        values = {index: value for index, value in values.items() if index not in inline}
    _put_thoughts(items, values, thoughts, verbatim=revision.verbatim)
    if revision.unsealed:
        items.remove(index for index, value in values.items() if _is_sealed_summary(value))
    texts = [index for index, value in values.items() if item_type(value) == "message"]
    for index, phase in zip(texts, revision.phases, strict=False):
        if phase:
            items.set(index, "phase", phase)
    if revision.anonymous:
        for index, value in values.items():
            if item_type(value) in ARGUMENTS or item_type(value) == "message":
                items.strip(index, "id")


def _put_thoughts(
    items: ItemList, values: Mapping[int, Any], thoughts: Sequence[PlacedThought], *, verbatim: bool
) -> None:
    """Give an output just these thoughts, each before the item that it led to."""
    others: list[Span] = []
    places: list[Place] = []
    existing: list[Existing] = []
    counts = dict.fromkeys(_KINDS, 0)
    for index, value in values.items():
        what = shape_letter(value)
        span = items.spans[index]
        if what == "t":
            existing.append(Existing(len(others), (span,), items.raw(index)))
            continue
        others.append(span)
        places.append(Place(_KINDS[what], counts[what]))
        counts[what] += 1
    places.append(Place("end", 0))
    others += items.spans[max(values) + 1 :][:1]  # what follows the output
    at = _slots(places, thoughts)
    wanted = [(slot, thought.raw.encode()) for slot, thought in zip(at, thoughts, strict=True)]
    items.patch.put_thoughts(others, existing, wanted, verbatim=verbatim)


def _is_inline_thought(value: Any) -> bool:
    """Whether a message is what some clients make of a thought, in its place."""
    if item_type(value) != "message" or side(value) is not Side.OUTPUT or value.get("id"):
        return False
    thought, rest = split(joined_text(value.get("content")))
    return thought.rstrip().endswith(CLOSE) and not rest


def _is_sealed_summary(value: Any) -> bool:
    part = output_part(value)
    return isinstance(part, Blob) and part.sealed


def _slots(places: Sequence[Place], thoughts: Sequence[PlacedThought]) -> list[int]:
    """Return for each thought the index of its place.

    Clients drop and merge texts. A thought whose place is gone stands before whatever comes next,
    or else beside the thought before it: after everything it would have led to nothing.
    """
    known = {place: slot for slot, place in enumerate(places)}
    end = len(places) - 1
    found: list[int] = []
    last = -1
    for position, thought in enumerate(thoughts):
        if thought.place in known:
            last = known[thought.place]
            found.append(last)
        else:
            later = next((known[t.place] for t in thoughts[position:] if t.place in known), end)
            found.append(min(later, last + 1 if last + 1 < end else max(last, 0)))
    return found
