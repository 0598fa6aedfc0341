"""Conversations that one thing tells apart never exchange a thought, on one gateway or on two."""

import pytest

from support.look_alikes import PROVIDERS, Pair
from thoughtline.stores.memory import MemoryStore

PAIRS = 8


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_one_thing_tells_apart_never_exchanges_a_thought(provider, nodes):
    made = 0
    for seed in range(PAIRS):
        pair = Pair(seed, provider, [MemoryStore()] * nodes)
        assert not await pair.run(), (seed, pair.wire.crossed[0])
        made += len(pair.wire.owners)
    assert made > PAIRS * 4  # else nothing could have crossed


async def test_what_crosses_is_seen():
    """A client that shows the other one's thoughts: the wire of these tests tells."""
    pair = Pair(0, "deepseek", [MemoryStore()])
    first, second = pair.clients
    await first.step()
    second.keep, second.turns = True, list(first.turns)
    await second.step()
    assert pair.wire.crossed
