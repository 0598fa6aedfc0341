"""Putting reasoning items into a Responses body, touching only the outputs concerned.

An output is a run of elements of `input`. Its thoughts are put right before what they led to, those
it should not have are taken out, and equal ones that stand where they should keep their bytes. A
`Slot` is a place in such a run; `Weave` turns insertions and removals into edits of the array.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Placed, Request, Revision
from thoughtline.dialects.content import joined
from thoughtline.dialects.inline import CLOSE, split
from thoughtline.dialects.responses_items import ARGUMENTS, Side, kind, letter, said, side, string
from thoughtline.dialects.thoughts import same, verbatim
from thoughtline.parts import Blob, Carrier
from thoughtline.splice import Edit, Span
from thoughtline.turns import Place

_KINDS = {"x": "text", "c": "call", "b": "blob"}


def patch(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> bytes:
    """The body with these outputs revised; see `Dialect.patch`."""
    revisions = [revision for revision in revisions if request.anchors[revision.turn]]
    if not revisions and not fields:
        return request.body
    body = request.body
    top = splice.members(body)
    edits = top_level.edits(body, top, fields)
    if revisions:
        weave = Weave(body, top["input"])
        for revision in revisions:
            _revise(weave, request.anchors[revision.turn], revision)
        edits += weave.edits()
    return splice.apply(body, edits)


def expand(request: Request, items: Mapping[str, str]) -> bytes:
    """The body with each `item_reference` replaced by the item of that id, where there is one."""
    anchored = [index for anchor in request.anchors for index in anchor]
    named = any(t.carrier is Carrier.REFERENCE for turn in request.turns for t in turn.thoughts)
    if not items or not named:
        return request.body
    weave = Weave(request.body, splice.members(request.body)["input"])
    edits: list[Edit] = []
    for index in anchored:
        value, span = weave.value(index), weave.spans[index]
        raw = items.get(string(value, "id")) if kind(value) == "item_reference" else None
        if raw is not None:
            edits.append((span.start, span.end, raw.encode()))
    return splice.apply(request.body, edits)


class Weave:
    """The elements of one array: which of them go, and what is put before which."""

    def __init__(self, body: bytes, place: Span) -> None:
        self.body = body
        self.spans = splice.elements(body, place)
        self.gone: set[int] = set()
        self.before: dict[int, list[bytes]] = {}  # one more than the last index: at the end
        self.within: list[Edit] = []  # changes inside of elements that stay

    def value(self, index: int) -> Any:
        """An element, decoded."""
        span = self.spans[index]
        return splice.loads(self.body[span.value : span.end])

    def says(self, index: int, raw: str, *, letters: bool = False) -> bool:
        """Whether an element says what a JSON text says; with `letters`, in the same spelling."""
        span, other = self.spans[index], raw.encode()
        there = self.body[span.value : span.end]
        if there == other:
            return True
        # Half an emoji is read as U+FFFD: it must not be taken for another one.
        whole = splice.mask(there) == there and splice.mask(other) == other
        return whole and (verbatim if letters else same)(there.decode(), raw)

    def put(self, index: int, raw: str) -> None:
        """Put an element before another one, behind those that were put there already."""
        self.before.setdefault(index, []).append(raw.encode())

    def strip(self, index: int, key: str) -> None:
        """Take a member off an element."""
        has = splice.members(self.body, self.spans[index])
        if key in has:
            self.within += splice.cut([has[key]], has.values())

    def give(self, index: int, key: str, value: str) -> None:
        """Give a member of an element a value."""
        span = self.spans[index]
        has = splice.members(self.body, span)
        self.within.append(splice.put(span, key, splice.dumps(value), has))

    def edits(self) -> list[Edit]:
        """All of it as edits of the text."""
        edits = self.within + splice.cut([self.spans[i] for i in self.gone], self.spans)
        kept = [index for index in range(len(self.spans)) if index not in self.gone]
        last: list[bytes] = []
        ahead: dict[int, list[bytes]] = {}
        for index, raws in sorted(self.before.items()):
            # What was to stand before an element that goes stands before the next one that stays.
            after = bisect_left(kept, index)
            (last if after == len(kept) else ahead.setdefault(kept[after], [])).extend(raws)
        for index, raws in ahead.items():
            start = self.spans[index].start
            edits.append((start, start, b"".join(raw + b"," for raw in raws)))
        if last:
            end = self.spans[kept[-1] if kept else -1].end
            comma = b"," if kept else b""
            edits.append((end, end, comma + b",".join(last)))
        return edits


class Slot(NamedTuple):
    """Where thoughts may stand in an output: before one of its other items, or behind the last."""

    place: Place
    before: int  # the index of that item
    had: list[int]  # the thoughts that are there


def _revise(weave: Weave, indexes: Sequence[int], revision: Revision) -> None:
    values = {index: weave.value(index) for index in indexes}
    thoughts = [t for t in revision.thoughts if t.carrier in (Carrier.ITEM, Carrier.REFERENCE)]
    told = {index for index, value in values.items() if thoughts and _told(value)}
    if told != set(values):
        weave.gone |= told
        values = {index: value for index, value in values.items() if index not in told}
    slots = _slots(values)
    wanted: dict[int, list[str]] = {}
    for thought, number in zip(thoughts, _numbers(slots, thoughts), strict=True):
        wanted.setdefault(number, []).append(thought.raw)
    for number, slot in enumerate(slots):
        _fill(weave, slot, wanted.get(number, ()), letters=revision.verbatim)
    if revision.unsealed:
        weave.gone |= {index for index, value in values.items() if _summary(value)}
    texts = [index for index, value in values.items() if kind(value) == "message"]
    for index, phase in zip(texts, revision.phases, strict=False):
        if phase:
            weave.give(index, "phase", phase)
    if revision.anonymous:
        for index, value in values.items():
            if kind(value) in ARGUMENTS or kind(value) == "message":
                weave.strip(index, "id")


def _told(value: Any) -> bool:
    """A message that some clients make of a thought; they put it where the thought was."""
    if kind(value) != "message" or side(value) is not Side.OUTPUT or value.get("id"):
        return False
    thought, rest = split(joined(value.get("content")))
    return thought.rstrip().endswith(CLOSE) and not rest


def _summary(value: Any) -> bool:
    part = said(value)
    return isinstance(part, Blob) and part.sealed


def _slots(values: Mapping[int, Any]) -> list[Slot]:
    slots: list[Slot] = []
    counts = dict.fromkeys(_KINDS, 0)
    had: list[int] = []
    for index, value in values.items():
        what = letter(value)
        if what == "t":
            had.append(index)
            continue
        slots.append(Slot(Place(_KINDS[what], counts[what]), index, had))
        counts[what] += 1
        had = []
    return [*slots, Slot(Place("end", 0), max(values) + 1, had)]


def _numbers(slots: Sequence[Slot], thoughts: Sequence[Placed]) -> list[int]:
    """For each thought its slot.

    Clients drop and merge texts. A thought whose place is gone stands before whatever comes next,
    or else beside the thought before it: behind everything it would have led to nothing.
    """
    known = {slot.place: number for number, slot in enumerate(slots)}
    end = len(slots) - 1
    numbers: list[int] = []
    last = -1
    for position, thought in enumerate(thoughts):
        if thought.place in known:
            last = known[thought.place]
            numbers.append(last)
        else:
            later = next((known[t.place] for t in thoughts[position:] if t.place in known), end)
            numbers.append(min(later, last + 1 if last + 1 < end else max(last, 0)))
    return numbers


def _fill(weave: Weave, slot: Slot, wanted: Sequence[str], *, letters: bool) -> None:
    """Make the thoughts of a slot the wanted ones; those that are equal stay where they are."""
    had = list(slot.had)
    for raw in wanted:
        says = (at for at, index in enumerate(had) if weave.says(index, raw, letters=letters))
        match = next(says, None)
        if match is None:
            weave.put(had[0] if had else slot.before, raw)
        else:
            weave.gone.update(had[:match])
            del had[: match + 1]
    weave.gone.update(had)
