"""Calls that were made at once, each sent back with its own output behind it.

Agents write such histories: call, output, call, output. They read as if the model had been asked
again after each output. Where the log knows a turn that made these very calls together, they are
its output, and its thoughts go where they stood.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Request
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.offload import run_for
from thoughtline.errors import StoreError, Unreadable
from thoughtline.log.decisions import Action, MatchLevel
from thoughtline.log.index import IndexEntry
from thoughtline.log.keys import RollingKey
from thoughtline.log.parts import Part, Result
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Store

MAX_OUTPUTS = 2000
"""Outputs of a request that are looked at. The first ones: what is decided of them must last."""
MAX_TOGETHER = 8
"""Outputs that are read as one."""
_GOES = frozenset({Action.RESTORED, Action.REPLACED, Action.EXACT})


class _Group(Struct, frozen=True):
    """Turns that follow one another, read as one; `content` is the key of its output."""

    turns: range
    calls: Sequence[str]
    content: bytes


async def with_calls_together(
    decision: RequestDecision, store: Store, tenant: str, known_turns: frozenset[str]
) -> RequestDecision:
    """Decide again with such calls read as one output, if the log knows them as one."""
    runs = _runs(decision)
    if not runs or decision.unpatchable:
        return decision
    try:
        groups = await _logged_groups(decision, runs, store, tenant)
        while groups:
            made = await _regrouped(decision, groups, known_turns)
            if made is None:
                break
            known = _known(made, decision)
            right = [group for nth, group in enumerate(groups) if _place(groups, nth) in known]
            if len(right) == len(groups):
                return made
            groups = right
    except (StoreError, Unreadable):
        pass
    return decision


def _known(made: RequestDecision, before: RequestDecision) -> set[int]:
    """The turns that are known. The client's messages change only for the sake of thoughts."""
    free = made.request.body is before.request.body or before.stands_in
    decisions = made.replay_plan.decisions
    return {d.turn for d in decisions if d.entry and (free or d.action in _GOES)}


def _runs(decision: RequestDecision) -> list[range]:
    """The turns that are not known in whole, and where each has the outputs of the one before."""
    made = decision.replay_plan.decisions[:MAX_OUTPUTS]
    unknown = [d.turn for d in made if d.level is not MatchLevel.FULL]
    turns = decision.path.turns
    runs: list[range] = []
    for before, here in pairwise(unknown):
        if here != before + 1 or not _goes_on(turns[before], turns[here]):
            continue
        start = runs.pop().start if runs and runs[-1].stop == here else before
        runs.append(range(start, here + 1))
    return runs


def _goes_on(before: Turn, turn: Turn) -> bool:
    """Whether a turn makes more calls after nothing but the outputs of those before."""
    ids = {*[call.id for call in before.calls], ""}  # which some leave out
    outputs = all(type(part) is Result and part.call in ids for part in turn.input)
    return outputs and bool(turn.input and before.calls and turn.calls)


async def _logged_groups(
    decision: RequestDecision, runs: Sequence[range], store: Store, tenant: str
) -> list[_Group]:
    """The turns that the log knows as one, the longest groups first."""
    turns = decision.path.turns
    finding = partial(_possible_groups, turns, runs)
    possible = await run_for(decision.request.body, finding)
    found = await store.find(tenant, list({group.content for group in possible}))
    groups: list[_Group] = []
    for group in possible:
        entries = found.get(group.content, ())
        if groups and group.turns.start < groups[-1].turns.stop:
            continue
        if any(_made(entry, group.calls) for entry in entries):
            groups.append(group)
    return groups


def _made(entry: IndexEntry, calls: Sequence[str]) -> bool:
    """Whether a turn made these calls; some clients leave out their ids."""
    return len(entry.calls) == len(calls) and set(calls) <= {*entry.calls, ""}


def _possible_groups(turns: Sequence[Turn], runs: Sequence[range]) -> list[_Group]:
    return [group for run in runs for start in run for group in _from(turns, start, run.stop)]


def _from(turns: Sequence[Turn], start: int, stop: int) -> Iterator[_Group]:
    """The groups that begin at a turn, the longest first."""
    for end in range(min(stop, start + MAX_TOGETHER), start + 1, -1):
        output = _together(turns[start:end])
        calls = [call.id for turn in turns[start:end] for call in turn.calls]
        yield _Group(range(start, end), calls, RollingKey().keys_for(output).content)


def _together(turns: Sequence[Turn]) -> tuple[Part, ...]:
    return tuple([part for turn in turns for part in turn.output])


def _place(groups: Sequence[_Group], nth: int) -> int:
    """Where a group stands among the turns, with those before it read as one each."""
    return groups[nth].turns.start - sum(len(group.turns) - 1 for group in groups[:nth])


async def _regrouped(
    decision: RequestDecision, groups: Sequence[_Group], known_turns: frozenset[str]
) -> RequestDecision | None:
    """Decide again with each group as one turn; None where its messages cannot be one."""
    body, source = decision.request.body, decision.source
    joining = partial(source.joined, decision, [group.turns for group in groups])
    made = await run_for(body, joining)
    if made is None:
        return None
    joined, request, path = made
    found, error = await joined.look_up(path, known_turns)
    revising = partial(
        decision.revise,
        source=joined,
        request=request,
        path=path,
        found=found,
        lookup_error=error,
    )
    return await run_for(body, revising)


def joined_turns(turns: Sequence[Turn], groups: Sequence[range]) -> tuple[Turn, ...]:
    """Return the turns with those of each group as one; its results all come behind it."""
    made = list(turns)
    for group in reversed(groups):
        first, behind = group.start, group.stop
        given = [part for turn in made[first + 1 : behind] for part in turn.input]
        if behind < len(made):
            made[behind] = replace(made[behind], input=(*given, *made[behind].input))
        made[first:behind] = [replace(made[first], output=_together(made[first:behind]))]
    return tuple(made)


def regrouped(request: Request, groups: Sequence[range]) -> Request:
    """Return a request whose history is a list of items with the turns of each group as one."""
    anchors = list(request.anchors)
    for group in reversed(groups):
        there = slice(group.start, group.stop)
        anchors[there] = [tuple([at for anchor in anchors[there] for at in anchor])]
    return replace(request, turns=joined_turns(request.turns, groups), anchors=tuple(anchors))
