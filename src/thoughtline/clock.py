"""Time and identity, as arguments.

Every room that needs the time or a new id is handed a `Clock`; tests hand in a frozen one
(`thoughtline.testing.FrozenClock`). Wall time is for people and retention, monotonic time for
durations: the two are never mixed.
"""

import os
import time
from typing import Protocol


class Clock(Protocol):
    """Where time and ids come from."""

    def wall(self) -> float:
        """Seconds since the epoch."""

    def mono(self) -> int:
        """Nanoseconds on a clock that never goes back; only differences mean anything."""

    def new_id(self) -> str:
        """A new id, unique everywhere and sortable by time."""


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """A UUID version 7 as 32 hexadecimal digits, from a time and ten random bytes."""
    tail = int.from_bytes(entropy[:10], "big") & _FREE | _FIXED
    return f"{milliseconds:012x}{tail:020x}"


_FREE = 0x0FFF_3FFF_FFFF_FFFF_FFFF  # bits that are random; the others say: version 7, variant 2
_FIXED = 0x7000_8000_0000_0000_0000

_DRAWN = 128
_EACH = sum(1 << 80 * nth for nth in range(_DRAWN))  # times ten bytes: those, so often side by side


def _tails(entropy: bytes) -> list[str]:
    """What follows the time in many ids: all made at once, as one long number."""
    tails = int.from_bytes(entropy, "big") & _FREE * _EACH | _FIXED * _EACH
    digits = f"{tails:0{20 * _DRAWN}x}"
    return [digits[start : start + 20] for start in range(0, len(digits), 20)]


class SystemClock:
    """The machine's clocks and randomness."""

    def __init__(self) -> None:
        self._tails: list[str] = []  # of the next ids: a turn has many

    def wall(self) -> float:
        """The time of day."""
        return time.time()

    def mono(self) -> int:
        """The monotonic clock."""
        return time.monotonic_ns()

    def new_id(self) -> str:
        """A UUID of version 7."""
        if not self._tails:
            self._tails = _tails(os.urandom(10 * _DRAWN))
        return f"{time.time_ns() // 1_000_000:012x}{self._tails.pop()}"
