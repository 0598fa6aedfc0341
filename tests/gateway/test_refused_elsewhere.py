"""Two processes on one file: what a provider has refused one of them, the other does not send.

And where it does all the same, because it could not know, only what was refused goes: the fresh
signature of the running call stays, or the provider's own value stands for it.
"""

import pytest

from support.gateway import InProcessGateway, SimWire, TurnClient, recovered, statuses
from thoughtline.stores import open_store
from thoughtline.stores.cached import CachedStore
from thoughtline.testing import simulator

DOORS = [("gemini", "gemini"), ("gemini-vertex", "gemini"), ("gemini-compat", "chat")]
SKIP = b"skip_thought_signature_validator"


def process(sim, tmp_path):
    """A gateway with a memory of its own over the file."""
    store = CachedStore(open_store(f"sqlite:///{tmp_path}/t.db"), entries=100)
    return InProcessGateway(SimWire(sim), "gemini", store=store)


async def at(client, gateway, exchanges=1):
    client.gateway = gateway
    await client.run(exchanges)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("name", "dialect"), DOORS)
async def test_what_one_saw_refused_the_other_does_not_send(tmp_path, name, dialect, keep):
    sim = simulator(name)
    first, second = process(sim, tmp_path), process(sim, tmp_path)
    client = TurnClient(first, dialect, sim.models()[0], keep=keep)
    await at(client, first)
    await at(client, second)
    first.wire.sim = second.wire.sim = simulator(name, seed=1)  # new keys: all old ones are lost
    await at(client, first)
    assert recovered(first) == ["resign"]
    await at(client, second, 3)
    assert statuses(second) == [200, 200, 200, 200]
    await first.store.close()
    await second.store.close()


TOLD = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["gemini", "gemini-vertex"])
async def test_a_running_call_beside_a_told_thought_is_signed_anew(tmp_path, name, keep):
    """What is left of the output, its readable thought, does not stand for the signature."""
    sim = simulator(name)
    gateway = process(sim, tmp_path)
    client = TurnClient(gateway, "gemini", sim.models()[0], keep=keep, fields=TOLD)
    await at(client, gateway)
    gateway.wire.sim = simulator(name, seed=1)
    await at(client, gateway)
    assert recovered(gateway) == ["resign"]
    assert gateway.wire.sent[-1].body.count(SKIP) == 1
    assert gateway.wire.sent[-1].body.count(b'"thought":true') >= 1
    await gateway.store.close()
