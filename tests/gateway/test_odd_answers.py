"""However odd an answer is: its thoughts come back exactly, none is misplaced, nothing is refused."""

import asyncio

import pytest

from support.clients import client
from support.gateway import InProcessGateway, SimWire
from support.odd_answers import EVERY, FIELDS
from thoughtline.agents.simulated import POLICIES
from thoughtline.testing import PROVIDERS, Reply, simulator

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def hold(name, *, stream, echo="strip", turns=5, **options):
    """A conversation through a gateway; the simulator, with what it has seen."""
    sim = simulator(name, **options)
    gateway = InProcessGateway(SimWire(sim), POLICIES.get(name, name))
    with asyncio.Runner() as runner:

        def post(request):
            posting = gateway.post(request.path, request.body, request.headers, query=request.query)
            answer = runner.run(posting)
            return Reply(status=answer.status, headers=dict(answer.headers), chunks=(answer.body,))

        talker = client(
            sim.dialect,
            post,
            base=sim.base_path,
            model=sim.models()[0],
            stream=stream or name == "codex",
            echo=echo,
            **FIELDS.get(name, {}),
        )
        talker.talk(turns)
    return sim


def assert_exact(sim, name):
    audits = [record.audit for record in sim.requests]
    assert {record.reply.status for record in sim.requests} == {200}
    if name == "deepseek-r1":  # which wants none back
        assert all(one.exact == one.foreign == one.misplaced == 0 for one in audits)
    else:
        assert all(one.clean for one in audits), [str(one) for one in audits]
        assert audits[-1].exact > 0


@STREAMS
@pytest.mark.parametrize(("name", "oddity"), EVERY)
def test_every_odd_shape(name, oddity, stream):
    sim = hold(name, stream=stream, realistic=False, oddities=(oddity,))
    assert_exact(sim, name)


@STREAMS
@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_odd_shapes_together(name, stream):
    for seed, echo in enumerate(("strip", "keep", "respell")):
        if (name, echo) != ("claude-bound", "respell"):  # which is another prefix
            sim = hold(name, stream=stream, echo=echo, turns=7, realistic=True, seed=seed)
            assert_exact(sim, name)
