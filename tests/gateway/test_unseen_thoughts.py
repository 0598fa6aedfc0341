"""A thought that the gateway has never seen goes out as it came, and is not called exact."""

import re

import pytest

from support.clients import client
from support.gateway import InProcessGateway, SimWire
from thoughtline.testing import simulator
from thoughtline.testing.sims.spelling import write

PROVIDERS = {
    "chat": ("deepseek", "deepseek"),
    "messages": ("claude", "anthropic"),
    "responses": ("openai", "openai"),
    "gemini": ("gemini", "gemini"),
}
THINKING = {"claude": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}


def counts(answer):
    said = answer.header("x-thoughtline-replay")
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", said)}


@pytest.mark.parametrize("dialect", PROVIDERS)
async def test_it_counts_as_missed_and_goes_out_as_it_came(dialect):
    name, policy = PROVIDERS[dialect]
    sim = simulator(name)
    talk = client(dialect, sim, model=sim.models()[0], key="a-key", **THINKING.get(name, {}))
    talk.talk(3)
    gateway, body = InProcessGateway(SimWire(sim), policy), write(talk.request())
    answer = await gateway.post(talk.path, body)
    told = counts(answer)
    assert (told["exact"], told["corrected"]) == (0, 0)
    assert told["missed"] >= 1
    assert gateway.wire.sent[0].body == body
