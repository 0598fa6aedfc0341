"""Compares the thoughts that a client itself sends with what would be put there. Pure.

An echo may be enough, or the same in other words; it may be foreign to the target, or a placeholder
of the client's own.
"""

from collections.abc import Mapping, Sequence

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought
from thoughtline.dialects.thoughts import (
    bare_signature,
    joined_part,
    make_thought,
    same_json,
    same_spelling,
    same_thought,
)
from thoughtline.log import keys as k
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import RIDING, Blob, Carrier, Part, Text, Thought
from thoughtline.log.turns import Place, Turn, output_shape, places
from thoughtline.providers.policy import Policy
from thoughtline.replay.guard import NEEDS_FOLLOWER, Target, guard

HANDLE = "handle"
"""Stands for a field of `Origin`: a translated answer gave it to its client, and no provider."""


def echoed(turn: Turn) -> list[Thought]:
    """Return the thoughts that the client itself sends with an output; mostly there are none."""
    echo: list[Thought] = []
    for part in turn.output:
        if type(part) is Thought:
            echo.append(part)  # noqa: PERF401 (a comprehension is slower here)
    return echo


def thoughts_with_places(parts: Sequence[Part]) -> list[tuple[Thought, Place]]:
    """Return the thoughts of an output, each with its place."""
    thoughts = [part for part in parts if isinstance(part, Thought)]
    return list(zip(thoughts, places(output_shape(parts)), strict=True))


def echoed_in_place(turn: Turn) -> list[PlacedThought]:
    """Return the client's own thoughts, where they stand."""
    return [PlacedThought(at, t.carrier, t.raw) for t, at in thoughts_with_places(turn.output)]


def echo_is_blank(echo: Sequence[Thought]) -> bool:
    """Whether the echo is only a placeholder."""
    return all(not t.sealed and not t.id and not t.text.strip() for t in echo)


def echo_is_respelled(echo: Sequence[Thought], placed: Sequence[PlacedThought]) -> bool:
    """Whether an equal echo holds items that its client serialised again: other order or digits."""
    raws = [p.raw for p in placed if p.carrier is Carrier.ITEM]
    mine = [t.raw for t in echo if t.carrier is Carrier.ITEM]
    return not all(same_spelling(one, other) for one, other in zip(mine, raws, strict=False))


def echo_is_identical(turn: Turn, echo: Sequence[Thought], placed: Sequence[PlacedThought]) -> bool:
    """Whether the client's echo equals what would be put there, in the same places."""
    parts = Carrier.PART in [p.carrier for p in placed]
    if len(echo) != len(placed) and not parts:
        return False
    mine = echoed_in_place(turn)
    if _are_same(mine, placed):
        return True
    return parts and _are_same(_uncut(mine), _uncut(placed))


def with_joined_signatures(turn: Turn, placed: list[PlacedThought]) -> list[PlacedThought]:
    """Let the signature of an empty part stand on the text that the client has joined it with."""
    if Carrier.PART not in [p.carrier for p in placed]:
        return placed
    signed = [p for p in echoed_in_place(turn) if p.carrier is Carrier.SIGNATURE]
    on_text = [own for own in signed if own.place.kind != "call"]
    joined: list[PlacedThought] = []
    for one in placed:
        raw = bare_signature(one.raw) if one.carrier is Carrier.PART and on_text else None
        same = [own for own in on_text if raw and same_thought(own.carrier, own.raw, raw)]
        joined.append(same[0] if same else one)
    return joined


def echo_stands_in(turn: Turn, echo: Sequence[Thought], placed: Sequence[PlacedThought]) -> bool:
    """Whether the client has put a placeholder of its own in the place of a lost thought.

    A provider that takes an empty text there takes any; a value that stands for a signature is one
    of few.
    """
    if echo_is_identical(turn, echo, placed):
        return True
    carrier, raw = placed[0].carrier, placed[0].raw
    if carrier in RIDING or not echo_is_blank(echo) or carrier not in {t.carrier for t in echo}:
        return False
    return not make_thought(carrier, splice.loads(raw.encode())).text


def _are_same(mine: Sequence[PlacedThought], wanted: Sequence[PlacedThought]) -> bool:
    if len(mine) != len(wanted):
        return False
    if len(mine) > 1:
        mine, wanted = (sorted(each, key=lambda p: p.carrier) for each in (mine, wanted))
    return all(
        own.carrier is want.carrier
        and same_thought(want.carrier, own.raw, want.raw)
        and (
            own.carrier not in NEEDS_FOLLOWER | RIDING
            or _comparable(own.place) == _comparable(want.place)
        )
        for own, want in zip(mine, wanted, strict=True)
    )


def _uncut(thoughts: Sequence[PlacedThought]) -> list[PlacedThought]:
    """Join readable parts that follow one another: streams cut a thought anywhere."""
    joined: list[PlacedThought] = []
    for one in thoughts:
        last = joined[-1] if joined else None
        if last is not None and (last.place, last.carrier) == (one.place, Carrier.PART):
            raw = joined_part(last.raw, one.raw) if one.carrier is Carrier.PART else None
            if raw is not None:
                joined[-1] = PlacedThought(one.place, one.carrier, raw)
                continue
        joined.append(one)
    return joined


def echo_suffices(echo: Sequence[Thought], placed: Sequence[PlacedThought], policy: Policy) -> bool:
    """Whether the echo has at least the key that the target reads first, and nothing foreign."""
    wanted = {p.carrier: p.raw for p in placed}
    return policy.reads[0] in {t.carrier for t in echo} and all(
        t.carrier in wanted and same_json(t.raw, wanted[t.carrier]) for t in echo
    )


def _comparable(place: Place) -> tuple[str, int]:
    """Return what counts of a place: texts may have been dropped or merged, calls never are."""
    return (place.kind, place.nth) if place.kind == "call" else ("", 0)


def output_was_reshaped(turn: Turn, entry: IndexEntry, placed: Sequence[PlacedThought]) -> bool:
    """Whether a client dropped, added or moved something between an output's sealed items.

    What follows an item is then not what its provider has stored.
    """
    if not any(p.carrier is Carrier.ITEM for p in placed) or not any(
        t.seals for t in entry.thoughts
    ):
        return False
    if any(t.carrier is Carrier.REFERENCE for t in turn.thoughts):
        return False  # it is only referred to
    if output_shape(turn.output).replace("t", "") != entry.shape.replace("t", ""):
        return True
    ids = [call.id for call in turn.calls]
    return len(ids) > 1 and ids != list(entry.calls) and sorted(ids) == sorted(entry.calls)


def has_own_item_ids(turn: Turn, entry: IndexEntry) -> bool:
    """Whether a client numbers texts or calls behind sealed items itself.

    The provider looks behind such an item for the id that it has given.
    """
    if not any(t.seals and t.carrier is Carrier.ITEM for t in entry.thoughts):
        return False
    ids = [part.id for part in turn.output if type(part) is Text]
    ids += [call.item for call in turn.calls]
    return any(id and k.reference_key("item", id) not in entry.keys for id in ids)


def foreign_field(
    echo: Sequence[Thought], found: Mapping[bytes, Sequence[IndexEntry]], target: Target
) -> str:
    """Return why a sealed thought that the client brought may not go there; empty: it may."""
    for thought in echo:
        if thought.handle:
            return HANDLE
        for digest in thought.seals:
            origins = [
                t.origin
                for entry in found.get(k.seal_key(digest), ())
                for t in entry.thoughts
                if digest in t.seals
            ]
            fields = [guard(origin, target, sealed=True) for origin in origins]
            if fields and all(fields):
                # what only this model cannot read, the provider itself drops
                dropped_there = fields[0] == "model" and target.policy.prefix
                return "" if dropped_there else fields[0]
    return ""


def has_foreign_blob(
    turn: Turn, found: Mapping[bytes, Sequence[IndexEntry]], target: Target
) -> bool:
    """Whether the client brought a sealed summary that was made for another target."""
    for part in turn.output:
        if type(part) is Blob and part.sealed:
            origins = [entry.origin for entry in found.get(k.seal_key(part.digest), ())]
            if origins and all(guard(o, target, sealed=True) for o in origins):
                return True
    return False
