"""Odd shapes of real answers, and the seeded choice of those that an answer gets.

A simulator that is *realistic* answers as real providers do: with members that say nothing, events
that carry nothing, items nobody asked about. Each dialect has a module of pure functions over what
it is about to send, and a table of which provider does what. The same conversation, turn and seed
give the same answer. A strict simulator answers plainly, and one that is given names does those.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, TypeAlias

VARIABLE = "THOUGHTLINE_INTERNAL_REALISTIC_SIMULATORS"
"""The variable that makes simulators realistic which are not told what to be."""

Change: TypeAlias = Callable[[list[Any], Random], list[Any]]
"""What is about to be sent, and something to choose with → what is sent instead."""


class Oddity(NamedTuple):
    """One odd shape."""

    change: Change
    asked: Callable[[Mapping[str, Any]], bool] | None = None
    """Whether a request calls for it; None where none has to."""


class Oddities(NamedTuple):
    """Which oddities the answers of one simulator have."""

    realistic: bool
    always: tuple[str, ...] = ()
    """Names of those that each answer of any provider has."""

    @classmethod
    def chosen(cls, realistic: bool | None, always: tuple[str, ...]) -> Oddities:
        """As told, or as the variable says."""
        default = bool(os.environ.get(VARIABLE)) if realistic is None else realistic
        return cls(default, always)

    def apply(
        self,
        sent: list[Any],
        table: Mapping[str, Oddity],
        emits: tuple[str, ...],
        body: Mapping[str, Any],
        seed: str,
    ) -> list[Any]:
        """What is sent: `emits` names what this provider does, `seed` the conversation and turn."""
        for name, oddity in table.items():
            dice = Random(f"{seed}/{name}")  # noqa: S311 (the same in every run)
            chosen = self.realistic and name in emits and dice.random() < 0.5
            called_for = oddity.asked is None or oddity.asked(body)
            if name in self.always or (chosen and called_for):
                sent = oddity.change(sent, dice)
        return sent
