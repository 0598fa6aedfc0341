"""Time and identity, as arguments.

Every package that needs the time or a new id is handed a `Clock`; tests hand in a frozen one
(`thoughtline.testing.FrozenClock`). Wall time is for people and retention, monotonic time for
durations: the two are never mixed.
"""

import os
from time import monotonic_ns, time, time_ns
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
    return f"{milliseconds:012x}{_tails(entropy[:10])[0]}"


def time_of_id(id: str) -> int | None:
    """The milliseconds at which an id was made; None if Thoughtline did not make it."""
    if len(id) != 32 or id[12] != "7":
        return None
    try:
        return int(id[:12], 16)
    except ValueError:
        return None


_DRAWN = 128  # ids of which the randomness is drawn at once
_VERSION = bytes(byte & 0x0F | 0x70 for byte in range(256))  # any byte → one that says: version 7
_VARIANT = bytes(byte & 0x3F | 0x80 for byte in range(256))


def _tails(entropy: bytes) -> list[str]:
    """What follows the time in ids: all made at once, from ten random bytes each."""
    tails = bytearray(entropy)
    tails[0::10] = tails[0::10].translate(_VERSION)
    tails[2::10] = tails[2::10].translate(_VARIANT)
    return tails.hex(" ", 10).split()


class SystemClock:
    """The machine's clocks and randomness."""

    wall = staticmethod(time)
    mono = staticmethod(monotonic_ns)

    def __init__(self) -> None:
        self._tails: list[str] = []  # of the next ids: a turn has many
        self._millisecond = 0  # of the last one, and how that is spelled: many share theirs
        self._head = ""

    def new_id(self) -> str:
        """A UUID of version 7."""
        now = time_ns() // 1_000_000
        if now != self._millisecond:
            self._millisecond, self._head = now, f"{now:012x}"
        try:
            return self._head + self._tails.pop()
        except IndexError:
            self._tails = _tails(os.urandom(10 * _DRAWN))
            return self._head + self._tails.pop()
