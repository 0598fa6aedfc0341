"""Thoughts that a client wrote as text, in front of the answer that they led to.

Clients built on the AI SDK do so with the thoughts of another provider: the words would go to a
provider that they are not for, and the answer is not recognised any more. A text goes only where it
is, to the letter, a thought of the very turn that the output turns out to be without it.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from thoughtline.dialects.base import Request
from thoughtline.dialects.output_texts import output_texts, without_texts
from thoughtline.engine.decision import RequestDecision, path_of
from thoughtline.engine.offload import run_for
from thoughtline.errors import StoreError, Unreadable
from thoughtline.log import keys as k
from thoughtline.log.decisions import MatchLevel, ReplayDecision
from thoughtline.log.index import IndexEntry, text_digest
from thoughtline.log.parts import Call, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.match import RequestPath
from thoughtline.stores.base import Store

MAX_OUTPUTS = 64
"""Outputs of a request that are looked at, the last ones."""
_FULL = MatchLevel.FULL

Cuts = Mapping[int, Sequence[str]]
"""Position of a turn → texts of its output that are thoughts."""


async def without_spoken_thoughts(
    decision: RequestDecision, store: Store, tenant: str, known_turns: Collection[str]
) -> RequestDecision:
    """Decide again without the thoughts that the client wrote as text, if there are any."""
    suspects = suspected_turns(decision)
    if not suspects or decision.unpatchable:
        return decision
    try:
        request, dialect = decision.request, decision.dialect
        texts = await run_for(request.body, partial(output_texts, dialect, request, suspects))
        candidates = await _candidates(decision, texts, store, tenant)
        turns = decision.path.turns
        cuts = {
            turn: cut
            for turn in suspects
            if (cut := _cut(texts[turn], turns[turn], candidates.get(turn, ())))
        }
        for _ in range(2):
            if not cuts:
                break
            made = await _without(decision, cuts, known_turns)
            wrong = {turn for turn in cuts if not _is_proven(made, turn, cuts[turn])}
            if not wrong:
                return made
            cuts = {turn: cut for turn, cut in cuts.items() if turn not in wrong}
    except (Unreadable, StoreError):
        pass
    return decision


def suspected_turns(decision: RequestDecision) -> list[int]:
    """Positions of the turns of a request whose outputs may have a thought in their text."""
    made = decision.replay_plan.decisions[len(decision.settled.decisions) :]
    without = [d for d in made if d.level is not _FULL or not d.thoughts]
    first = decision.settled.turns
    return [d.turn - first for d in without[-MAX_OUTPUTS:] if _is_suspect(decision, d)]


def _is_suspect(decision: RequestDecision, made: ReplayDecision) -> bool:
    """Whether an output may have a thought in its text, though it may have been recognised.

    Beside calls the text does not count for that, so a thought of another provider may be there.
    """
    place = made.turn - decision.settled.turns
    turn = decision.path.turns[place]
    if not any(type(part) is Text and len(part.text) >= k.MIN_SPOKEN for part in turn.output):
        return False
    if made.level is not _FULL:
        return True
    keys = decision.path.keys[place] if turn.calls else None
    filed = decision.found.get(keys.full, ()) if keys is not None else ()
    entry = next((entry for entry in filed if entry.turn == made.entry), None)
    if entry is None or _is_as_said(turn, entry):
        return False
    made_at, there = entry.origin, decision.target.origin
    return (made_at.provider, made_at.endpoint) != (there.provider, there.endpoint)


def _is_as_said(turn: Turn, entry: IndexEntry) -> bool:
    """Whether the text beside an output's calls is what the model said there."""
    return bool(entry.text_digest) and text_digest(turn) == entry.text_digest


async def _candidates(
    decision: RequestDecision, texts: Mapping[int, Sequence[str]], store: Store, tenant: str
) -> dict[int, list[IndexEntry]]:
    """The turns that an output may be: what it was taken for, and those with such a thought."""
    known = {entry.turn: entry for filed in decision.found.values() for entry in filed}
    taken = {d.turn: known[d.entry] for d in decision.replay_plan.decisions if d.entry in known}
    keys = {
        turn: [k.spoken_key(text) for text in said if len(text) >= k.MIN_SPOKEN]
        for turn, said in texts.items()
    }
    found = await store.find(tenant, list({key for own in keys.values() for key in own}))
    return {
        turn: [
            *([taken[turn]] if turn in taken else []),
            *(entry for key in own for entry in found.get(key, ())),
        ]
        for turn, own in keys.items()
    }


def _cut(texts: Sequence[str], turn: Turn, candidates: Sequence[IndexEntry]) -> list[str]:
    """The texts of an output that are thoughts of one of these turns, and not what it said."""
    for entry in candidates:
        if _is_as_said(turn, entry):
            continue
        thoughts = {t.text for t in entry.thoughts if len(t.text) >= k.MIN_SPOKEN}
        whole = [text for text in texts if text in thoughts]
        if whole:
            return whole
        begun = [t for t in thoughts if texts and texts[0].startswith(t) and texts[0] != t]
        if begun:
            return begun
    return []


async def _without(
    decision: RequestDecision, cuts: Cuts, known_turns: Collection[str]
) -> RequestDecision:
    old = decision.request
    request, path = await run_for(old.body, partial(_path_without, decision, cuts))
    found, error = await decision.source.look_up(path, known_turns)
    revising = partial(decision.revise, request=request, path=path, found=found, lookup_error=error)
    return await run_for(old.body, revising)


def _path_without(decision: RequestDecision, cuts: Cuts) -> tuple[Request, RequestPath]:
    """The request without these texts, and its path."""
    dialect, old = decision.dialect, decision.request
    body = without_texts(dialect, old, cuts)
    request = replace(dialect.read(body), model=old.model, stream=old.stream)
    path = path_of(
        request, dialect=dialect, target=decision.target, predecessor=decision.predecessor
    )
    hints, unique = decision.path.hints, decision.path.unique_hints
    return request, replace(path, hints=hints, unique_hints=unique)


def _is_proven(decision: RequestDecision, turn: int, cut: Sequence[str]) -> bool:
    """Whether without these texts an output is a known turn, which has them for thoughts."""
    made = next((d for d in decision.replay_plan.decisions if d.turn == turn), None)
    if made is None or not made.entry:
        return False
    output = decision.path.turns[turn].output
    if not any(type(part) in (Text, Call) for part in output):
        return False
    entries = (entry for filed in decision.found.values() for entry in filed)
    entry = next((entry for entry in entries if entry.turn == made.entry), None)
    return entry is not None and set(cut) <= {thought.text for thought in entry.thoughts}
