"""A request's rulings, counted once for all who report them.

Seven words for what became of an output: the six actions of `replay`, and `missed` in place of
`absent` where the turn was not found. The cache's own statistics come from the same rulings.
"""

from collections.abc import Iterable

from msgspec import Struct

from thoughtline.matching import Rung
from thoughtline.replay import Action, Ruling

MISSED = "missed"
_UNKNOWN = frozenset({"unknown", "ambiguous", "uncorroborated"})
_UNWANTED = frozenset({"forbidden", "none", "had none"})
_SENT = frozenset({Action.RESTORED, Action.REPLACED})
_LACKING = frozenset({Action.ABSENT, Action.PLACEHOLDER})
_LOOKED_UP = _SENT | {Action.DROPPED, Action.PLACEHOLDER}

Run = tuple[Ruling, int]
"""One of neighbours that were ruled alike, and how many they are."""

Tallies = dict[tuple[str, str], int]
"""(word, rung) → how many outputs."""


def runs(rulings: Iterable[Ruling]) -> list[Run]:
    """Neighbours that were ruled alike, counted: a long history is mostly one such run."""
    found: list[Run] = []
    first: Ruling | None = None
    count = 0
    for ruling in rulings:
        if (
            first is not None
            and ruling.action is first.action
            and ruling.rung is first.rung
            and ruling.reason == first.reason
            and bool(ruling.memory) is bool(first.memory)
        ):
            count += 1
            continue
        if first is not None:
            found.append((first, count))
        first, count = ruling, 1
    if first is not None:
        found.append((first, count))
    return found


def missed(ruling: Ruling) -> bool:
    """Whether an output went without its thought because its turn was not found."""
    return ruling.rung is Rung.NONE and ruling.action in _LACKING and ruling.reason in _UNKNOWN


def tally(runs: Iterable[Run]) -> Tallies:
    """How many outputs came to what, on which rung."""
    sums: Tallies = {}
    for ruling, count in runs:
        unfound = ruling.action is Action.ABSENT and missed(ruling)
        key = (MISSED if unfound else ruling.action.value, ruling.rung.value)
        sums[key] = sums.get(key, 0) + count
    return sums


def by_word(tallies: Tallies) -> dict[str, int]:
    """The same without rungs; words that did not occur are left out."""
    sums: dict[str, int] = {}
    for (word, _), count in tallies.items():
        sums[word] = sums.get(word, 0) + count
    return sums


class Counts(Struct):
    """How the cache of thoughts has done, since the start or the last reset."""

    hits: int = 0  # outputs that lacked their thought, and whose turn was found
    misses: int = 0  # outputs that lacked their thought, and whose turn was not
    replays: int = 0  # hits whose thought went back

    def add(self, runs: Iterable[Run]) -> None:
        """Count one request's outputs too. An exact echo needed no look-up and is none."""
        for ruling, count in runs:
            if missed(ruling):
                self.misses += count
            elif ruling.memory and ruling.reason not in _UNWANTED and ruling.action in _LOOKED_UP:
                self.hits += count
                self.replays += count if ruling.action in _SENT else 0

    def reset(self) -> None:
        """Begin again."""
        self.hits = self.misses = self.replays = 0

    @property
    def rate(self) -> str:
        """The share of look-ups after which a thought went back, as people read it."""
        asked = self.hits + self.misses
        return f"{100 * self.replays / asked:.1f}%" if asked else "0.0%"
