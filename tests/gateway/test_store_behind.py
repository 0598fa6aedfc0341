"""Two gateways on one store, one of which has not written yet what it answered.

The other one's look-up succeeds and finds nothing, so a thought stays out of that request. It goes
back as soon as it is found, unless its provider binds thoughts to what stood before them.
"""

import pytest

from support.gateway import InProcessGateway, SimWire, TurnClient, audit, statuses
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import FrozenClock, simulator


class Behind(MemoryStore):
    """A store that has what another one was given, but only once it is told to catch up."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    async def append(self, batch):
        self.waiting.append(batch)
        return await super().append(batch)

    async def catch_up(self, other):
        for batch in other.waiting:
            await self.append(batch)


HERE = ["deepseek", "kimi-k3", "glm", "openai", "xai", "gemini", "openrouter"]


async def moved(name):
    """A conversation whose first answer waits at one gateway, and that goes on at another."""
    sim, policy, clock = simulator(name), POLICIES.get(name, name), FrozenClock()
    first = InProcessGateway(SimWire(sim), policy, store=Behind(), clock=clock)
    second = InProcessGateway(SimWire(sim), policy, store=Behind(), clock=clock)
    fields = FIELDS.get(name)
    client = TurnClient(first, sim.dialect, sim.models()[0], keep=False, fields=fields)
    await client.run(1)
    client.gateway = second
    clock.advance(1)
    answer = await client.say(*client.next())
    assert answer.status == 200
    assert "missed=1" in answer.header("x-thoughtline-replay")
    await second.store.catch_up(first.store)
    await client.run(1)
    return second, client


@pytest.mark.parametrize("name", HERE)
async def test_a_turn_that_was_found_late_goes_back(name):
    second, client = await moved(name)
    answer = await client.say(*client.next())
    assert "missed=0; placeholder=0; dropped=0" in answer.header("x-thoughtline-replay")
    assert set(statuses(second)) == {200}
    assert "missing=0; misplaced=0; foreign=0" in audit(second)


async def test_it_stays_out_where_later_thoughts_were_made_without_it():
    second, client = await moved("claude-bound")
    answer = await client.say(*client.next())
    assert "dropped=1" in answer.header("x-thoughtline-replay")
    assert set(statuses(second)) == {200}


@pytest.mark.parametrize("later", [0, 1])
async def test_what_looks_the_same_and_ended_later_is_another_turn(later):
    """A conversation that began before the gateway; then another one makes the same moves."""
    sim, clock = simulator("deepseek", serials=False), FrozenClock()
    gateway = InProcessGateway(SimWire(sim), "deepseek", clock=clock)
    old = TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False)
    await old.run(1, direct=True)
    await old.run(1)
    clock.advance(later)
    new = TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False)
    await new.run(1)
    answer = await old.say(*old.next())
    assert "restored=1; " in answer.header("x-thoughtline-replay")
    assert "foreign=0" in audit(gateway)
