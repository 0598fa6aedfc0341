"""What became of thoughts, counted by several nodes."""

import asyncio

from msgspec.structs import replace

from stores.contract import decided
from thoughtline.log.turn_counts import FINE


async def test_nodes_that_count_at_once_count_each_turn_once(store, other, clock):
    clock.now = 1_000_000.0
    for n in range(20):
        node = (store, other)[n % 2]
        await node.append(decided(f"s{n % 3}", f"t{n}", at=999_600.0))
    asked = [node.turn_counts(seconds=FINE, since=0.0) for node in (store, other, store, other)]
    await asyncio.gather(*asked)
    for node in (store, other):
        [found] = await node.turn_counts(seconds=FINE, since=0.0)
        assert (found.counts["turns"], found.counts["restored"]) == (20, 40)


async def test_the_end_of_a_turn_that_another_node_began_counts_for_its_model(store, other, clock):
    clock.now = 1_000_000.0
    whole = decided("s", "t1", at=999_600.0)
    await store.append(replace(whole, drafts=whole.drafts[:1], index=()))
    await other.append(replace(whole, drafts=whole.drafts[1:]))
    assert await store.turn_counts(seconds=FINE, since=0.0)
    [found] = await other.turn_counts(seconds=FINE, since=0.0)
    assert (found.model, found.counts["turns"], found.counts["input_tokens"]) == ("v4", 1, 9)
