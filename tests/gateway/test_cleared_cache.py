"""A conversation goes on after its cache was cleared or its thoughts were erased.

No thought of before goes back, new ones do, and no provider refuses the request, whatever it wants
in the place of a thought.
"""

import pytest

from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.spelling import write

NAMES = [
    *("deepseek", "kimi-k3", "mimo", "glm", "minimax", "mistral", "openrouter"),
    *("openai", "claude", "claude-bound", "gemini"),
]


async def talk(gateway, talker, turns):
    for _ in range(turns):
        head = {"authorization": f"Bearer {talker.key}", **talker.headers}
        answer = await gateway.post(talker.path, write(talker.request()), head)
        assert answer.status == 200, answer.body
        talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))


@pytest.mark.parametrize("how", ["forget", "erase"])
@pytest.mark.parametrize("name", NAMES)
async def test_it_goes_on(name, how):
    sim = simulator(name)
    gateway = InProcessGateway(SimWire(sim), POLICIES.get(name, name))
    fields = FIELDS.get(name, {})
    talker = talker_of(sim.dialect, sim, model=sim.models()[0], echo="strip", **fields)
    await talk(gateway, talker, 3)
    before = sim.requests[-1].audit
    assert before.exact >= 1
    assert await getattr(gateway.store, how)(ALL_ENTRIES)
    await talk(gateway, talker, 1)
    assert sim.requests[-1].audit.exact == 0
    await talk(gateway, talker, 2)
    after = sim.requests[-1].audit
    assert not after.foreign
    assert after.missing >= before.exact  # what was cleared stays away
