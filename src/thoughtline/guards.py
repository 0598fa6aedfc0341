"""What may go back to a target, and how it is spelled there.

Guards compare where a thought was made with where it would go; a sealed one passes only as far as
the target's policy row binds it, and a plain one never leaves its provider (behind a router: its
model). What passes is put under a key the target reads, in the place where it stood. Pure; used by
`replay`.
"""

from collections.abc import Sequence

from msgspec import Struct

from thoughtline.dialects.base import Placed
from thoughtline.dialects.thoughts import STRINGS, nameless, recast, same, verbatim
from thoughtline.events import Outcome
from thoughtline.memories import Memory
from thoughtline.parts import RIDING, Carrier, Origin, Part, Thought
from thoughtline.policies import Policy
from thoughtline.turns import Place, Turn, outline, places

_WITH_A_HALF = frozenset({Carrier.REASONING_DETAILS, Carrier.REASONING_OPAQUE})
"""Carriers of seals whose readable half is said beside them: both go, or none."""

_COMPLETED = Outcome.COMPLETED

STANDING = frozenset({Carrier.ITEM, Carrier.BLOCK})
"""Carriers that must lead to something: with nothing after them they are refused."""


class Target(Struct, frozen=True, kw_only=True):
    """Where the request is going."""

    policy: Policy
    origin: Origin
    name: str = ""  # what the user calls it


def guard(origin: Origin | None, target: Target, *, sealed: bool) -> str:
    """The first field of Origin that forbids sending a thought to this target; empty: it may go."""
    if origin is None:
        return ""
    binds = target.policy.binds if sealed else target.policy.plain
    there = target.origin
    if origin.provider != there.provider:
        return "provider"
    if origin.endpoint != there.endpoint and "endpoint" in binds:
        return "endpoint"
    if origin.account != there.account and "account" in binds:
        return "account"
    if "model" in binds and not {origin.model, origin.asked} & {there.model, there.asked} - {""}:
        return "model"
    return ""


def sendable(
    turn: Turn, memory: Memory, target: Target, prefix: str = ""
) -> tuple[list[Placed], list[str]]:
    """The thoughts of a remembered turn that may go back, and why the others may not."""
    kept: list[tuple[Thought, Place]] = []
    reasons: list[str] = []
    bare = not memory.outline.strip("t")
    where = _where(memory, turn)
    halved = len(memory.thoughts) > 1 and _halved(memory.thoughts)
    for position, thought in enumerate(memory.thoughts[: len(where)]):
        place = where[position]
        sealed = bool(thought.seals) or (halved and thought.carrier in STRINGS)
        if memory.outcome is not _COMPLETED:
            reasons.append(f"turn {memory.outcome.value}")
        elif position in memory.quarantined:
            reasons.append("quarantined")
        elif thought.forgotten:
            reasons.append("forgotten")
        elif bare or (place.kind == "end" and thought.carrier in STANDING):
            reasons.append("dangling")
        elif field := guard(thought.origin, target, sealed=sealed):
            reasons.append(f"foreign {field}")
        elif target.policy.prefix and _moved(thought, prefix):
            reasons.append("prefix changed")
        else:
            kept.append((thought, place))
    placed = render(kept, turn, target.policy)
    if kept and not placed:
        reasons.append("unreadable there")
    return placed, reasons


def _where(memory: Memory, turn: Turn) -> Sequence[Place]:
    """The places of a memory's thoughts in a client's echo of it.

    Blocks and items that began the output begin the echo, also where the client put words in
    front of a call, or the call in front of the words: they are wanted first.
    """
    where = places(memory.outline)
    if not memory.thoughts or memory.thoughts[0].carrier not in STANDING:
        return where
    shape = outline(turn.output).lstrip("t")
    if not shape or shape[0] == memory.outline.lstrip("t")[:1]:
        return where
    leading = len(memory.outline) - len(memory.outline.lstrip("t"))
    return (*places("t" + shape[0])[:1] * leading, *where[leading:])


def reshaped(turn: Turn, memory: Memory, placed: Sequence[Placed]) -> bool:
    """Whether a client dropped, added or moved something between an output's sealed items.

    What follows an item is then not what its maker remembers.
    """
    if not any(p.carrier is Carrier.ITEM for p in placed) or not any(
        t.seals for t in memory.thoughts
    ):
        return False
    if any(t.carrier is Carrier.REFERENCE for t in turn.thoughts):
        return False  # it is only named
    return outline(turn.output).replace("t", "") != memory.outline.replace("t", "")


def unnamed(placed: Sequence[Placed]) -> list[Placed]:
    """Items without their ids, so that nobody looks for what should follow them."""
    item = Carrier.ITEM
    return [Placed(p.place, item, nameless(p.raw)) if p.carrier is item else p for p in placed]


def _halved(thoughts: Sequence[Thought]) -> bool:
    """Whether one is the sealed half of something that is also said in plain words."""
    return any(t.seals and t.carrier in _WITH_A_HALF for t in thoughts)


def _moved(thought: Thought, prefix: str) -> bool:
    return bool(thought.prefix and prefix) and thought.prefix != prefix


def render(kept: Sequence[tuple[Thought, Place]], turn: Turn, policy: Policy) -> list[Placed]:
    """Thoughts under the keys the target reads; plain ones may change theirs."""
    reads = policy.reads
    placed: list[Placed] = []
    for thought, at in kept:
        if thought.carrier in reads:
            placed.append(Placed(at, thought.carrier, thought.raw))
    if not placed and reads:
        for thought, at in kept:
            for carrier in reads:
                raw = recast(thought, carrier)
                if raw is not None:
                    placed.append(Placed(at, carrier, raw))
                    break
            if placed and reads[0] not in STANDING:
                break  # a message has one place for plain text
    if policy.copies:
        placed += _copies(kept, placed, reads)
    if policy.every_call and placed:
        placed = _before_every_call(placed, len(turn.calls))
    return placed


def standing(parts: Sequence[Part]) -> list[tuple[Thought, Place]]:
    """The thoughts of an output, each with its place."""
    thoughts = [part for part in parts if isinstance(part, Thought)]
    return list(zip(thoughts, places(outline(parts)), strict=True))


def respelled(echo: Sequence[Thought], placed: Sequence[Placed]) -> bool:
    """Whether an equal echo holds items that its client wrote anew: other order, other digits."""
    raws = [p.raw for p in placed if p.carrier is Carrier.ITEM]
    mine = [t.raw for t in echo if t.carrier is Carrier.ITEM]
    return not all(verbatim(one, other) for one, other in zip(mine, raws, strict=False))


def identical(turn: Turn, echo: Sequence[Thought], placed: Sequence[Placed]) -> bool:
    """Whether the client's echo says just what would be put there, in the same places."""
    if len(echo) != len(placed):
        return False
    wanted = sorted(placed, key=lambda p: p.carrier) if len(placed) > 1 else list(placed)
    mine = sorted(standing(turn.output), key=lambda e: e[0].carrier)
    return all(
        thought.carrier is want.carrier
        and same(thought.raw, want.raw)
        and (thought.carrier not in STANDING | RIDING or _level(at) == _level(want.place))
        for (thought, at), want in zip(mine, wanted, strict=True)
    )


def suffices(echo: Sequence[Thought], placed: Sequence[Placed], policy: Policy) -> bool:
    """Whether the echo has at least the key the target looks at first, and nothing it must not."""
    wanted = {p.carrier: p.raw for p in placed}
    return policy.reads[0] in {t.carrier for t in echo} and all(
        t.carrier in wanted and same(t.raw, wanted[t.carrier]) for t in echo
    )


def _level(place: Place) -> tuple[str, int]:
    """Texts may have been dropped or merged; calls never are."""
    return (place.kind, place.nth) if place.kind == "call" else ("", 0)


def _copies(
    kept: Sequence[tuple[Thought, Place]], placed: Sequence[Placed], reads: Sequence[Carrier]
) -> list[Placed]:
    """The same plain text under every other key the target may look at."""
    plain = next(((t, at) for t, at in kept if not t.sealed), None)
    if plain is None:
        return []
    thought, at = plain
    missing = [c for c in reads if c not in {p.carrier for p in placed}]
    recasts = [(carrier, recast(thought, carrier)) for carrier in missing if carrier in STRINGS]
    return [Placed(at, carrier, raw) for carrier, raw in recasts if raw is not None]


def _before_every_call(placed: Sequence[Placed], calls: int) -> list[Placed]:
    """The last thought before a call also stands before the parallel calls after it."""
    made: list[Placed] = [p for p in placed if p.place.kind != "call"]
    at = {p.place.nth: p for p in placed if p.place.kind == "call"}
    latest = placed[0]
    for nth in range(calls):
        latest = at.get(nth, latest)
        made += [p for p in placed if p.place == Place("call", nth)] or [
            Placed(Place("call", nth), latest.carrier, latest.raw)
        ]
    return made
