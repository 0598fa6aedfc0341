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


class SystemClock:
    """The machine's clocks and randomness."""

    def __init__(self) -> None:
        self._entropy = b""  # drawn in bulk: a turn has many ids
        self._drawn = 0

    def wall(self) -> float:
        """The time of day."""
        return time.time()

    def mono(self) -> int:
        """The monotonic clock."""
        return time.monotonic_ns()

    def new_id(self) -> str:
        """A UUID of version 7."""
        start = self._drawn
        if start >= len(self._entropy):
            self._entropy, start = os.urandom(1280), 0
        self._drawn = start + 10
        return uuid7(time.time_ns() // 1_000_000, self._entropy[start : start + 10])
