"""Chooses among logged turns that fit an output equally well. Pure.

The same conversation is run once more, an answer is lost and asked for again, an answer is
regenerated: then several turns of the log have the same visible history. In this order decide:
what the client echoes and only one of them had (seals, item ids), call ids, session hints, the text
beside calls; of several tries from one place the last; then the turn that nobody has continued yet
(`open_turn`). Two that are open stay a tie, and a tie is a miss.
"""

from collections.abc import Callable, Sequence

from thoughtline.clock import time_of_id
from thoughtline.log import keys as k
from thoughtline.log.index import IndexEntry, text_digest
from thoughtline.log.parts import Blob, Call, Origin, Text, Thought
from thoughtline.log.turns import Turn


def narrow(
    among: Sequence[IndexEntry], turn: Turn, hints: Sequence[str], unique_hints: Sequence[str]
) -> list[IndexEntry]:
    """Break ties by evidence, the strongest first; a test that no candidate passes is skipped."""
    tied = list(among)
    if len(tied) < 2:
        return tied
    echoed, ids, text = echoed_keys(turn), sorted_ids(turn), text_digest(turn)
    named = frozenset(hints)
    tests: tuple[Callable[[IndexEntry], bool], ...] = (
        lambda e: not echoed.isdisjoint(e.keys),
        lambda e: any(ids) and sorted(e.calls) == ids,
        lambda e: not named.isdisjoint(e.hints),
        lambda e: bool(text) and e.text_digest == text,
    )
    for test in tests:
        tied = [entry for entry in tied if test(entry)] or tied
    return _last_tries(tied, frozenset(unique_hints)) if len(tied) > 1 else tied


def echoed_keys(turn: Turn) -> frozenset[bytes]:
    """Return the keys of values that a client brings back and only one turn had: ids and seals."""
    found: list[bytes] = []
    for part in turn.output:
        if type(part) is Thought:
            found += thought_keys(part)
        elif type(part) is Text and part.id:
            found.append(k.reference_key("item", part.id))
        elif type(part) is Call and part.item:
            found.append(k.reference_key("item", part.item))
        elif type(part) is Blob and part.sealed:
            found.append(k.seal_key(part.digest))
    return frozenset(found)


def thought_keys(echoed: Thought) -> list[bytes]:
    """Return the keys that a client's own echo of a thought gives: seals and item ids."""
    found = [k.seal_key(seal) for seal in echoed.seals]
    if echoed.id:
        found.append(k.reference_key("item", echoed.id))
    return found


def sorted_ids(turn: Turn) -> list[str]:
    """Return the ids of an output's calls; clients may reorder parallel ones."""
    return sorted([call.id for call in turn.calls])


def _last_tries(tied: Sequence[IndexEntry], hints: frozenset[str]) -> list[IndexEntry]:
    """Leave out the turns whose request was made again after they had ended.

    They are of one conversation: both continue the same turn, or the client names its session. Two
    that ran at the same time are two branches, and neither takes the other's place.
    """
    return [entry for entry in tied if not any(_again(entry, other, hints) for other in tied)]


def _again(entry: IndexEntry, other: IndexEntry, hints: frozenset[str]) -> bool:
    """Whether another turn is a later try of the same request in the same conversation."""
    if other.at <= entry.at or other.parent != entry.parent:
        return False
    named = not hints.isdisjoint(entry.hints) and not hints.isdisjoint(other.hints)
    if not named and not (entry.parent and entry.session == other.session):
        return False
    began = time_of_id(other.turn)
    return began is not None and began >= int(entry.at * 1000)


def open_turn(tied: Sequence[IndexEntry], home: Origin | None) -> IndexEntry | None:
    """Return the one that nobody has continued yet; None: there is none, or more than one.

    Where all were continued, it is the one whose continuation was not continued: that answer may
    have been lost, or is to be made again. A rival of another endpoint loses, unless it is open and
    those of this endpoint are not even that: then the conversation may have moved, and it is a tie.
    """
    if any(entry.continued is None for entry in tied):
        return None  # not known
    here = [entry for entry in tied if made_at(entry, home)]
    away_open = any(entry.continued == 0 for entry in tied if entry not in here)
    least = min([entry.continued or 0 for entry in here or tied])
    if least == _SETTLED and (away_open or not here):
        return None
    pool = [entry for entry in here or tied if entry.continued == least]
    return pool[0] if len(pool) == 1 else None


_SETTLED = 2
"""Of `IndexEntry.continued`: the client has seen and continued what came after the turn."""


def made_at(entry: IndexEntry, home: Origin | None) -> bool:
    """Whether a turn was made where the request goes: by this provider, endpoint and account."""
    origin = entry.origin
    return home is None or (origin.provider, origin.endpoint, origin.account) == (
        home.provider,
        home.endpoint,
        home.account,
    )


def equal_thoughts(tied: Sequence[IndexEntry]) -> bool:
    """Whether the tied entries would put back the same thoughts."""
    first = tied[0]
    return all(
        m.origin == first.origin
        and m.outcome == first.outcome
        and m.shape == first.shape
        and m.quarantined == first.quarantined
        and [t.raw for t in m.thoughts] == [t.raw for t in first.thoughts]
        for m in tied[1:]
    )
