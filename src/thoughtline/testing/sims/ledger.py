"""Every thought a simulator emitted, and the audit of a history against them.

A dialect describes each assistant turn of a request as an `Echo`: what is visible in it and which
thoughts it carries. The ledger finds out which exchange the turn came from (by the serial in its
visible text or arguments, else by conversation and turn number) and compares, byte for byte. It
never looks at ids, so a client that rewrites them is not blamed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec


class Emission(NamedTuple):
    """One thought that was emitted."""

    serial: str
    """Names the exchange; unique in the life of a simulator."""
    marker: str
    """Names the conversation: a hash of the account and the first user text."""
    turn: int
    """How many assistant turns came before."""
    carrier: str
    """The field or block it travelled in: `reasoning_content`, `thinking`, …"""
    value: str
    """The exact string, or the block as canonical JSON."""
    slot: str = ""
    """Where in its turn it belongs, when the dialect has places: `call:0`, `after:2`."""


class Carried(NamedTuple):
    """One thought found in a request; `value` and `slot` as in `Emission`."""

    value: str
    slot: str = ""


class Echo(NamedTuple):
    """One assistant turn of a request's history."""

    visible: str
    """Its text and its call arguments, joined in any way."""
    thoughts: tuple[Carried, ...] = ()


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the emitted thoughts whose turns are in this history."""

    exact: int = 0
    altered: int = 0
    missing: int = 0
    """Absent, null, or replaced by a blank placeholder."""
    misplaced: int = 0
    """A thought of this conversation, at the wrong turn or the wrong place in it."""
    foreign: int = 0
    """A thought of another conversation or account, or one that was never emitted here."""

    def __add__(self, other: Audit) -> Audit:
        return Audit(
            exact=self.exact + other.exact,
            altered=self.altered + other.altered,
            missing=self.missing + other.missing,
            misplaced=self.misplaced + other.misplaced,
            foreign=self.foreign + other.foreign,
        )

    def __str__(self) -> str:
        return "; ".join(f"{name}={getattr(self, name)}" for name in self.__struct_fields__)

    @property
    def clean(self) -> bool:
        """Nothing was lost, changed or mixed up."""
        return not (self.altered or self.missing or self.misplaced or self.foreign)


class Ledger:
    """The emissions of one simulator."""

    def __init__(self, prefix: str) -> None:
        self.emitted: list[Emission] = []
        self._serial = re.compile(re.escape(prefix) + r"\d{4,}")
        self._by_serial: dict[str, list[Emission]] = {}
        self._by_turn: dict[tuple[str, int], list[str]] = {}
        self._by_value: dict[str, list[Emission]] = {}
        self._answered: dict[tuple[str, int] | str, list[str]] = {}

    def serials(self, visible: str) -> list[str]:
        """The exchanges that a text names."""
        return list(dict.fromkeys(self._serial.findall(visible)))

    def answer(self, serial: str, marker: str, turn: int, *, marked: bool) -> None:
        """Note an exchange, with thoughts or without; `marked` as in `add`."""
        key = serial if marked else (marker, turn)
        self._answered.setdefault(key, []).append(serial)

    def silent(self, marker: str, turn: int, visible: str) -> bool:
        """Whether this assistant turn is known, and was answered without a thought."""
        named = self.serials(visible)
        if named:
            return all(name in self._answered and not self._thought(name) for name in named)
        return any(not self._thought(one) for one in self._answered.get((marker, turn), ()))

    def _thought(self, serial: str) -> bool:
        return any(emission.value.strip() for emission in self._by_serial.get(serial, ()))

    def add(self, emission: Emission, *, marked: bool) -> None:
        """Note a thought; `marked` when its turn's visible output carries the serial."""
        self.emitted.append(emission)
        self._by_serial.setdefault(emission.serial, []).append(emission)
        self._by_value.setdefault(emission.value, []).append(emission)
        if not marked:
            serials = self._by_turn.setdefault((emission.marker, emission.turn), [])
            if emission.serial not in serials:
                serials.append(emission.serial)

    def find(self, value: str) -> list[Emission]:
        """Every emission of exactly this value."""
        return list(self._by_value.get(value, ()))

    def siblings(self, value: str) -> int:
        """How many thoughts were emitted in the same exchange as this one, itself included."""
        return max((len(self._by_serial[e.serial]) for e in self.find(value)), default=0)

    def of(self, marker: str, turn: int, visible: str) -> list[list[Emission]]:
        """The exchanges that this assistant turn may have come from, each with its thoughts."""
        serials = self.serials(visible)
        if serials:  # two serials: the client merged two turns into one
            return [[e for serial in serials for e in self._by_serial.get(serial, ())]]
        # Without a serial two exchanges may look alike (a retry, a fork): either will do.
        return [self._by_serial[serial] for serial in self._by_turn.get((marker, turn), ())]

    def audit(self, marker: str, echoes: Iterable[Echo]) -> Audit:
        """Compare a whole history with what was emitted."""
        total = Audit()
        for turn, echo in enumerate(echoes):
            candidates = self.of(marker, turn, echo.visible) or [[]]
            audits = [self._compare(marker, group, echo.thoughts) for group in candidates]
            total += max(audits, key=lambda one: one.exact)
        return total

    def _compare(
        self, marker: str, group: Sequence[Emission], thoughts: Sequence[Carried]
    ) -> Audit:
        left = list(group)
        exact = misplaced = foreign = unknown = 0
        reached = -1
        for carried in thoughts:
            twins = [e for e in left if e.value == carried.value]
            match = next((e for e in twins if e.slot == carried.slot), None)
            if match is not None and group.index(match) > reached:
                reached = group.index(match)
                left.remove(match)
                exact += 1
            elif twins:
                left.remove(twins[0])
                misplaced += 1
            elif not carried.value.strip():
                continue  # a placeholder: the thought itself is missing
            elif known := self._by_value.get(carried.value):
                ours = any(e.marker == marker for e in known)
                misplaced, foreign = misplaced + ours, foreign + (not ours)
            else:
                unknown += 1
        altered = min(unknown, len(left))
        return Audit(
            exact=exact,
            altered=altered,
            missing=len(left) - altered,
            misplaced=misplaced,
            foreign=foreign + unknown - altered,
        )
