"""Put back is half of it: the provider is told to read, and the model remembers.

The simulators ignore thoughts without their switch, and their model says how many it sees.
"""

import itertools
import json
import re

import pytest

from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire, TurnClient
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.testing import Fault, Reply, simulator
from thoughtline.testing.sims.script import remembering_script
from thoughtline.testing.sims.spelling import write

SWITCHED = [  # policy, simulator, model
    ("qwen", "qwen", "qwen3.6-plus"),
    ("qwen", "qwen", "qwen3.7-max"),
    ("qwen", "qwen", "qwen3.8-max"),
    ("kimi", "kimi", "kimi-k2.6"),
    ("glm", "glm", "glm-5.2"),
    ("glm", "glm", "glm-4.7"),
    ("fireworks", "fireworks", "accounts/fireworks/models/glm-5p2"),
    ("baseten", "baseten", "zai-org/GLM-5.2"),
    ("vllm", "vllm", "zai-org/GLM-4.7"),
    ("vllm", "vllm", "Qwen/Qwen3.6-35B-A3B"),
    ("sglang", "vllm", "zai-org/GLM-4.7"),
    ("llamacpp", "vllm", "Qwen/Qwen3.6-35B-A3B"),
    ("lmstudio", "vllm", "Qwen/Qwen3.6-35B-A3B"),
    ("glm", "glm-anthropic", "glm-5.2"),
]
TURNS = 10


def switched(name, **more):
    return simulator(name, script=remembering_script, **more)


async def talk(policy, sim, model, turns=TURNS, **more):
    """A client that strips its history, through a gateway."""
    gateway = InProcessGateway(SimWire(sim), policy)
    if sim.dialect == "messages":
        more = {"thinking": {"type": "enabled"}, **more}
    talker = talker_of(sim.dialect, sim, model=model, echo="strip", **more)
    for _ in range(turns):
        head = {"authorization": f"Bearer {talker.key}", **talker.headers}
        answer = await gateway.post(talker.path, write(talker.request()), head)
        assert answer.status == 200, answer.body
        talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))
    return gateway


def remembered(body):
    """What the model says of it, in the last answer."""
    return int(re.findall(r"I remember (\d+) of my thoughts", body.decode())[-1])


def bodies(gateway):
    return [request.body for request in gateway.wire.sent]


@pytest.mark.parametrize(("policy", "name", "model"), SWITCHED)
async def test_the_model_reads_every_thought(policy, name, model):
    sim = switched(name)
    gateway = await talk(policy, sim, model)
    assert [len(record.read) for record in sim.requests] == list(range(TURNS))
    assert [record.audit.exact for record in sim.requests] == list(range(TURNS))
    assert remembered(sim.requests[-1].reply.body) == TURNS - 1
    assert len(gateway.wire.sent) == TURNS


@pytest.mark.parametrize(("policy", "name", "model"), SWITCHED)
async def test_without_the_switch_it_comes_back_and_is_not_read(policy, name, model):
    sim = switched(name)
    await talk("generic", sim, model)
    last = sim.requests[-1]
    if model != "qwen3.8-max":  # it preserves by itself
        assert last.audit.exact == TURNS - 1
        assert remembered(last.reply.body) < TURNS - 1


@pytest.mark.parametrize(("policy", "name", "model"), SWITCHED)
async def test_the_switch_is_there_from_the_first_request_on_in_the_same_bytes(policy, name, model):
    sim = switched(name)
    sent = bodies(await talk(policy, sim, model))
    around = [re.sub(rb'"messages":\[.*\](?=[,}])', b"", body, flags=re.DOTALL) for body in sent]
    assert len(set(around)) == 1
    history = [json.loads(body)["messages"] for body in sent]
    for before, after in itertools.pairwise(history):
        assert after[: len(before)] == before


@pytest.mark.parametrize(
    ("policy", "name", "model", "own"),
    [
        ("qwen", "qwen", "qwen3.6-plus", {"preserve_thinking": False}),
        ("kimi", "kimi", "kimi-k2.6", {"thinking": {"type": "enabled", "keep": None}}),
        ("glm", "glm", "glm-5.2", {"thinking": {"type": "enabled", "clear_thinking": True}}),
        ("fireworks", "fireworks", "accounts/fireworks/models/glm-5p2", {"reasoning_history": "disabled"}),
        ("vllm", "vllm", "zai-org/GLM-4.7", {"chat_template_kwargs": {"clear_thinking": True}}),
    ],
)  # fmt: skip
async def test_what_the_client_has_said_is_left_alone(policy, name, model, own):
    sim = switched(name)
    gateway = await talk(policy, sim, model, turns=4, **own)
    for body in bodies(gateway):
        sent = json.loads(body)
        assert {key: sent[key] for key in own} == own


async def test_a_client_that_switches_thinking_off_is_not_told_otherwise():
    sim = switched("glm")
    gateway = await talk("glm", sim, "glm-5.2", turns=2, thinking={"type": "disabled"})
    assert all(json.loads(b)["thinking"] == {"type": "disabled"} for b in bodies(gateway))


REFUSALS = [
    ("qwen", "qwen", "qwen3.6-plus", "Unrecognized request argument supplied: preserve_thinking"),
    ("kimi", "kimi", "kimi-k2.6", "thinking.keep: Extra inputs are not permitted"),
    ("glm", "glm", "glm-5.2", "unknown field `clear_thinking`, expected `type`"),
    ("fireworks", "fireworks", "accounts/fireworks/models/glm-5p2", "Extra inputs are not permitted, field: 'reasoning_history'"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "name", "model", "words"), REFUSALS)
async def test_a_switch_that_an_endpoint_refuses_is_taken_out_and_remembered(
    policy, name, model, words
):
    sim = switched(name)
    sim.fail_next(Fault("status", 400, words))
    gateway = await talk(policy, sim, model, turns=4)
    first, *others = [json.loads(body) for body in bodies(gateway)]
    assert len(others) == 4  # one was corrected
    names = {"thinking", "preserve_thinking", "reasoning_history"}
    assert names & first.keys()
    for body in others:
        assert not names & body.keys()
    learned = [fact.quirk.refused_asks for fact in await gateway.facts("endpoint_learned")]
    assert len(learned) == 1
    assert learned[0]


CLIENTS = ["chat", "responses", "messages", "gemini"]


@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize(
    ("policy", "name", "model"), [row for row in SWITCHED if "anthropic" not in row[1]]
)
async def test_each_client_dialect_that_reaches_it(policy, name, model, dialect):  # fmt: skip
    sim = switched(name)
    gateway = InProcessGateway(SimWire(sim), policy)
    base = f"http://sim{sim.base_path}"
    there = Upstream(name="up", base_url=base, policy=policy, dialects=(sim.dialect,))
    gateway.proxy.directory = Directory([there])
    await TurnClient(gateway, dialect, model, keep=False).run(TURNS)
    assert [len(record.read) for record in sim.requests] == list(range(TURNS))
