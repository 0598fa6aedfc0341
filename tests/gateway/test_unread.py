"""What a provider kept from the model is counted and said, though the request was not refused."""

import json

import pytest

from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire
from thoughtline.inspector.views import decision_shape
from thoughtline.log.sessions import Session
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.script import remembering_script
from thoughtline.testing.sims.spelling import write


async def ask(gateway, talker, **changes):
    head = {"authorization": f"Bearer {talker.key}", **talker.headers}
    answer = await gateway.post(talker.path, write({**talker.request(), **changes}), head)
    assert answer.status == 200, answer.body
    talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))
    return answer.header("x-thoughtline-replay")


async def logged(gateway):
    (summary,) = await gateway.store.sessions(limit=10)
    return Session(summary.session).extend(await gateway.store.read(summary.session)).turns


@pytest.mark.parametrize("stream", [False, True])
async def test_openai_withholds_what_was_thought_for_another_end_user(stream):
    sim = simulator("openai", script=remembering_script)
    gateway = InProcessGateway(SimWire(sim), "openai")
    talker = talker_of("responses", sim, echo="strip", stream=stream, store=False)
    first = [await ask(gateway, talker, safety_identifier="ann") for _ in range(3)]
    assert not any("unread" in said for said in first)
    said = await ask(gateway, talker, safety_identifier="bob")
    assert "restored=3" in said and "unread" not in said
    assert sim.requests[-1].read == ()
    said = await ask(gateway, talker, safety_identifier="ann")
    turns = await logged(gateway)
    told = turns[3].unread
    assert said.endswith(f"; unread={len(told)}")
    assert len(told) == sum(len(turn.thoughts) for turn in turns[:3])
    assert {one.kind for one in told} == {"end_user"}
    assert list(dict.fromkeys(one.turn for one in told)) == [turn.id for turn in turns[:3]]
    shown = [decision_shape(one, turns[3]).unread for one in turns[3].replay]
    assert shown == ["end_user"] * 3
    assert [turn.unread for turn in turns[:3]] == [()] * 3


async def test_claude_drops_what_another_model_thought():
    sim = simulator("claude-bound", script=remembering_script)
    gateway = InProcessGateway(SimWire(sim), "anthropic")
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    talker = talker_of(
        "messages", sim, model="claude-opus-5", headers=beta, thinking={"type": "adaptive"}
    )
    for _ in range(2):
        assert "unread" not in await ask(gateway, talker)
    talker.model = "claude-sonnet-5-5"
    await ask(gateway, talker)
    dropped = json.loads(sim.requests[-1].reply.body)["input_transformations"]
    if dropped:  # the gateway leaves them to the client: it brings them itself
        assert (await ask(gateway, talker)).endswith(f"; unread={len(dropped)}")
        turns = await logged(gateway)
        assert {one.kind for one in turns[2].unread} == {"model"}
        assert {one.turn for one in turns[2].unread} <= {turn.id for turn in turns[:2]}
