"""Which thoughts may go back to a target, and how they are spelled there. Pure.

The guard compares where a thought was made with where it would go: a sealed thought passes only as
far as the target's policy row binds it, and a plain one never leaves its endpoint and the other
hosts of that company (behind a router: its model). What passes is rendered under a key that the
target reads, at the place where it stood.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.thoughts import (
    STRING_CARRIERS,
    convert,
    without_id,
)
from thoughtline.log.decisions import PREFIX_CHANGED, UNREADABLE
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import RIDING, Carrier, Origin, Thought
from thoughtline.log.turns import Place, Turn, output_shape, places
from thoughtline.providers.catalogue import same_company
from thoughtline.providers.policy import Policy

_SEALED_BESIDE_TEXT = frozenset({Carrier.REASONING_DETAILS, Carrier.REASONING_OPAQUE})
"""Sealed carriers whose readable text is sent beside them: both go back, or neither."""

_COMPLETED = Outcome.COMPLETED

UNFINISHED = frozenset(
    {f"turn {outcome.value}" for outcome in Outcome if outcome is not _COMPLETED} | {"dangling"}
)
"""Why a thought that is whole is not put back: nothing came of it, as far as is known."""

NEEDS_FOLLOWER = frozenset({Carrier.ITEM, Carrier.BLOCK})
"""Carriers that providers refuse when nothing follows them."""


class LostThought(StrEnum):
    """What is done where a target demands a lost thought and takes nothing in its place."""

    THINKING_OFF = "thinking_off"  # thinking is switched off for this one exchange
    FORWARD = "forward"  # the request goes as it is, and the provider refuses it
    ERROR = "error"  # nothing is sent


class Target(Struct, frozen=True, kw_only=True):
    """The endpoint that a request goes to."""

    policy: Policy
    origin: Origin
    name: str = ""  # what the user calls it
    lost_thought: LostThought = LostThought.THINKING_OFF
    same_endpoints: frozenset[str] = frozenset()  # others that are one with it, as the user says


def guard(origin: Origin | None, target: Target, *, sealed: bool) -> str:
    """Return the first field of `Origin` that forbids sending a thought there; empty: it may go."""
    there = target.origin
    if origin is None or (there.model and origin == there):
        return ""
    binds = target.policy.binds if sealed else target.policy.plain
    if origin.provider != there.provider:
        return "provider"
    if origin.endpoint != there.endpoint and origin.endpoint not in target.same_endpoints:
        company = "company" in binds and not same_company(origin.endpoint, there.endpoint)
        if company or "endpoint" in binds:
            return "endpoint"
    if origin.account != there.account and "account" in binds:
        return "account"
    if "model" in binds and not {origin.model, origin.asked} & {there.model, there.asked} - {""}:
        return "model"
    return ""


def sendable(
    turn: Turn, entry: IndexEntry, target: Target, prefix: str = "", *, from_log: bool = False
) -> tuple[list[PlacedThought], list[str]]:
    """Return the thoughts of a logged turn that may go back, and why the others may not."""
    if not entry.thoughts:
        return [], []
    kept: list[tuple[Thought, Place]] = []
    reasons: list[str] = []
    policy, quarantined = target.policy, entry.quarantined
    only_thoughts = not entry.shape.strip("t")
    where = places(entry.shape) if from_log else _places_in_echo(entry, turn)
    has_sealed_half = len(entry.thoughts) > 1 and _has_sealed_half(entry.thoughts)
    for thought, place in zip(entry.thoughts, where, strict=False):
        sealed = bool(thought.seals) or (has_sealed_half and thought.carrier in STRING_CARRIERS)
        if quarantined and len(kept) + len(reasons) in quarantined:
            reasons.append("quarantined")
        elif thought.forgotten:
            reasons.append("forgotten")
        elif thought.unreadable:
            reasons.append("unreadable")
        elif entry.outcome is not _COMPLETED and not _signs_call(thought, place):
            reasons.append(f"turn {entry.outcome.value}")
        elif only_thoughts or (place.kind == "end" and thought.carrier in NEEDS_FOLLOWER):
            reasons.append("dangling")
        elif field := guard(thought.origin, target, sealed=sealed):
            reasons.append(f"foreign {field}")
        elif not sealed and policy.signed:
            reasons.append("unsigned")
        elif policy.prefix and _prefix_changed(thought, prefix):
            reasons.append(PREFIX_CHANGED)
        else:
            kept.append((thought, place))
    placed = render(kept, turn, policy) if kept else []
    if kept and not placed:
        reasons.append(UNREADABLE)
    return placed, reasons


def _places_in_echo(entry: IndexEntry, turn: Turn) -> Sequence[Place]:
    """Return the places of an entry's thoughts in a client's echo of the turn.

    Blocks and items that began the output begin the echo, also where the client put text in front
    of a call, or the call in front of the text: providers want them first.
    """
    where = places(entry.shape)
    if entry.thoughts[0].carrier not in NEEDS_FOLLOWER:
        return where
    shape = output_shape(turn.output).lstrip("t")
    if not shape or shape[0] == entry.shape.lstrip("t")[:1]:
        return where
    leading = len(entry.shape) - len(entry.shape.lstrip("t"))
    return (*places("t" + shape[0])[:1] * leading, *where[leading:])


def without_item_ids(placed: Sequence[PlacedThought]) -> list[PlacedThought]:
    """Remove the ids of items, so that the provider does not look for what should follow them."""
    item = Carrier.ITEM
    return [
        PlacedThought(p.place, item, without_id(p.raw)) if p.carrier is item else p for p in placed
    ]


def _signs_call(thought: Thought, place: Place) -> bool:
    """Whether a thought is the signature of a call: whole as soon as the call is."""
    return thought.carrier in RIDING and place.kind == "call"


def _has_sealed_half(thoughts: Sequence[Thought]) -> bool:
    """Whether one of the thoughts is the sealed half of something that is also plain text."""
    return any(t.seals and t.carrier in _SEALED_BESIDE_TEXT for t in thoughts)


def _prefix_changed(thought: Thought, prefix: str) -> bool:
    return bool(thought.prefix and prefix) and thought.prefix != prefix


def render(
    kept: Sequence[tuple[Thought, Place]], turn: Turn, policy: Policy
) -> list[PlacedThought]:
    """Return thoughts under the keys that the target reads; plain ones may change theirs."""
    reads = policy.reads
    placed: list[PlacedThought] = []
    for thought, at in kept:
        if thought.carrier in reads:
            placed.append(PlacedThought(at, thought.carrier, thought.raw))
    if not placed and reads:
        for thought, at in kept:
            for carrier in reads:
                raw = convert(thought, carrier)
                if raw is not None:
                    placed.append(PlacedThought(at, carrier, raw))
                    break
            if placed and reads[0] not in NEEDS_FOLLOWER:
                break  # a message has one place for plain text
    if policy.copies:
        placed += _copies(kept, placed, reads)
    if policy.every_call and placed:
        placed = _before_every_call(placed, len(turn.calls))
    return placed


def _copies(
    kept: Sequence[tuple[Thought, Place]], placed: Sequence[PlacedThought], reads: Sequence[Carrier]
) -> list[PlacedThought]:
    """Return the same plain text under every other key that the target may read."""
    plain = next(((t, at) for t, at in kept if not t.sealed), None)
    if plain is None:
        return []
    thought, at = plain
    missing = [c for c in reads if c not in {p.carrier for p in placed}]
    recasts = [
        (carrier, convert(thought, carrier)) for carrier in missing if carrier in STRING_CARRIERS
    ]
    return [PlacedThought(at, carrier, raw) for carrier, raw in recasts if raw is not None]


def _before_every_call(placed: Sequence[PlacedThought], calls: int) -> list[PlacedThought]:
    """Repeat the last thought before a call at the parallel calls after it."""
    repeated: list[PlacedThought] = [p for p in placed if p.place.kind != "call"]
    at = {p.place.nth: p for p in placed if p.place.kind == "call"}
    latest = placed[0]
    for nth in range(calls):
        latest = at.get(nth, latest)
        repeated += [p for p in placed if p.place == Place("call", nth)] or [
            PlacedThought(Place("call", nth), latest.carrier, latest.raw)
        ]
    return repeated
