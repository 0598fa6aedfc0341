"""Who is still being answered: `with presence:` around each of them."""

import asyncio
import contextlib


class Presence:
    """How many there are, and a way to wait until there is none."""

    def __init__(self) -> None:
        self.count = 0
        self._nobody = asyncio.Event()
        self._nobody.set()

    def __enter__(self) -> None:
        self.count += 1
        self._nobody.clear()

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if not self.count:
            self._nobody.set()

    async def over(self, patience: float) -> None:
        """Until nobody is left, or patience is at an end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._nobody.wait(), patience)
