"""Where thoughts stand among the other elements of an output, in lists of blocks or parts.

A place names the text, call or blob that a thought led to. Clients drop texts and insert others,
so a place is looked for as far as it is sure: a call is, a text may be gone. Thoughts that already
stand where they may are left there; only what differs is cut out or put in.
"""

from collections.abc import Sequence
from typing import NamedTuple

from thoughtline import splice
from thoughtline.dialects import thoughts
from thoughtline.dialects.base import Placed
from thoughtline.splice import Edit, Span
from thoughtline.turns import Place


class Standing(NamedTuple):
    """A thought that is there: its spans (several where it came in fragments) and its JSON text."""

    slot: int  # how many other elements stand before it
    spans: tuple[Span, ...]
    raw: bytes


def slots(
    kinds: Sequence[str], wanted: Sequence[Placed], standing: Sequence[Standing] = ()
) -> list[int]:
    """For each thought the index of the element it is before; `len(kinds)` is behind the last.

    `kinds` are those of the elements that are no thoughts: "text", "call", "blob" or "" (nothing).
    Where just these thoughts are there already, altered or not, they stay where that is possible.
    """
    found: list[int] = []
    for placed in wanted:
        slot = _slot(kinds, placed.place)
        found.append(max(slot, found[-1]) if found else slot)  # thoughts never change their order
    claimed = {slot for slot, p in zip(found, wanted, strict=True) if p.place.kind == "text"}
    if len(standing) == len(found) and all(
        _fits(kinds, there.slot, slot, placed.place, claimed) and _kin(there.raw, placed)
        for there, slot, placed in zip(standing, found, wanted, strict=True)
    ):
        return [there.slot for there in standing]
    return found


def _kin(there: bytes, placed: Placed) -> bool:
    """Whether this is that thought, or what a client made of it: a seal is seldom touched."""
    raw = placed.raw.encode()
    if same(there, raw):
        return True
    seals = thoughts.seals(placed.carrier, splice.loads(raw))
    return not set(seals).isdisjoint(thoughts.seals(placed.carrier, splice.loads(there)))


def _slot(kinds: Sequence[str], place: Place) -> int:
    """A text that is gone stood beside the calls, or is now part of the last one that is there.

    A thought is not put last unless it was: nothing would be after it.
    """
    known = [i for i, kind in enumerate(kinds) if kind == place.kind]
    if place.nth < len(known):
        return known[place.nth]
    rest = ("text", "call") if place.kind == "blob" else ("call",)
    if place.kind in ("text", "blob"):
        known = [i for i, kind in enumerate(kinds) if kind in rest][:1] or known[-1:]
        return known[0] if known else len(kinds)
    return len(kinds)


def _fits(kinds: Sequence[str], at: int, slot: int, place: Place, claimed: set[int]) -> bool:
    """Whether a thought may stay at a slot that is before its own: nothing it led to is between.

    A text that no other thought led to may be one that the client put in beside the call.
    """
    return at <= slot and all(
        not kinds[i] or (kinds[i] == "text" and place.kind == "call" and i not in claimed)
        for i in range(at, slot)
    )


def same(there: bytes, raw: bytes) -> bool:
    """Whether two JSON texts say the same; half an emoji only equals itself."""
    if there == raw:
        return True
    whole = splice.mask(there) == there and splice.mask(raw) == raw
    return whole and thoughts.same(there.decode(), raw.decode())


class Plan:
    """What is cut out of an output's list and put into it."""

    def __init__(self) -> None:
        self.gone: list[Span] = []
        self.before: dict[int, list[bytes]] = {}  # start of an element → what stands before it
        self.last: list[bytes] = []  # behind everything

    def edits(self, spans: Sequence[Span], place: Span, *, last: bool = True) -> list[Edit]:
        """The edits of one list: `spans` are its elements, `place` is where it stands."""
        gone = {span.start for span in self.gone}
        cut = [span for span in spans if span.start in gone] if gone else []
        edits = splice.cut(cut, spans) if cut else []
        for span in spans if self.before else ():
            if raws := self.before.get(span.start):
                edits.append((span.start, span.start, b",".join(raws) + b","))
        if last and self.last:
            end = spans[-1].end if spans else place.value + 1
            comma = b"," if len(cut) < len(spans) else b""
            edits.append((end, end, comma + b",".join(self.last)))
        return edits


def plan(
    others: Sequence[Span], standing: Sequence[Standing], wanted: Sequence[tuple[int, bytes]]
) -> Plan:
    """What to do so that the wanted thoughts stand before their elements, and no others."""
    made = Plan()
    for slot in sorted({at for at, _ in wanted} | {there.slot for there in standing}):
        waiting = [raw for at, raw in wanted if at == slot]
        for there in standing:
            if there.slot != slot:
                continue
            match = next((i for i, raw in enumerate(waiting) if same(there.raw, raw)), None)
            if match is None:
                made.gone += there.spans
                continue
            if match:
                made.before.setdefault(there.spans[0].start, []).extend(waiting[:match])
            del waiting[: match + 1]
        if waiting and slot < len(others):
            made.before[others[slot].start] = waiting
        elif waiting:
            made.last = waiting
    return made
