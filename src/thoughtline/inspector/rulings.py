"""Rulings as the log has them, read leniently: also those of other versions of this program."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.inspector.shapes import Counts, RulingShape
from thoughtline.matching import Rung

CARRIED = frozenset({"restored", "replaced", "exact"})
"""Actions with which thoughts went out."""

_LOST = frozenset({"unknown", "ambiguous", "uncorroborated"})


class Ruled(Struct, frozen=True, gc=False):
    """A `replay.Ruling`, with words in place of its enumerations."""

    turn: int = 0
    action: str = ""
    reason: str = ""
    rung: str = Rung.NONE.value
    memory: str = ""
    thoughts: int = 0
    left: int = 0

    @property
    def missed(self) -> bool:
        """Whether the output's turn was not found (see `replay.Restoration.missed`)."""
        unfound = self.rung == Rung.NONE.value and self.action in ("absent", "placeholder")
        return unfound and self.reason in _LOST

    @property
    def carried(self) -> bool:
        """Whether thoughts of the remembered turn went out."""
        return self.action in CARRIED and self.thoughts > 0


def ruled(replay: Iterable[Any]) -> list[Ruled]:
    """The rulings of a turn; what cannot be read is left out."""
    found: list[Ruled] = []
    for one in replay:
        try:
            found.append(msgspec.convert(one, Ruled, from_attributes=True))
        except msgspec.ValidationError:
            continue
    return found


class Started(Struct):
    """What of a `turn_started` event matters here."""

    target: "Target | None" = None
    replay: tuple[Ruled, ...] = ()
    repeated: int = 0
    tally: dict[str, int] = {}

    @property
    def counts(self) -> Counts:
        """How many of each, those that repeat the turn before included."""
        if not self.repeated:
            return counted(self.replay)
        return Counts(**{name: self.tally.get(name, 0) for name in Counts.__struct_fields__})


class Target(Struct):
    """Where a request went."""

    provider: str = ""
    model: str = ""


started = msgspec.json.Decoder(Started).decode


def counted(rulings: Iterable[Ruled]) -> Counts:
    """How many of each."""
    counts = dict.fromkeys(Counts.__struct_fields__, 0)
    for one in rulings:
        if one.action in counts and one.action != "missed":
            counts[one.action] += 1
        counts["missed"] += one.missed
    return Counts(**counts)


def shown(one: Ruled) -> RulingShape:
    """For people."""
    return RulingShape(
        turn=one.memory or None,
        position=one.turn,
        action=one.action,
        reason=one.reason,
        rung=one.rung,
        thoughts=one.thoughts,
        left=one.left,
    )
