"""The logged turns that one output of a request may echo, each at its match level. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from thoughtline.log import keys as k
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.index import IndexEntry
from thoughtline.log.turns import Turn
from thoughtline.replay import ties

_FULL = MatchLevel.FULL
"""Used at every turn, and looking up a member of an enumeration is slow in Python 3.11."""


class TurnMatch(Struct, frozen=True, gc=False):
    """The logged turn that an output was taken for, or the reason why there is none."""

    entry: IndexEntry | None
    level: MatchLevel
    reason: str = ""


class Candidates(Struct, gc=False):
    """The logged turns that one output of the path may echo.

    Mostly the full key settles it, so the weaker levels are looked at only when needed.
    """

    turn: Turn
    keys: k.TurnKeys
    found: Mapping[bytes, Sequence[IndexEntry]]
    by_full_key: Sequence[IndexEntry]
    _by_turn: dict[str, tuple[IndexEntry, MatchLevel]] | None = None

    @property
    def by_turn(self) -> dict[str, tuple[IndexEntry, MatchLevel]]:
        """All candidates by turn id, each with its strongest match level."""
        if self._by_turn is not None:
            return self._by_turn
        keys = self.keys
        levels = [(MatchLevel.FULL, keys.full), (MatchLevel.LOCAL, keys.local)]
        seals = [key for thought in self.turn.thoughts for key in ties.thought_keys(thought)]
        levels += [(MatchLevel.SEAL, key) for key in seals]
        levels.append((MatchLevel.CONTENT, keys.content))
        best: dict[str, tuple[IndexEntry, MatchLevel]] = {}
        for level, key in levels:
            for entry in self.found.get(key, ()):
                best.setdefault(entry.turn, (entry, level))
        self._by_turn = best
        return best

    def at_level(self, level: MatchLevel) -> list[IndexEntry]:
        """Return the candidates whose strongest level is this one."""
        return [entry for entry, at in self.by_turn.values() if at is level]

    def level(self, entry: IndexEntry) -> MatchLevel:
        """Return the strongest level of a candidate."""
        return self.by_turn[entry.turn][1]

    def match(self, id: str, reason: str) -> TurnMatch | None:
        """Return the candidate with this turn id, if there is one."""
        for entry in self.by_full_key:
            if entry.turn == id:
                return TurnMatch(entry, _FULL, reason)
        return TurnMatch(*self.by_turn[id], reason) if id in self.by_turn else None
