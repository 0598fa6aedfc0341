"""Who is still being answered: `with presence:` around each of them."""

import asyncio
import contextlib


class Presence:
    """How many there are, and a way to wait until there is none."""

    def __init__(self) -> None:
        self.count = 0
        self._nobody: asyncio.Event | None = None  # where somebody waits for that

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if not self.count and self._nobody is not None:
            self._nobody.set()
            self._nobody = None

    async def over(self, patience: float) -> None:
        """Until nobody is left, or patience is at an end."""
        if self.count:
            self._nobody = self._nobody or asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nobody.wait(), patience)
