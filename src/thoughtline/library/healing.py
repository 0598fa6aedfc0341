"""What to change when a provider refuses a request because of a thought, or for the lack of one.

The refusal's words call for a remedy (`policies.remedies`); this room makes plans of it, the
narrowest first: without the thought that the provider names; without those that bisection finds
(each probe is refused, or hung up on as soon as it is accepted); without all that may be meant; or
on other terms. A plan is tried only if it changes the request, and its thoughts are quarantined
once the provider has accepted the request without them. Nothing is ever tried twice.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import splice
from thoughtline.dialects.thoughts import same
from thoughtline.errors import Unreadable
from thoughtline.library.transcripts import Fold, Terms, fold, sent
from thoughtline.parts import Carrier
from thoughtline.policies import Need, Policy, Scope
from thoughtline.policies.remedies import Remedy
from thoughtline.turns import Turn

PROBES = 8
"""How many requests a bisection may cost."""

Suspect = tuple[str, int]
"""A logged thought: its turn, and its position among that turn's thoughts."""
Probe = Callable[[bytes], Awaitable[bool | None]]
"""Whether a request is accepted; None when that cannot be said."""

_DISABLED = ("thinking", '{"type":"disabled"}')
_BYPASS = '"skip_thought_signature_validator"'
_PLACE = re.compile(r"(messages|input|contents)(?:\.(\d+)|\[(\d+)\])(?:\.content\.(\d+))?")
_ANY = frozenset(
    {
        Remedy.DROP_REASONING,
        Remedy.RENAME,
        Remedy.DROP_ITEM,
        Remedy.DEDUPLICATE,
        Remedy.PAIR_OR_ANONYMISE,
        Remedy.STRIP_SIGNED,  # also for want of a signature
    }
)
"""Remedies that concern plain thoughts, too."""
_SEALED = frozenset(
    {
        Remedy.DROP_SEALED,
        Remedy.SEND_SEALED,
        Remedy.DROP_BLOCK,
        Remedy.RESIGN,
        Remedy.RESTORE_EXACT,
    }
)


class Plan(Struct, frozen=True, kw_only=True):
    """One thing to try."""

    terms: Terms
    barred: frozenset[Suspect] = frozenset()


def bar(turns: Iterable[Turn], barred: Iterable[Suspect]) -> list[Turn]:
    """The turns with these thoughts in quarantine, too."""
    named: dict[str, set[int]] = {}
    for turn, position in barred:
        named.setdefault(turn, set()).add(position)
    return [
        replace(turn, quarantined=turn.quarantined | named[turn.id]) if turn.id in named else turn
        for turn in turns
    ]


async def plans(
    turns: Sequence[Turn], refused: Fold, terms: Terms, *, remedy: Remedy, words: str, probe: Probe
) -> AsyncGenerator[Plan, None]:
    """What to try, in order, after a request that was folded from these turns was refused.

    Who asks for the next one says that the last one was refused, too.
    """
    if remedy not in _SEALED | _ANY:
        changed = _changed(terms, remedy)
        if changed is not None:
            yield Plan(terms=changed)
        return
    suspects = _suspects(refused, plain=remedy in _ANY)
    guilty = _named(refused, suspects, words)
    if guilty:
        yield Plan(terms=terms, barred=frozenset(guilty))
    left = PROBES
    while left > 0 and len(guilty) < len(suspects) - 1:
        search = _Search(turns, terms, suspects, probe, left)
        guilty = [*guilty, *await search.beside(guilty)]
        left = search.left - 1
        yield Plan(terms=terms, barred=frozenset(guilty))
    if suspects:
        yield Plan(terms=terms, barred=frozenset(suspects))


# -- which thought -------------------------------------------------------------------------------


def _suspects(refused: Fold, *, plain: bool) -> list[Suspect]:
    return [
        (turn.id, position)
        for turn, position in sent(refused)
        if plain or turn.thoughts[position].sealed
    ]


def _named(refused: Fold, suspects: Sequence[Suspect], words: str) -> list[Suspect]:
    """Those that the provider names, by id or by place."""
    thoughts = {
        (turn.id, position): turn.thoughts[position]
        for turn in refused.turns
        for position in range(len(turn.thoughts))
    }
    by_id = [s for s in suspects if thoughts[s].id and thoughts[s].id in words]
    if by_id:
        return by_id
    raw = _pointed_at(refused.body, words)
    return [s for s in suspects if raw and same(thoughts[s].raw, raw)]


def _pointed_at(body: bytes, words: str) -> str:
    """The JSON text at the place in the request that the provider's words point to."""
    found = _PLACE.search(words)
    if found is None:
        return ""
    try:
        place = splice.members(body)[found[1]]
        element = splice.elements(body, place)[int(found[2] or found[3])]
        if found[4] is not None:
            content = splice.members(body, element)["content"]
            element = splice.elements(body, content)[int(found[4])]
    except (Unreadable, LookupError):
        return ""
    return body[element.value : element.end].decode("utf-8", "replace")


class _Search(Struct):
    """Looks for a thought without which the request may be accepted, by bisection."""

    turns: Sequence[Turn]
    terms: Terms
    suspects: Sequence[Suspect]
    probe: Probe
    left: int  # probes

    async def beside(self, known: Sequence[Suspect]) -> list[Suspect]:
        """One more that is guilty, or a few of which one is, when there are no probes left."""
        guilty = [suspect for suspect in self.suspects if suspect not in known]
        while len(guilty) > 1 and self.left > 0:
            self.left -= 1
            half, rest = guilty[: len(guilty) // 2], guilty[len(guilty) // 2 :]
            others = [suspect for suspect in self.suspects if suspect not in half]
            accepted = await self.probe(fold(bar(self.turns, others), self.terms).body)
            if accepted is None:
                self.left = 0
            else:
                guilty = rest if accepted else half
        return guilty


# -- on which terms ------------------------------------------------------------------------------


def _changed(terms: Terms, remedy: Remedy) -> Terms | None:
    policy = terms.target.policy
    match remedy:
        case Remedy.RESTORE_ALL:
            return _demanding(terms, policy, Scope.ALL, policy.lost or '" "')
        case Remedy.RESTORE_CALLS:
            return _demanding(terms, policy, Scope.CALLS, policy.lost or '""')
        case Remedy.SIGN_OR_BYPASS:
            lost = policy.lost or _bypass(policy)
            return _demanding(terms, policy, Scope.FIRST_CALL, lost)
        case Remedy.RESTORE_OR_OFF:
            strict = replace(policy, need=Need.REQUIRED, scope=Scope.LOOP, thinks=True)
            return _with(terms, replace(strict, off=policy.off or _DISABLED))
        case Remedy.REPLAY_IN_FULL:
            return replace(terms, full=True)
        case Remedy.SET_STORE_FALSE:
            options = {key: value for key, value in terms.options.items() if key != "store"}
            return replace(terms, stateful=False, options=options)
        case Remedy.SET_ALL_TURNS:
            reasoning = terms.options.get("reasoning") or {}
            told = {**reasoning, "context": "all_turns"}
            return replace(terms, options={**terms.options, "reasoning": told})
        case Remedy.NINE_CHARACTERS:
            return replace(terms, renamed=True)
        case _:
            return None


def _demanding(terms: Terms, policy: Policy, scope: Scope, lost: str) -> Terms:
    reads = policy.reads or (Carrier.REASONING_CONTENT,)
    strict = replace(policy, need=Need.REQUIRED, scope=scope, with_tools=False, reads=reads)
    return _with(terms, replace(strict, lost=lost))


def _bypass(policy: Policy) -> str:
    if Carrier.EXTRA_CONTENT in policy.reads:
        return '{"google":{"thought_signature":' + _BYPASS + "}}"
    return _BYPASS


def _with(terms: Terms, policy: Policy) -> Terms:
    return replace(terms, target=replace(terms.target, policy=policy))
