"""Thoughts put into, and taken out of, JSON lists: blocks, parts or items of an output.

A place names the text, call or blob that a thought led to. Clients drop texts and insert others,
so a place is looked for as far as it is sure: a call is, a text may be gone. Thoughts that already
stand where they may are left there; only what differs is cut out or put in.
"""

from collections.abc import Sequence
from typing import NamedTuple

from thoughtline.dialects import splice, thoughts
from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.splice import Edit, Span
from thoughtline.log.turns import Place


class Existing(NamedTuple):
    """A thought that a list has: its spans (several where it came in fragments), its JSON text."""

    slot: int  # how many other elements stand before it
    spans: tuple[Span, ...]
    raw: bytes


class ListPatch:
    """What is removed from the lists of a body, and what is inserted into them."""

    def __init__(self) -> None:
        self.removed: list[Span] = []
        self.inserted: dict[int, list[bytes]] = {}  # start of an element → what stands before it
        self.appended: list[bytes] = []  # after everything

    def put_thoughts(
        self,
        others: Sequence[Span],
        existing: Sequence[Existing],
        wanted: Sequence[tuple[int, bytes]],
        *,
        verbatim: bool = False,
    ) -> None:
        """Let the wanted thoughts stand before their elements (by slot), and no others.

        Equal thoughts keep their bytes; with `verbatim`, only those that are spelled the same.
        """
        for slot in sorted({at for at, _ in wanted} | {there.slot for there in existing}):
            waiting = [raw for at, raw in wanted if at == slot]
            for there in existing:
                if there.slot != slot:
                    continue
                equal = (i for i, raw in enumerate(waiting) if same_text(there.raw, raw, verbatim))
                match = next(equal, None)
                if match is None:
                    self.removed += there.spans
                    continue
                if match:
                    self.insert(there.spans[0], waiting[:match])
                del waiting[: match + 1]
            if waiting and slot < len(others):
                self.insert(others[slot], waiting)
            elif waiting:
                self.appended += waiting

    def insert(self, before: Span, raws: Sequence[bytes]) -> None:
        """Insert elements before another one, after those that were inserted there already."""
        self.inserted.setdefault(before.start, []).extend(raws)

    def edits(self, spans: Sequence[Span], place: Span, *, last: bool = True) -> list[Edit]:
        """The edits of one list: `spans` are its elements, `place` is where the list stands.

        What was to stand before an element that is removed stands before the next one that stays.
        """
        gone = {span.start for span in self.removed}
        cut = [span for span in spans if span.start in gone] if gone else []
        edits = splice.cut(cut, spans) if cut else []
        waiting: list[bytes] = []
        for span in spans if self.inserted else ():
            waiting += self.inserted.get(span.start, ())
            if waiting and span.start not in gone:
                edits.append((span.start, span.start, b",".join(waiting) + b","))
                waiting = []
        if last:
            waiting = waiting + self.appended
        if waiting:
            end = spans[-1].end if spans else place.value + 1
            comma = b"," if len(cut) < len(spans) else b""
            edits.append((end, end, comma + b",".join(waiting)))
        return edits


def same_text(there: bytes, raw: bytes, verbatim: bool = False) -> bool:
    """Whether two JSON texts say the same; `verbatim`: but for spaces and escapes, in one spelling.

    A lone surrogate is read as U+FFFD: it must not be taken for another one, and equals itself.
    """
    if there == raw:
        return True
    if splice.mask(there) != there or splice.mask(raw) != raw:
        return False
    return (thoughts.same_spelling if verbatim else thoughts.same_json)(
        there.decode(), raw.decode()
    )


# -- where thoughts belong -----------------------------------------------------------------------


def slots(
    kinds: Sequence[str], wanted: Sequence[PlacedThought], existing: Sequence[Existing] = ()
) -> list[int]:
    """For each thought the index of the element it stands before; `len(kinds)` is after the last.

    `kinds` are those of the elements that are no thoughts: "text", "call", "blob" or "" (nothing).
    Where just these thoughts are there already, altered or not, they stay where that is possible.
    """
    found: list[int] = []
    for placed in wanted:
        slot = _slot(kinds, placed.place)
        found.append(max(slot, found[-1]) if found else slot)  # thoughts never change their order
    claimed = {slot for slot, p in zip(found, wanted, strict=True) if p.place.kind == "text"}
    if len(existing) == len(found) and all(
        _may_stay(kinds, there.slot, slot, placed.place, claimed) and _altered(there.raw, placed)
        for there, slot, placed in zip(existing, found, wanted, strict=True)
    ):
        return [there.slot for there in existing]
    return found


def _altered(there: bytes, placed: PlacedThought) -> bool:
    """Whether this is that thought, or what a client made of it: a seal is seldom touched."""
    raw = placed.raw.encode()
    if same_text(there, raw):
        return True
    seals = thoughts.seal_digests(placed.carrier, splice.loads(raw))
    return not set(seals).isdisjoint(thoughts.seal_digests(placed.carrier, splice.loads(there)))


def _slot(kinds: Sequence[str], place: Place) -> int:
    """The element that a thought stands before.

    A text that is gone stood beside the calls, or is now part of the last one that is there. A
    thought is not put last unless it was: nothing would be after it.
    """
    known = [i for i, kind in enumerate(kinds) if kind == place.kind]
    if place.nth < len(known):
        return known[place.nth]
    rest = ("text", "call") if place.kind == "blob" else ("call",)
    if place.kind in ("text", "blob"):
        known = [i for i, kind in enumerate(kinds) if kind in rest][:1] or known[-1:]
        return known[0] if known else len(kinds)
    return len(kinds)


def _may_stay(kinds: Sequence[str], at: int, slot: int, place: Place, claimed: set[int]) -> bool:
    """Whether a thought may stay at a slot that is before its own: nothing it led to is between.

    A text that no other thought led to may be one that the client put in beside the call.
    """
    return at <= slot and all(
        not kinds[i] or (kinds[i] == "text" and place.kind == "call" and i not in claimed)
        for i in range(at, slot)
    )
