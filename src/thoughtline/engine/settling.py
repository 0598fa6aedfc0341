"""Makes the settled beginning of a request from what was decided about it.

All outputs but the last are settled: nothing follows that one yet, and what follows is evidence.
Each must have been recognised by its full key, as the turn that the next one continues, so that
later requests find the same turn whatever else is in the index.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from thoughtline.dialects import limits, splice
from thoughtline.engine.decision import Found, RequestDecision
from thoughtline.engine.normalise import said_in_full
from thoughtline.engine.server_state import references
from thoughtline.engine.settled_prefix import (
    Resumed,
    SettledPrefix,
    at_most,
    first_known,
    keeps_history,
)
from thoughtline.engine.spoken_thoughts import suspected_turns
from thoughtline.errors import Unreadable
from thoughtline.log import keys as k
from thoughtline.log.decisions import Action, ReplayDecision, count_kinds
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Blob, Thought
from thoughtline.log.quirks import Need
from thoughtline.log.turns import Turn
from thoughtline.replay.decide import skipped_at
from thoughtline.replay.needs import last_question, needs
from thoughtline.replay.plan import NO_LIMITS, SettledTurns
from thoughtline.stores.answer_cache import entry_size

MARKED_TURNS = 4
"""The last turns in which clients mark what is to be cached: the next request marks others."""
_MARKER = b'"cache_control"'
_GOES = frozenset({Action.RESTORED, Action.REPLACED, Action.EXACT})
_UNWELCOME = frozenset({Need.IGNORED, Need.FORBIDDEN, Need.NONE})


def settle(
    decision: RequestDecision,
    tenant: str,
    owner: tuple[str, str],
    resumed: Resumed | None,
    epoch: int | None,
) -> SettledPrefix | None:
    """The settled beginning of a request; None where there is none.

    Where nothing more is settled than before, it is the one from which the request went on. `epoch`
    is that of the store, before the request was looked up.
    """
    before = resumed.prefix if resumed is not None else None
    if (before is None and not _is_plain(decision)) or references(decision.request):
        return before
    try:
        cut = _cut(decision)
        place = _beginning(decision, cut)
        if place is None or decision.edits is None:
            return before
        turns = _settled_turns(decision, cut, before)
        if turns is None:
            return before
        return _prefix(decision, before, turns, place, tenant=tenant, owner=owner, epoch=epoch)
    except Unreadable:  # a key twice
        return before


def _is_plain(decision: RequestDecision) -> bool:
    """Whether nothing was done to a request but that thoughts were put in, or taken out.

    Of one that goes on from a settled beginning, `Resumed` has made sure of that.
    """
    plan = decision.replay_plan
    return (
        first_known(plan.matches) is not None
        and decision.request.body is decision.original.body
        and plan.gap < 0
        and not plan.fields
        and not decision.lookup_error
        and not decision.overrides.refused
        and not decision.path.previous
        and decision.predecessor is None
        and decision.limits == NO_LIMITS
        and keeps_history(decision)
    )


# -- where it ends -------------------------------------------------------------------------------


def _cut(decision: RequestDecision) -> int:
    """The turn before which it ends: that of the last output, or the first with a moving marker."""
    last = len(decision.path.keys) - 1
    while decision.path.keys[last] is None:
        last -= 1
    body = decision.request.body
    if _MARKER not in body:
        return last
    layout = splice.layout(body, decision.dialect.history_member)
    start = layout.elements[0].start
    for turn in range(max(0, last - MARKED_TURNS), last):
        start = _beginning(decision, turn) or start
        if body.find(_MARKER, start, _beginning(decision, turn + 1) or start) >= 0:
            return turn
    return last


def _beginning(decision: RequestDecision, turn: int) -> int | None:
    """Where a turn begins in the text; None where it does so with an output, or is the first."""
    if not turn or decision.path.keys[turn - 1] is None:
        return None
    anchors = decision.request.anchors
    behind, output = _elements(anchors[turn - 1])[-1] + 1, _elements(anchors[turn])
    if output and output[0] <= behind:
        return None
    layout = splice.layout(decision.request.body, decision.dialect.history_member)
    return layout.elements[behind].start


def _elements(anchor: Any) -> Sequence[int]:
    """The positions of the elements that an output stands in."""
    if isinstance(anchor, tuple):
        return anchor
    return (anchor,) if anchor >= 0 else ()


# -- which turns are settled ---------------------------------------------------------------------


class _Turns(Struct, frozen=True, kw_only=True):
    """The settled turns, with those that were settled before."""

    cut: int  # how many are new
    turns: SettledTurns
    last: str
    next: str
    filed: Found
    full_keys: frozenset[str]
    entry_bytes: int


def _settled_turns(
    decision: RequestDecision, cut: int, before: SettledPrefix | None
) -> _Turns | None:
    """The turns before the cut; None where one of them is not settled."""
    path, plan, known = decision.path, decision.replay_plan, decision.settled
    matches, found = plan.matches.turns, decision.found
    made = plan.decisions[len(known.decisions) :]
    outputs = [index for index in range(cut) if path.keys[index] is not None]
    suspects = suspected_turns(decision) if before is None else ()  # else there are none
    prefix_bound = decision.target.policy.prefix
    last = before.last if before is not None else ""
    full_keys: set[str] = set(before.full_keys) if before is not None else set()
    entry_bytes = before.entry_bytes if before is not None else 0
    filed: dict[bytes, Sequence[IndexEntry]] = {}
    for decided, index in zip(made, outputs, strict=False):
        match, keys = matches[index], path.keys[index]
        entry = match.entry if match is not None else None
        if entry is None or keys is None or (last and entry.parent != last) or index in suspects:
            return None
        if prefix_bound and not _stays_bound(entry, decided):
            return None
        last = entry.turn
        full_keys.add(keys.full.hex())
        entry_bytes += entry_size(entry)
        for key in (keys.full, *_seal_keys(path.turns[index])):
            filed[key] = found.get(key, ())
    following = matches[cut]
    if following is None or following.entry is None or following.entry.parent != last:
        return None
    if before is not None:
        filed = {**before.filed, **filed}
    settled = SettledTurns(
        turns=known.turns + cut,
        decisions=plan.decisions[: len(known.decisions) + len(outputs)],
        mark=known.mark.followed_by(made[: len(outputs)]),
        kinds=count_kinds(made[: len(outputs)], known.kinds),
        loop=_loop(path.turns[:cut], known),
        skipped={**known.skipped, **skipped_at(path.keys[:cut], matches[:cut], decision.target)},
        newly_skipped={key: why for key, why in plan.skipped.items() if key in full_keys},
    )
    return _Turns(
        cut=cut,
        turns=settled,
        last=last,
        next=following.entry.turn,
        filed=filed,
        full_keys=frozenset(full_keys),
        entry_bytes=entry_bytes,
    )


def _stays_bound(entry: IndexEntry, made: ReplayDecision) -> bool:
    """Whether a block that is bound to what is before it goes, and no later one was without it."""
    return not entry.skipped and (made.action in _GOES or made.reason == "had none")


def _seal_keys(turn: Turn) -> list[bytes]:
    """The keys of seals that the client itself brings: by them it is known where they were made."""
    found: list[bytes] = []
    for part in turn.output:
        if type(part) is Thought:
            found += [k.seal_key(seal) for seal in part.seals]
        elif type(part) is Blob and part.sealed:
            found.append(k.seal_key(part.digest))
    return found


def _loop(turns: Sequence[Turn], known: SettledTurns) -> int:
    """Where the tool loop begins that runs at the end of these turns."""
    asked = last_question(turns, 0 if known.turns else 1)
    return known.loop if asked is None else known.turns + asked


# -- the prefix itself ---------------------------------------------------------------------------


def _prefix(
    decision: RequestDecision,
    before: SettledPrefix | None,
    new: _Turns,
    place: int,
    *,
    tenant: str,
    owner: tuple[str, str],
    epoch: int | None,
) -> SettledPrefix | None:
    path, request, edits = decision.path, decision.request, decision.edits or ()
    for start, end, _ in edits:
        if start < place < end:
            return before
    keys = path.keys[new.cut - 1]
    if keys is None:
        return before
    needed = needs(path, decision.target.policy) if before is None else before.needs
    layout = splice.layout(request.body, decision.dialect.history_member)
    start = layout.elements[0].start if before is None else before.start
    marks = limits.marks(request.body if before is None else request.body[start:place])
    inserted = before.sent_end - before.sent_start if before is not None else 0
    return SettledPrefix(
        owner=owner,
        body=decision.original.body,
        start=start,
        end=place if before is None else before.end + place - start,
        sent=decision.body,
        sent_start=splice.shifted(start, [edit for edit in edits if edit[0] < start]),
        sent_end=splice.shifted(place, edits) + inserted,
        cost=marks.cost + (before.cost if before is not None else 0),
        parts=before.parts + marks.parts if before is not None else request.parts or marks.parts,
        tenant=tenant,
        target=decision.target,
        needs=needed,
        hints=frozenset(path.unique_hints),
        loop=_bound_loop(decision, before, new, needed),
        aside=(before is not None and before.aside) or _says_aside(decision, start, place, new.cut),
        filed=new.filed,
        seal_keys=tuple([key for key in new.filed if key.hex() not in new.full_keys]),
        epoch=epoch,
        skipped=decision.replay_plan.skipped_before,
        full_keys=new.full_keys,
        last=new.last,
        next=new.next,
        turns=new.turns,
        rolling_key=k.RollingKey.behind(path.turns[new.cut - 1].output, keys),
        prefix_state=path.prefix_states[new.cut - 1] if path.prefix_states else None,
        entry_bytes=new.entry_bytes,
    )


def _bound_loop(
    decision: RequestDecision,
    before: SettledPrefix | None,
    new: _Turns,
    needed: tuple[Need, Need],
) -> int | None:
    """Where the tool loop must begin for the decisions to hold; None: wherever it does.

    Thoughts that go go within a loop that demands them, and beyond it where they are welcome.
    """
    made = new.turns.decisions[len(decision.settled.decisions) :]
    bound = before is not None and before.loop is not None
    if (
        bound
        or not _UNWELCOME.isdisjoint(needed)
        or any(d.action not in _GOES or d.left for d in made)
    ):
        return at_most(decision.replay_plan.loop, new.turns.turns)
    return None


def _says_aside(decision: RequestDecision, start: int, end: int, cut: int) -> bool:
    """Whether something is said in these elements that the log does not hold."""
    dialect = decision.dialect
    if not dialect.server_state:
        return False
    elements = decision.request.body[start:end].rstrip(b" ,\n\r\t")
    text = b'{"%s":[%s]}' % (dialect.history_member.encode(), elements)
    params = dialect.state_params(text)
    return params is not None and not said_in_full(decision.path.turns[:cut], params)
