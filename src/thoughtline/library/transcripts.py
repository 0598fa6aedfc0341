"""A request folded from the log: which turns, which words, which thoughts.

`histories.lived` makes a history of the path; `fold` decides about its thoughts with the same
`restore` that the gateway uses, where every turn is certain because the log itself names it, and
has the dialect write the request. Pure: the same log and the same terms give the same bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Dialect, Placed, Tool
from thoughtline.errors import Unreadable
from thoughtline.events import Outcome
from thoughtline.guards import Target
from thoughtline.library.histories import lived, visible
from thoughtline.matching import Path, survey
from thoughtline.memories import Memory, remember
from thoughtline.parts import Carrier, Origin, Part, Text, Thought
from thoughtline.policies import Need
from thoughtline.replay import Action, Restoration, restore
from thoughtline.turns import OUTLINE, Place, Turn

_KINDS = {"x": "text", "c": "call", "b": "blob"}
_NOT_LEFT = frozenset({"", "had none", "ignored there", Need.FORBIDDEN.value, Need.NONE.value})
"""Reasons of rulings that left no thought behind."""


class Terms(Struct, frozen=True, kw_only=True):
    """How a request is written, beside its history."""

    dialect: Dialect
    target: Target
    model: str
    system: str = ""
    tools: tuple[Tool, ...] = ()
    options: Mapping[str, Any] = {}
    stateful: bool = False  # the server is to remember
    full: bool = False  # and yet everything is sent: it has forgotten
    renamed: bool = False  # every call id becomes nine letters, not only those made elsewhere


class Fold(Struct, frozen=True, kw_only=True):
    """A request folded from the log."""

    turns: tuple[Turn, ...]  # the history as lived; the last one is to be answered
    path: Path
    restoration: Restoration
    body: bytes = b""
    previous: str = ""  # the response it goes on from, where the server remembers


def decide(turns: Sequence[Turn], terms: Terms) -> Fold:
    """What goes back with the request that goes on from a path of the log; not written yet."""
    told = lived(turns, terms.target.origin, renamed=terms.renamed)
    bare = [replace(turn, output=visible(turn.output)) for turn in told]
    path = survey(
        bare,
        tools=bool(terms.tools),
        thinking=_thinking(terms),
        prefixes=_prefixes(bare, terms),
    )
    restoration = _restored(path, _found(told, path), terms.target)
    return Fold(turns=tuple(told), path=path, restoration=restoration)


def fold(turns: Sequence[Turn], terms: Terms) -> Fold:
    """The request that goes on from a path of the log. Its last turn has the new input."""
    decided = decide(turns, terms)
    placed = {revision.turn: revision.thoughts for revision in decided.restoration.revisions}
    sent = [
        replace(turn, output=_revised(turn.output, placed.get(index, ())))
        for index, turn in enumerate(decided.path.turns)
    ]
    fields: dict[str, Any] = {
        **terms.options,
        **{name: Raw(value) for name, value in decided.restoration.fields.items()},
    }
    previous = _previous(decided.turns, terms)
    if terms.stateful:
        fields["store"] = True
    if previous:
        sent = sent[-1:]
        fields["previous_response_id"] = previous
    return replace(decided, body=_written(sent, terms, fields), previous=previous)


def _written(turns: Sequence[Turn], terms: Terms, fields: Mapping[str, Any]) -> bytes:
    return terms.dialect.write(
        turns, model=terms.model, system=terms.system, tools=terms.tools, fields=fields
    )


def _thinking(terms: Terms) -> bool | None:
    """Whether the options switch thinking on or off, as the dialect itself would read them."""
    said = _written([Turn(input=(Text(text="?"),))], terms, terms.options)
    try:
        return terms.dialect.read(said).thinking
    except Unreadable:  # options that make no request: the provider will say so
        return None


def _prefixes(turns: Sequence[Turn], terms: Terms) -> Sequence[str]:
    if not terms.target.policy.prefix:
        return ()
    try:
        request = terms.dialect.read(_written(turns, terms, terms.options))
        made = terms.dialect.prefixes(request)
    except Unreadable:
        return ()
    return made if len(made) == len(turns) else ()


def _previous(told: Sequence[Turn], terms: Terms) -> str:
    """The response that the server remembers everything up to, if there is one."""
    if not terms.stateful or terms.full or len(told) < 2:
        return ""
    last, there = told[-2], terms.target.origin
    home = last.target or Origin()
    same = (home.dialect, home.provider, home.endpoint, home.account) == (
        there.dialect,
        there.provider,
        there.endpoint,
        there.account,
    )
    return last.response if same and last.outcome is Outcome.COMPLETED else ""


# -- thoughts ------------------------------------------------------------------------------------


def _found(told: Sequence[Turn], path: Path) -> dict[bytes, Sequence[Memory]]:
    """What the archive would say: the turns themselves, each under its own chain key."""
    chains = {turn.id: keys.chain.hex() for turn, keys in zip(told, path.keys, strict=True) if keys}
    return {
        keys.chain: [remember(turn, keys, skipped=left_behind(turn, chains))]
        for turn, keys in zip(told, path.keys, strict=True)
        if keys
    }


def left_behind(turn: Turn, chains: Mapping[str, str]) -> dict[str, str]:
    """What a turn's request went out without, as its log says: chain key → why."""
    return {chains[memory]: reason for memory, reason in _left(turn.replay) if memory in chains}


def _left(replay: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """Which turns' thoughts a request went out without, and why.

    A long session asks this of each of its turns for every request, and each of them rules on all
    that came before it, so the answer is kept: rulings do not change once they are logged.
    """
    known = _LEFT.get(id(replay))
    if known is None:
        left = (Action.DROPPED, Action.ABSENT, Action.PLACEHOLDER)
        found = tuple(
            (ruling["memory"], ruling.get("reason", ""))
            for ruling in replay
            if isinstance(ruling, dict)
            and ruling.get("action") in left
            and ruling.get("reason", "") not in _NOT_LEFT
            and ruling.get("memory")
        )
        if len(_LEFT) >= _MOST:
            _LEFT.clear()
        known = _LEFT[id(replay)] = (replay, found)  # held, so that no other gets its id
    return known[1]


_LEFT: dict[int, tuple[tuple[Any, ...], tuple[tuple[str, str], ...]]] = {}
_MOST = 4096


def _restored(path: Path, found: Mapping[bytes, Sequence[Memory]], target: Target) -> Restoration:
    made = restore(path, found, target)
    policy = target.policy
    if made.fields and Carrier.BLOCK in policy.reads:
        # With thinking switched off, this API takes no thought in the message it goes on from.
        bare = restore(path, found, replace(target, policy=replace(policy, need=Need.FORBIDDEN)))
        made = replace(made, rulings=bare.rulings, revisions=bare.revisions)
    return made


def _revised(output: Sequence[Part], placed: Sequence[Placed]) -> tuple[Part, ...]:
    """An output with thoughts at their places, as they are to be spelled there."""
    made: list[Part] = []
    waiting: dict[Place, list[Part]] = {}
    for thought in placed:
        back = Thought(carrier=thought.carrier, raw=thought.raw)
        waiting.setdefault(thought.place, []).append(back)
    seen = dict.fromkeys(_KINDS.values(), 0)
    for part in output:
        kind = _KINDS[OUTLINE.get(type(part), "b")]
        made += [*waiting.pop(Place(kind, seen[kind]), ()), part]
        seen[kind] += 1
    return (*made, *(part for parts in waiting.values() for part in parts))


def sent(fold: Fold) -> list[tuple[Turn, int]]:
    """The logged thoughts that a request carries: each turn and the position in it."""
    found: list[tuple[Turn, int]] = []
    for revision in fold.restoration.revisions:
        turn = fold.turns[revision.turn]
        raws = {placed.raw for placed in revision.thoughts}
        exact = [at for at, thought in enumerate(turn.thoughts) if thought.raw in raws]
        spelled = [at for at, thought in enumerate(turn.thoughts) if not thought.sealed]
        found += [(turn, at) for at in exact or (spelled if raws else ())]
    return found
