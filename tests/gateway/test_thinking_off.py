"""Thinking that is switched off because a demanded thought is lost: told everywhere, or not done.

Claude with thinking on wants the thinking block of a running tool loop. Where nobody knows it, the
request goes out with thinking off for that one exchange, or as it is, or not at all: the upstream's
`lost_thought` says which.
"""

import json

import pytest

from support.gateway import InProcessGateway, SimWire, TurnClient, recovered, statuses
from thoughtline.cli.conversation import stripped
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.gateway.failed_requests import failed_requests
from thoughtline.log.parts import Result
from thoughtline.replay.guard import LostThought
from thoughtline.testing import simulator

THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
STRICT = {"x-thoughtline-replay": "strict"}


def gateway_for(lost, policy="anthropic"):
    gateway = InProcessGateway(SimWire(simulator("claude")), policy)
    upstream = Upstream(name="up", base_url="http://sim", policy=policy, lost_thought=lost)
    gateway.proxy.directory = Directory([upstream])
    return gateway


async def unknown_loop(lost, policy="anthropic", **more):
    """A tool loop that began before the gateway was there, and lost its thoughts."""
    client = TurnClient(gateway_for(lost, policy), "messages", "claude-sonnet-4-5", **more)
    client.fields = THINKING
    await client.run(2, direct=True)
    client.keep = False
    assert client.turns[-1].calls
    results = [
        Result(call=call.id, name=call.name, content="ok") for call in client.turns[-1].calls
    ]
    return client, await client.say(*results)


def thinking(client):
    return json.loads(client.gateway.wire.sent[-1].body)["thinking"]


async def test_it_is_told_in_the_header_and_in_the_log():
    client, answer = await unknown_loop(LostThought.THINKING_OFF)
    assert answer.status == 200
    assert thinking(client) == {"type": "disabled"}
    replay = answer.header("x-thoughtline-replay")
    assert replay.endswith("; thinking=off")
    assert "missed=2" in replay
    [started] = await client.gateway.facts("turn_started")
    assert started.thinking_off
    assert {one.reason for one in started.replay} == {"unknown"}


async def test_blocks_that_stay_behind_say_why():
    """The first output is lost, the second is known; both are of one running loop."""
    client = TurnClient(gateway_for(LostThought.THINKING_OFF), "messages", "claude-sonnet-4-5")
    client.fields = THINKING
    await client.run(1, direct=True)
    await client.run(1)
    client.turns[0] = stripped(client.turns[0])
    answer = await client.say(*client.next())
    assert answer.status == 200
    started = (await client.gateway.facts("turn_started"))[-1]
    assert started.thinking_off
    assert [(one.action, one.reason) for one in started.replay] == [
        ("absent", "unknown"),
        ("dropped", "thinking off"),
    ]
    assert b"signature" not in client.gateway.wire.sent[-1].body
    assert "missed=1" in answer.header("x-thoughtline-replay")
    assert "dropped=1" in answer.header("x-thoughtline-replay")


async def test_a_request_that_lacks_nothing_says_nothing_of_it():
    client = TurnClient(gateway_for(LostThought.THINKING_OFF), "messages", "claude-sonnet-4-5")
    client.fields, client.keep = THINKING, False
    await client.run(3)
    answer = await client.say(*client.next())
    assert "thinking" not in answer.header("x-thoughtline-replay")
    assert not any(one.thinking_off for one in await client.gateway.facts("turn_started"))


@pytest.mark.parametrize("policy", ["anthropic", "generic"])
async def test_forward_gives_the_providers_own_refusal(policy):
    client, answer = await unknown_loop(LostThought.FORWARD, policy)
    assert answer.status == 400
    assert "Expected `thinking` or `redacted_thinking`" in answer.json["error"]["message"]
    assert statuses(client.gateway) == [400]
    [sent] = client.gateway.wire.sent
    assert json.loads(sent.body)["thinking"] == THINKING["thinking"]
    assert not recovered(client.gateway)


async def test_error_answers_before_anything_is_sent():
    client, answer = await unknown_loop(LostThought.ERROR)
    assert answer.status == 409
    assert "thought_missing" in answer.body.decode()
    assert "lost_thought" in answer.body.decode()
    assert client.gateway.wire.sent == []
    assert answer.header("x-thoughtline-replay").endswith("; tied=0; refused=thought_missing")
    await client.gateway.proxy.failed.settled()
    [(_, failed)] = await failed_requests(client.gateway.store)
    assert not failed.thinking_off


async def test_so_does_strict_mode():
    client, answer = await unknown_loop(LostThought.THINKING_OFF, headers=STRICT)
    assert answer.status == 409
    said = "strict replay: the thoughts of the running tool loop are not known"
    assert said in answer.json["error"]["message"]
    assert answer.header("x-thoughtline-replay").endswith("; tied=0; refused=thought_missing")
    assert client.gateway.wire.sent == []


async def test_error_hands_a_refusal_on_where_the_row_did_not_foresee_it():
    client, answer = await unknown_loop(LostThought.ERROR, "generic")
    assert answer.status == 400
    assert statuses(client.gateway) == [400]


async def test_what_is_known_is_put_back_all_the_same():
    client = TurnClient(gateway_for(LostThought.FORWARD), "messages", "claude-sonnet-4-5")
    client.fields, client.keep = THINKING, False
    await client.run(4)
    assert set(statuses(client.gateway)) == {200}
