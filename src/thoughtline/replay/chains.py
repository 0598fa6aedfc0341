"""Weighs what speaks for a weak match: the logged turns that lead to it. Pure.

Equal moves in two conversations are not one conversation: coding agents begin with the same calls
all day, and the other conversation need not be in the log. So the chain of turns that leads to a
candidate, from parent to parent, is held against the path as far as both have the same outputs. It
has to begin at a turn that is certain, or to hold the user's own words; other words of a user, or
other call ids that look random, say that it is another conversation.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from thoughtline.log.decisions import MatchLevel
from thoughtline.log.index import IndexEntry, asks
from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn
from thoughtline.replay.candidates import Candidates


class Chain(Struct, frozen=True, gc=False, kw_only=True):
    """What the logged turns that lead to a candidate have in common with the path."""

    certain: bool = False  # they begin at a turn that is certain, or that the client names
    contradicted: bool = False  # other words of a user, or another turn, are among them
    asked: bool = False  # the user's words are among them
    called: bool = False  # so are calls that were made for them, and results of all but the last
    whole: bool = False  # so are user message, calls and all results, before the candidate
    session: str = ""  # of the certain turn before them, where no user speaks in between


class _Words(Enum):
    """How the words of a user before an output compare with those that the log has there."""

    NONE = "none"  # nobody says anything
    SAME = "same"
    OTHER = "other"
    CUT = "cut"  # the client left out what was before: these stand in its place, or nothing


class Chains:
    """The chains to the candidates of one path."""

    def __init__(
        self,
        turns: Sequence[Turn],
        positions: Sequence[Candidates | None],
        certain: Mapping[int, IndexEntry],
    ) -> None:
        self._turns = turns
        self._positions = positions
        self._certain = certain  # what is matched by strong evidence, by position
        self._chains: dict[tuple[int, str], Chain] = {}
        self._sessions = self._running_sessions()
        self._before: list[int | None] = []  # by position: that of the output before it
        before = None
        for index, here in enumerate(positions):
            self._before.append(before)
            before = index if here is not None else before

    def to(self, entry: IndexEntry, index: int) -> Chain:
        """Return the chain that leads to a candidate; the candidate belongs to it."""
        trail: list[tuple[IndexEntry, int]] = []
        here: tuple[IndexEntry, int] | None = (entry, index)
        chain: Chain | None = None
        while here is not None:
            chain = self._chains.get((here[1], here[0].turn))
            if chain is not None:
                break
            trail.append(here)
            here = self._continued(*here)
        for one, at in reversed(trail):
            chain = self._chains[at, one.turn] = self._link(one, at, chain)
        return chain or Chain()

    def named(self, entry: IndexEntry, index: int) -> bool:
        """Whether the client itself names a turn, or its conversation."""
        here = self._positions[index]
        return here is not None and here.echo.names(entry)

    def has_other_ids(self, entry: IndexEntry, index: int) -> bool:
        """Whether the client echoes call ids that look random, and the turn had others."""
        here = self._positions[index]
        return here is not None and here.echo.has_other_call_ids(entry)

    # -- one turn of a chain ---------------------------------------------------------------------

    def _link(self, entry: IndexEntry, index: int, before: Chain | None) -> Chain:
        """Return the chain to a candidate, given that to the turn which it continues."""
        if self._is_certain(entry, index):
            return Chain(certain=True)
        words = self._words(entry, index)
        if words is _Words.OTHER or self._is_another(entry, index):
            return Chain(contradicted=True)
        asked = words is _Words.SAME
        called = asked and bool(self._turns[index].calls)
        if before is None:
            return Chain(asked=asked, called=called, session=self._sessions[index])
        whole = before.called and self._has_same_input(entry, index)
        return Chain(
            certain=before.certain,
            contradicted=before.contradicted,
            asked=asked or before.asked,
            called=called or whole,
            whole=whole,
            session=before.session,
        )

    def _continued(self, entry: IndexEntry, index: int) -> tuple[IndexEntry, int] | None:
        """Return the turn that a candidate continues; None where its chain begins."""
        if self._is_certain(entry, index):
            return None
        if self._words(entry, index) in (_Words.OTHER, _Words.CUT):
            return None
        return self._parent(entry, index)

    def _parent(self, entry: IndexEntry, index: int) -> tuple[IndexEntry, int] | None:
        """Return the turn that a candidate continues, if the output before looks like it."""
        before = self._before[index]
        here = self._positions[before] if before is not None else None
        match = here.match(entry.parent, "") if here is not None and entry.parent else None
        if match is None or match.entry is None or before is None:
            return None
        return match.entry, before

    def _is_certain(self, entry: IndexEntry, index: int) -> bool:
        known = self._certain.get(index)
        if known is not None and known.turn == entry.turn:
            return True
        return self.named(entry, index) and not self.has_other_ids(entry, index)

    def _is_another(self, entry: IndexEntry, index: int) -> bool:
        """Whether the ids are those of another turn, or the whole history is."""
        here = self._positions[index]
        if here is not None and here.by_full_key and here.level(entry) is not MatchLevel.FULL:
            return True
        return self.has_other_ids(entry, index)

    def _has_same_input(self, entry: IndexEntry, index: int) -> bool:
        here = self._positions[index]
        return here is not None and here.level(entry) in (MatchLevel.FULL, MatchLevel.LOCAL)

    def _words(self, entry: IndexEntry, index: int) -> _Words:
        turn, here = self._turns[index], self._positions[index]
        if here is None:
            return _Words.CUT
        speaks = _speaks(turn)
        if self._has_same_input(entry, index):
            return _Words.SAME if speaks else _Words.NONE
        if entry.question:
            if asks(turn, here.keys, entry.question):
                return _Words.SAME
            return _Words.OTHER if turn.input else _Words.CUT
        if not speaks:
            return _Words.NONE
        return _Words.CUT if self._parent(entry, index) is None else _Words.OTHER

    def _running_sessions(self) -> list[str]:
        """By position: the session of the certain turn before, if no user has spoken since."""
        sessions: list[str] = []
        running = ""
        for index, turn in enumerate(self._turns):
            running = "" if _speaks(turn) else running
            sessions.append(running)
            if index in self._certain:
                running = self._certain[index].session
        return sessions


def _speaks(turn: Turn) -> bool:
    return any(type(part) is Text for part in turn.input)
