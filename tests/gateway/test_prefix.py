"""What was sent once is sent again: forty turns, and the provider's prompt cache never misses.

The client strips every thought. The gateway restarts in between, with nothing but its file, and
its memory holds a fraction of the conversation. Every request must begin with the bytes of the
one before it, and the provider, which counts cached tokens by equal bytes, must say so.
"""

from itertools import pairwise

import pytest

from support.gateway import InProcessGateway, SimWire, TurnClient
from thoughtline.clock import SystemClock
from thoughtline.dialects import splice
from thoughtline.log.events import TurnEnded
from thoughtline.log.parts import Origin
from thoughtline.stores import open_store
from thoughtline.stores.cached import CachedStore
from thoughtline.testing import simulator

TURNS, LIFE, MEMORY = 40, 7, 6
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
CASES = {
    "deepseek": ("deepseek", "messages", {}),
    "kimi": ("kimi", "messages", {}),
    "claude": ("anthropic", "messages", THINKING),
    "claude-bound": ("anthropic", "messages", {"thinking": {"type": "adaptive"}}),
    "openai": ("openai", "input", {}),
    "gemini": ("gemini", "contents", {}),
}


def history(body, key):
    """Each message as its bytes."""
    spans = splice.elements(body, splice.members(body)[key])
    return [body[span.value : span.end] for span in spans]


def rest(body, key):
    """Everything but the messages."""
    place = splice.members(body)[key]
    return body[: place.value], body[place.end :]


def cached(client, answer):
    reader = client.dialect.reader(stream=False, clock=SystemClock(), origin=Origin(), sent=0)
    told = [*reader.feed(answer.body), *reader.close()]
    return next(h.usage.cached for h in told if isinstance(h, TurnEnded))


@pytest.mark.parametrize("name", CASES)
async def test_every_request_goes_on_where_the_last_one_ended(name, tmp_path):
    policy, key, fields = CASES[name]
    sim = simulator(name)
    client, gateway, counts = None, None, []
    for turn in range(TURNS):
        if turn % LIFE == 0:  # a gateway with no memory but its file
            if gateway is not None:
                await gateway.store.close()
            store = CachedStore(open_store(f"sqlite:///{tmp_path}/t.db"), entries=MEMORY)
            gateway = InProcessGateway(SimWire(sim), policy, store=store)
            client = client or TurnClient(
                gateway, sim.dialect, sim.models()[0], keep=False, fields=fields
            )
            client.gateway = gateway
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
        assert "missed=0; placeholder=0; dropped=0" in answer.header("x-thoughtline-replay")
        counts.append(cached(client, answer) or 0)
    await gateway.store.close()
    bodies = [record.request.body for record in sim.requests]
    assert len(bodies) == TURNS
    for before, after in pairwise(bodies):
        old, new = history(before, key), history(after, key)
        assert new[: len(old)] == old and len(new) > len(old)
        assert rest(after, key) == rest(before, key)
    assert counts == sorted(counts)
    assert all(more > less for less, more in pairwise(counts[1:]))
    assert all(record.audit.clean for record in sim.requests)
