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

Kind = tuple[Action, Rung, str, bool]
"""All that counts of a ruling: action, rung, reason, and whether it is about a turn we know."""

Run = tuple[Kind, int]
"""What neighbours that were ruled alike have in common, and how many they are."""

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
            found.append((_kind(first), count))
        first, count = ruling, 1
    if first is not None:
        found.append((_kind(first), count))
    return found


def _kind(ruling: Ruling) -> Kind:
    return ruling.action, ruling.rung, ruling.reason, bool(ruling.memory)


def reported(kind: Kind) -> tuple[str, str]:
    """The word and the rung under which a kind of ruling is reported."""
    action, rung, _, _ = kind
    word = MISSED if action is Action.ABSENT and _missed(kind) else action.value
    return word, rung.value


def _missed(kind: Kind) -> bool:
    """Whether an output went without its thought because its turn was not found."""
    action, rung, reason, _ = kind
    return rung is Rung.NONE and action in _LACKING and reason in _UNKNOWN


def tally(runs: Iterable[Run]) -> Tallies:
    """How many outputs came to what, on which rung."""
    sums: Tallies = {}
    for kind, count in runs:
        key = reported(kind)
        sums[key] = sums.get(key, 0) + count
    return sums


def by_word(tallies: Tallies) -> dict[str, int]:
    """The same without rungs; words that did not occur are left out."""
    sums: dict[str, int] = {}
    for (word, _), count in tallies.items():
        sums[word] = sums.get(word, 0) + count
    return sums


class Counts(Struct, frozen=True):
    """How the cache of thoughts has done."""

    hits: int = 0  # outputs that lacked their thought, and whose turn was found
    misses: int = 0  # outputs that lacked their thought, and whose turn was not
    replays: int = 0  # hits whose thought went back

    @classmethod
    def of(cls, runs: Iterable[Run]) -> "Counts":
        """Of these outputs. An exact echo needed no look-up and is none."""
        hits = misses = replays = 0
        for kind, count in runs:
            action, _, reason, known = kind
            if _missed(kind):
                misses += count
            elif known and reason not in _UNWANTED and action in _LOOKED_UP:
                hits += count
                replays += count if action in _SENT else 0
        return cls(hits, misses, replays)

    def since(self, before: "Counts") -> "Counts":
        """What has come to it since then."""
        return Counts(
            self.hits - before.hits, self.misses - before.misses, self.replays - before.replays
        )

    @property
    def rate(self) -> str:
        """The share of look-ups after which a thought went back, as people read it."""
        asked = self.hits + self.misses
        return f"{100 * self.replays / asked:.1f}%" if asked else "0.0%"
