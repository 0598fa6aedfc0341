"""Who waits for new events."""

import asyncio

from thoughtline.stores.postgres.feed import Watchers


async def test_the_first_transaction_since_one_came_is_noted():
    watchers = Watchers()
    watchers.notify({"s"}, 5)
    with watchers.add("s") as watcher, watchers.add(None) as everything:
        watchers.notify({"other"}, 7)
        watchers.notify({"s"}, 8)
        assert (watcher.first, everything.first) == (7, 7)
        async with asyncio.timeout(60):
            await watcher.wait(3600)
            await everything.wait(3600)
    assert not watchers.closed
    watchers.close()
    assert watchers.closed
