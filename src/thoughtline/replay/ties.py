"""Chooses among logged turns that fit an output equally well. Pure.

The same conversation is run once more, an answer is lost and asked for again, an answer is
regenerated: then several turns of the log have the same visible history. What the client
brings decides (`proof.RULES`, in that order); of several tries from one place the last; then the
turn that nobody has continued yet (`open_turn`). Two that are open stay a tie, and a tie is a miss.
"""

from collections.abc import Sequence

from thoughtline.clock import time_of_id
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Origin
from thoughtline.replay.proof import TIE_BREAKERS, Echo


def narrow(among: Sequence[IndexEntry], echo: Echo) -> list[IndexEntry]:
    """Break ties by evidence, the strongest first; what points to no candidate is skipped."""
    tied = list(among)
    for evidence in TIE_BREAKERS:
        if len(tied) < 2:
            return tied
        tied = [entry for entry in tied if echo.points_to(evidence, entry)] or tied
    return _last_tries(tied, echo.unique_hints)


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
