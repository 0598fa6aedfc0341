"""The clock of an event loop, which stands still until a test moves it."""

import asyncio
from contextlib import contextmanager

ROUNDS = 50
"""How often the loop comes round for those who are ready, and for whom they make ready."""


class LoopClock:
    """What `asyncio.sleep`, `asyncio.timeout` and `call_later` go by while it is `stopped`."""

    def __init__(self, loop):
        self.now = loop.time()

    pause = staticmethod(asyncio.sleep)
    """Time that passes when the clock is moved."""

    async def advance(self, seconds):
        """Let time pass at once, when everybody has done what takes none."""
        await settled()
        self.now += seconds
        await settled()


async def settled():
    """Everybody in this loop who is ready has run, and waits for a timer, a thread or a peer."""
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


@contextmanager
def stopped(loop):
    """Stop the clock of this loop for the length of a block; then it goes on from there."""
    clock, goes = LoopClock(loop), loop.time
    loop.time = lambda: clock.now
    try:
        yield clock
    finally:
        ahead = clock.now - goes()
        loop.time = lambda: goes() + ahead
