"""Whether a WebSocket is worth a try: after repeated failures it rests, and is tried again later.

One failure is an accident and is tried again at once; from the second in a row on there is a rest,
each twice as long as the one before, up to a limit. A server that says it does not speak WebSocket
is believed for the longest of these. A response that completes forgives everything.
"""

from thoughtline.clock import Clock


class Health:
    """The failures of one endpoint's WebSocket, in a row."""

    def __init__(self, clock: Clock, *, first: float, longest: float, pause: float) -> None:
        self.failures = 0
        self._clock = clock
        self._first = first
        self._longest = longest
        self._pause = pause
        self._until = 0

    @property
    def resting(self) -> bool:
        """Whether it is not to be tried yet."""
        return self.failures > 1 and self._clock.mono() < self._until

    @property
    def pause(self) -> float:
        """How long to wait before another try within one request, in seconds."""
        return self._pause * 2 ** min(self.failures - 2, 5) if self.failures > 1 else 0.0

    def failed(self, *, refused: bool = False) -> None:
        """It broke, could not be opened, or (`refused`) is not spoken there."""
        self.failures = max(2, self.failures + 1) if refused else self.failures + 1
        rest = self._longest if refused else self._first * 2 ** min(self.failures - 2, 16)
        self._until = self._clock.mono() + int(min(rest, self._longest) * 1e9)

    def recovered(self) -> None:
        """It works."""
        self.failures = 0
