"""A session that moves from one address to another takes its thoughts along only if told to."""

import pytest

import thoughtline
from support.agents import TOOLS, wired
from thoughtline import Provider
from thoughtline.testing import simulator


@pytest.mark.parametrize("same", [False, True])
async def test_a_session_that_moves(same):
    sim = simulator("vllm")
    first = Provider("one", model=sim.models()[0], base_url="sim://vllm", policy="vllm", key="k")
    more = {"same_as": ("sim://vllm",)} if same else {}
    second = Provider(
        "two", model=sim.models()[0], base_url="sim://vllm/v1", policy="vllm", key="k", **more
    )
    async with thoughtline.open("memory://", wire=wired(sim), secret=b"secret") as log:
        chat = await log.create(provider=first, tools=TOOLS)
        await chat.run("go")
        count = len(sim.requests)
        chat = await log.resume(chat.id, provider=second, tools=TOOLS)
        await chat.run("on")
    assert len(sim.requests) > count
    audit = sim.requests[count].audit
    assert (audit.exact > 0) is same
