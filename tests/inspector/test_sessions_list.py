"""Pages that ask for the same at the same time cost one look."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from inspector.sample_sessions import Session
from thoughtline.inspector.feed import LiveFeed
from thoughtline.inspector.running_turns import RunningTurns
from thoughtline.inspector.sessions import MAX_AGE_NS, SharedLookups
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import FrozenClock


class Looks:
    """Counts the looks at something that changes each time."""

    def __init__(self):
        self.store, self.clock, self.count = MemoryStore(), FrozenClock(), 0
        self.live_feed = LiveFeed(self.store, RunningTurns(()), self.clock, interval=0.01)
        self.shared = SharedLookups(self.live_feed, self.clock)
        self.gate = asyncio.Event()
        self.gate.set()

    async def _look(self):
        self.count += 1
        number = self.count
        await self.gate.wait()
        return number

    def ask(self, asked="limit=25"):
        return self.shared.get(asked, self._look)

    @asynccontextmanager
    async def watched(self):
        body = self.live_feed.follow(None, None)
        await anext(body)
        try:
            yield body
        finally:
            await body.aclose()


async def test_who_asks_at_the_same_time_shares_one_look():
    looks = Looks()
    async with looks.watched():
        assert await asyncio.gather(*(looks.ask() for _ in range(20))) == [1] * 20
        assert await looks.ask() == 1  # a moment later, too
        assert await looks.ask("limit=50") == 2  # another question


async def test_with_no_feed_open_everybody_looks():
    looks = Looks()
    assert [await looks.ask(), await looks.ask()] == [1, 2]


async def test_nobody_gets_less_than_they_were_told_of():
    looks = Looks()
    async with looks.watched() as body:
        assert await looks.ask() == 1
        await Session(looks.store, "new").turn("hello", "hi")
        assert b"turn_started" in await anext(body)
        assert await looks.ask() == 2


async def test_after_a_moment_or_a_deletion_it_looks_anew():
    looks = Looks()
    async with looks.watched():
        assert await looks.ask() == 1
        looks.clock.advance(2 * MAX_AGE_NS / 1e9)
        assert await looks.ask() == 2
        looks.shared.clear()
        assert await looks.ask() == 3


async def test_one_who_leaves_or_a_failure_spoils_it_for_nobody():
    looks = Looks()
    async with looks.watched():
        looks.gate.clear()
        gone, stays = (asyncio.ensure_future(looks.ask()) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        looks.gate.set()
        assert await stays == 1

        async def broken():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await looks.shared.get("other", broken)
        assert await looks.ask("other") == 2
