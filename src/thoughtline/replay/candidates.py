"""The logged turns that one output of a request may echo, each at its match level. Pure."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from thoughtline.log import keys as k
from thoughtline.log.decisions import MatchLevel
from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.replay.proof import Echo, thought_keys

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

    echo: Echo
    keys: k.TurnKeys
    found: Mapping[bytes, Sequence[IndexEntry]]
    by_full_key: Sequence[IndexEntry]
    ruled_out: bool = False  # some of what was found
    _by_turn: dict[str, tuple[IndexEntry, MatchLevel]] | None = None

    @property
    def by_turn(self) -> dict[str, tuple[IndexEntry, MatchLevel]]:
        """All candidates by turn id, each with its strongest match level."""
        if self._by_turn is not None:
            return self._by_turn
        keys = self.keys
        levels = [(MatchLevel.FULL, keys.full), (MatchLevel.LOCAL, keys.local)]
        levels += [
            (MatchLevel.SEAL, key)
            for thought in self.echo.turn.thoughts
            for key in thought_keys(thought)
        ]
        levels.append((MatchLevel.CONTENT, keys.content))
        best: dict[str, tuple[IndexEntry, MatchLevel]] = {}
        for level, key in levels:
            for entry in self.found.get(key, ()):
                if level is not MatchLevel.SEAL or self.echo.finds(entry):
                    best.setdefault(entry.turn, (entry, level))
        self._by_turn = best
        return best

    @property
    def entries(self) -> list[IndexEntry]:
        """All candidates."""
        return [entry for entry, _ in self.by_turn.values()]

    @property
    def crowded(self) -> bool:
        """Whether more turns look like the output than a look-up returns."""
        return len(self.found.get(self.keys.content, ())) >= MAX_CANDIDATES

    def rule_out(self, turns: Collection[str]) -> None:
        """Take turns out."""
        if turns:
            self.ruled_out = True
            self.by_full_key = [e for e in self.by_full_key if e.turn not in turns]
            self._by_turn = {id: at for id, at in self.by_turn.items() if id not in turns}

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
