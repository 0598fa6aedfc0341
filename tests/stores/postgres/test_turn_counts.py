"""What became of thoughts, counted by several nodes."""

import asyncio

from stores.contract import decided
from thoughtline.log.turn_counts import FINE


async def test_nodes_that_count_at_once_count_each_turn_once(store, other, clock):
    clock.now = 1_000_000.0
    for n in range(20):
        await store.append(decided(f"s{n % 3}", f"t{n}", at=999_600.0))
    await asyncio.gather(*(s.summarise() for s in (store, other, store, other)))
    for node in (store, other):
        [found] = (await node.turn_counts(seconds=FINE, since=0.0)).counts
        assert (found.counts["turns"], found.counts["restored"]) == (20, 40)
