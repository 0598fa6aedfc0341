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
    tail = bytearray(entropy[:10])
    tail[0] = 0x70 | (tail[0] & 0x0F)
    tail[2] = 0x80 | (tail[2] & 0x3F)
    return milliseconds.to_bytes(6, "big").hex() + tail.hex()


class SystemClock:
    """The machine's clocks and randomness."""

    def __init__(self) -> None:
        self._entropy = memoryview(b"")  # drawn in bulk: a turn has many ids

    def wall(self) -> float:
        """The time of day."""
        return time.time()

    def mono(self) -> int:
        """The monotonic clock."""
        return time.monotonic_ns()

    def new_id(self) -> str:
        """A UUID of version 7."""
        if len(self._entropy) < 10:
            self._entropy = memoryview(os.urandom(1280))
        drawn, self._entropy = bytes(self._entropy[:10]), self._entropy[10:]
        return uuid7(time.time_ns() // 1_000_000, drawn)
