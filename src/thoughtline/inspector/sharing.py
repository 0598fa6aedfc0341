"""One look for all who ask for the same at the same time: 20 open pages hear of one event at once.

Only while feeds are open: then nobody who looks is told of anything newer than what they get, and
the feed brings them back for more. With no feed open, every question is answered anew.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from thoughtline.clock import Clock
from thoughtline.inspector.feeds import EVERY, Hub

T = TypeVar("T")

MOMENT = round(EVERY * 1_000_000_000)
"""Nanoseconds for which an answer serves others: as often as the feed looks."""


class _Look(Generic[T]):
    """A look under way, or over."""

    def __init__(self, task: asyncio.Task[T], version: int, began: int) -> None:
        self.task, self.version, self.began = task, version, began


class Shared(Generic[T]):
    """Looks, by what was asked."""

    def __init__(self, hub: Hub, clock: Clock) -> None:
        self._hub = hub
        self._clock = clock
        self._looks: dict[str, _Look[T]] = {}

    async def look(self, asked: str, look: Callable[[], Awaitable[T]]) -> T:
        """What `look` finds, or just found for somebody else."""
        if not self._hub.open:
            self.forget()
            return await look()
        now, version = self._clock.mono(), self._hub.version
        known = self._looks.get(asked)
        if known is None or known.version != version or now - known.began > MOMENT:
            self._drop(now)
            known = _Look(asyncio.ensure_future(look()), version, now)
            self._looks[asked] = known
        try:
            return await asyncio.shield(known.task)  # one who leaves does not end it for others
        except BaseException:
            if self._looks.get(asked) is known and known.task.done():
                del self._looks[asked]
            raise

    def forget(self) -> None:
        """What was found is not so any more."""
        self._looks.clear()

    def _drop(self, now: int) -> None:
        old = [key for key, look in self._looks.items() if now - look.began > MOMENT]
        for key in old:
            del self._looks[key]
