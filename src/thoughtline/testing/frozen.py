"""A clock that stands still until it is told to move on, and ids that count."""

from thoughtline.clock import uuid7


class FrozenClock:
    """Implements `thoughtline.clock.Clock`: the same run gives the same times and ids.

    Ids are real ones in form: unique within this clock, and sortable by time and order.
    """

    def __init__(self, wall: float = 1_800_000_000.0, mono: int = 1_000_000_000) -> None:
        self._wall = wall
        self._mono = mono
        self._ids = 0

    def wall(self) -> float:
        return self._wall

    def mono(self) -> int:
        return self._mono

    def new_id(self) -> str:
        self._ids += 1
        return uuid7(int(self._wall * 1000), self._ids.to_bytes(10, "big"))

    def advance(self, seconds: float) -> None:
        """Let time pass, on both clocks. It never goes back."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        self._wall += seconds
        self._mono += round(seconds * 1_000_000_000)
