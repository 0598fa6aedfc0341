"""Conversations that one thing tells apart never exchange a thought, on one gateway or on two."""

import asyncio
import random
from contextlib import asynccontextmanager

import pytest

from support.gateway import InProcessGateway
from support.look_alikes import PROVIDERS, WITHOUT_RANDOM_IDS, LookAlike, Pair, WatchedWire
from support.translating_gateway import PAIRS as TRANSLATED
from support.translating_gateway import TranslatingGateway
from thoughtline.agents.simulated import POLICIES
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

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


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize(("speaks", "provider"), TRANSLATED)
async def test_nor_do_translated_ones(speaks, provider, copies):
    """Also where a client shows the other one's handles at its own turns."""
    for seed in range(3):
        draw = random.Random(seed)
        wire = WatchedWire(simulator(provider, serials=False, seed=seed), provider)
        store = MemoryStore()
        gateways = [TranslatingGateway(provider, store=store, wire=wire) for _ in range(2)]
        one, two = (
            LookAlike(f"{speaks}-{provider}-{seed}-{name}", draw, gateways[0], provider,
                      hint=True, hides=frozenset(), speaks=speaks)
            for name in "ab"
        )  # fmt: skip
        if copies:
            one.keep = two.keep = True
            one.copied, two.copied = two.turns, one.turns
        for _ in range(8):
            client = draw.choice((one, two))
            client.gateway = draw.choice(gateways)
            await client.step()
        assert not wire.crossed, (seed, wire.crossed[0])
        assert len(wire.owners) >= 4


class UnevenWire(WatchedWire):
    """Its answers come in another order than they were asked for."""

    def __init__(self, sim, provider, draw):
        super().__init__(sim, provider)
        self.draw = draw

    def send(self, request):
        return self._late(super().send(request))

    @asynccontextmanager
    async def _late(self, sent):
        for _ in range(self.draw.randrange(30)):
            await asyncio.sleep(0)
        async with sent as answer:
            for _ in range(self.draw.randrange(30)):
                await asyncio.sleep(0)
            yield answer


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_twenty_at_once_never_do(provider):
    draw = random.Random(provider)
    wire = UnevenWire(simulator(provider, serials=False), provider, draw)
    store, policy = MemoryStore(), POLICIES.get(provider, provider)
    gateways = [InProcessGateway(wire, policy, store=store) for _ in range(2)]

    async def live(name):
        hint = provider in WITHOUT_RANDOM_IDS or draw.random() < 0.5
        client = LookAlike(name, draw, gateways[0], provider, hint=hint, hides=frozenset())
        for _ in range(5):
            client.gateway = draw.choice(gateways)
            await client.step()

    await asyncio.gather(*[live(f"{provider}-{number}") for number in range(20)])
    assert not wire.crossed, wire.crossed[0]
    assert len(wire.owners) >= 100
