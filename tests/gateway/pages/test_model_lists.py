"""Which models upstreams serve, asked of themselves."""

import asyncio

import pytest

from support.gateway import Answer, ScriptedWire, SimWire
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.errors import WireError
from thoughtline.gateway.pages import model_lists
from thoughtline.gateway.pages.model_lists import ModelLists
from thoughtline.testing import FrozenClock, simulator

LISTED = {"data": [{"id": "m-1"}, {"id": "m-2"}, {"id": "elsewhere"}, {"no": "id"}]}


def upstream(name="up", base_url="https://up.example", models=("m-*",), **more):
    return Upstream(name=name, base_url=base_url, models=models, policy="deepseek", **more)


def lists(wire, *upstreams, clock=None):
    return ModelLists(Directory(upstreams or [upstream(key="k")]), wire, clock or FrozenClock())


async def test_what_leads_there_is_listed():
    other = upstream("other", models=("z",), configured=False)
    wire = ScriptedWire(Answer(body=LISTED))
    owners = await lists(wire, upstream(key="secret"), other).owners()
    assert owners == {"m-1": "up", "m-2": "up", "elsewhere": "up"}  # the only one takes the rest
    [sent] = wire.sent  # `other` is neither configured nor has it a key
    assert (sent.method, sent.url) == ("GET", "https://up.example/v1/models")
    assert ("authorization", "Bearer secret") in sent.headers
    two = [upstream(key="k"), upstream("two", models=("x-1", "x-*"))]
    owners = await lists(ScriptedWire(Answer(body=LISTED)), *two).owners()
    assert owners == {"m-1": "up", "m-2": "up", "x-1": "two"}


@pytest.mark.parametrize("name", ["deepseek", "openai", "claude", "gemini"])
async def test_every_api_has_its_list(name):
    sim = simulator(name)
    policy = {"claude": "anthropic"}.get(name, name)
    one = Upstream(name="up", base_url="http://sim", models=("*",), policy=policy, key="k")
    assert list(await lists(SimWire(sim), one).owners()) == [*sim.models()]


async def test_a_list_is_asked_for_again_after_a_while():
    clock, wire = FrozenClock(), ScriptedWire(Answer(status=503), Answer(body=LISTED))
    models = lists(wire, clock=clock)
    assert await models.owners() == {}
    assert await models.owners() == {} and len(wire.sent) == 1
    clock.advance(model_lists.RETRY_NS / 1e9 + 1)
    assert len(await models.owners()) == 3
    clock.advance(model_lists.MAX_AGE_NS / 1e9 - 1)
    assert len(await models.owners()) == 3 and len(wire.sent) == 2
    clock.advance(2)
    await models.owners()
    assert len(wire.sent) == 3


async def test_questions_at_the_same_time_are_one():
    wire = ScriptedWire(Answer(body=LISTED))
    models = lists(wire)
    first, second = await asyncio.gather(models.owners(), models.owners())
    assert first == second and len(wire.sent) == 1


@pytest.mark.parametrize(
    "answer",
    [Answer(status=401), Answer(body=b"<html>"), Answer(body=[]), Answer(body={"data": 1})],
)
async def test_what_is_no_list_is_left_out(answer):
    named = upstream(models=("m-9", "m-*"))
    assert await lists(ScriptedWire(answer), named).owners() == {"m-9": "up"}


async def test_an_upstream_that_is_down_is_left_out():
    class Down(ScriptedWire):
        def send(self, request):
            raise WireError("nobody there")

    assert await lists(Down(), upstream(models=("m-9",))).owners() == {"m-9": "up"}
