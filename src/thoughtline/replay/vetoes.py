"""Rules out the turns that an output cannot be, whatever of it fits. Pure.

Two conversations can look alike in everything that is visible. Where something that the client
brings points to another known turn (`proof.VETOES`), the output is that one and no other; a session
hint points to a conversation. That is a claim about one output, and it holds for the others, too: a
turn whose line, from parent to parent, disagrees with a claim is of another conversation.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from msgspec import Struct

from thoughtline.log import keys as k
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Call, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.replay.candidates import Candidates
from thoughtline.replay.proof import VETOES, Evidence, looks_random

_TURN_EVIDENCE = tuple([evidence for evidence in VETOES if evidence is not Evidence.HINT])
"""What points to a turn; a hint points to a conversation."""


def undisputed(
    turn: Turn, entry: IndexEntry, looks_alike: int, unique_hints: Sequence[str], session: str
) -> bool:
    """Whether it is plain that nothing of an output points to another turn than this one.

    `looks_alike`: how many turns are known that look like the output; `session`: the one that the
    client is known to be in. This is asked of every output, so it does not look closely: what it
    cannot tell at once, `rule_out` does.
    """
    for part in turn.output:
        if type(part) is Thought and not _has_copy(entry, part):
            return False
    if looks_alike < 2:
        return True  # only a thought can point elsewhere
    if unique_hints and entry.session != session and set(unique_hints).isdisjoint(entry.hints):
        return False
    for part in turn.output:
        if type(part) is Call:
            if part.id not in entry.calls and looks_random(part.id, part.name):
                return False
            item = part.item
        else:
            item = part.id if type(part) is Text else ""
        if item and k.reference_key("item", item) not in entry.keys and looks_random(item):
            return False
    return True


def _has_copy(entry: IndexEntry, echoed: Thought) -> bool:
    """Whether a turn has this very thought."""
    for thought in entry.thoughts:
        if thought.raw == echoed.raw or (echoed.seals and echoed.seals == thought.seals):
            return True
    return False


def rule_out(positions: Sequence[Candidates | None]) -> None:
    """Take out of the candidates of each output the turns that it cannot be."""
    own = _own_sessions(positions)
    outputs = [_Output(here) for here in positions if here is not None]
    claims = [_claim(output.here, own) for output in outputs]
    if any(claim is not None for claim in claims):
        _follow_lines(outputs, claims)
    for output, claim in zip(outputs, claims, strict=True):
        here, out = output.here, output.out
        if claim is not None:
            out |= output.turns.keys() - claim.turns.keys()
        out |= {entry.turn for entry in here.entries if here.echo.has_other_thought(entry)}
        here.rule_out(out)


class _Claim(Struct, frozen=True, gc=False):
    """The turns that an output may be, by what the client brings."""

    turns: Mapping[str, IndexEntry]
    named: bool  # the turn itself, and not only its conversation

    @property
    def sessions(self) -> set[str]:
        """The sessions of these turns."""
        return {entry.session for entry in self.turns.values()}


class _Output:
    """The candidates of an output by turn id, and which are ruled out by what is said of others."""

    __slots__ = ("here", "out", "turns")

    def __init__(self, here: Candidates) -> None:
        self.here = here
        self.turns = {entry.turn: entry for entry in here.entries}
        self.out: set[str] = set()


def _own_sessions(positions: Sequence[Candidates | None]) -> set[str]:
    """Return the sessions that the client's own hints point to."""
    return {
        entry.session
        for here in positions
        if here is not None and here.echo.unique_hints
        for entry in here.entries
        if here.echo.points_to(Evidence.HINT, entry)
    }


def _claim(here: Candidates, own_sessions: set[str]) -> _Claim | None:
    """Return which turns an output may be; None where nothing points to a turn that is known."""
    echo, entries = here.echo, here.entries
    claimed = {entry.turn: entry for entry in entries}
    named = narrowed = False
    for evidence in _TURN_EVIDENCE:
        pointed = {entry.turn for entry in entries if echo.points_to(evidence, entry)}
        if pointed or (evidence is Evidence.HANDLE and echo.handle):
            named = True
            claimed = {id: entry for id, entry in claimed.items() if id in pointed}
    if not named and here.crowded:  # the turn that the ids point to may be one too many
        kept = {id: e for id, e in claimed.items() if not echo.has_other_call_ids(e)}
        narrowed = len(kept) < len(claimed)
        claimed = kept
    if any(echo.points_to(Evidence.HINT, entry) for entry in entries):
        narrowed = True
        claimed = {id: entry for id, entry in claimed.items() if entry.session in own_sessions}
    return _Claim(claimed, named) if named or narrowed else None


# -- along a line --------------------------------------------------------------------------------

_NOBODY = ""
"""The log does not say which turn an output was: the line begins behind it, or passes it over."""
_SOMEBODY = "?"
"""It was a turn that is not among the candidates."""


def _follow_lines(outputs: Sequence[_Output], claims: Sequence[_Claim | None]) -> None:
    """Rule out the turns whose line disagrees with the nearest claim before or after them."""
    places = [index for index, claim in enumerate(claims) if claim is not None]
    for index, output in enumerate(outputs):
        own = claims[index]
        unnamed = [
            entry
            for entry in output.turns.values()
            if own is None or not own.named or entry.turn not in own.turns
        ]
        nth = bisect_left(places, index)
        before = places[nth - 1] if nth else None
        if unnamed and before is not None and (claim := claims[before]) is not None:
            output.out |= {
                entry.turn
                for entry in unnamed
                if not _agrees_before(_turn_at(outputs, entry, index, before), entry, claim)
            }
        nth += own is not None
        after = places[nth] if nth < len(places) else None
        if unnamed and after is not None and (claim := claims[after]) is not None:
            lines = [
                (_turn_at(outputs, entry, after, index), entry.session)
                for entry in claim.turns.values()
            ]
            output.out |= {entry.turn for entry in unnamed if not _agrees_after(entry, lines)}


def _agrees_before(at: str, entry: IndexEntry, claim: _Claim) -> bool:
    """Whether a turn may come after a claimed one; `at`: which one its line has there."""
    if at == _SOMEBODY:
        return entry.session in claim.sessions
    return at == _NOBODY or at in claim.turns


def _agrees_after(entry: IndexEntry, lines: Sequence[tuple[str, str]]) -> bool:
    """Whether a claimed turn may come after a turn; `lines`: which one each line has there."""
    return not lines or any(
        at in (_NOBODY, entry.turn) or (at == _SOMEBODY and session == entry.session)
        for at, session in lines
    )


def _turn_at(outputs: Sequence[_Output], entry: IndexEntry, index: int, place: int) -> str:
    """Return the turn that an earlier output was, in the line of an entry."""
    while index > place:
        if not entry.parent:
            return _NOBODY
        index -= 1
        while entry.parent not in outputs[index].turns:
            if index == place:
                return _SOMEBODY
            index -= 1
        entry = outputs[index].turns[entry.parent]
    return entry.turn if index == place else _NOBODY
