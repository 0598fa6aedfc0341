"""Anthropic's API version is the client's, and a key is one key in either header."""

import json

import pytest

from support.gateway import InProcessGateway, SimWire, recovered
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.testing import simulator

KEY = "sk-ant-api03-secret"
BEARER, OWN = {"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}
THINKING = {"type": "enabled", "budget_tokens": 2000}


def gateway_of(key=""):
    sim = simulator("claude")
    gateway = InProcessGateway(SimWire(sim), "anthropic")
    there = Upstream(name="up", base_url="http://sim", policy="anthropic", key=key)
    gateway.proxy.directory = Directory([there])
    return gateway


async def say(gateway, history, credential, version="2023-06-01", **more):
    """One exchange past the defaults of the client: with these headers and no others."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 4000, "thinking": THINKING, **more}
    head = {"content-type": "application/json", "anthropic-version": version, **credential}
    raw = json.dumps({**body, "messages": history}).encode()
    return await gateway._ask("POST", "/v1/messages", raw, head)


def echo(answer):
    said = [block for block in answer.json["content"] if block["type"] == "text"]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": "And then?"}]


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", "2031-01-01"])
async def test_the_clients_version_passes_unchanged(version):
    gateway = gateway_of()
    answer = await say(gateway, [{"role": "user", "content": "hi"}], OWN, version)
    assert answer.status == 200, answer.body
    assert dict(gateway.wire.sent[0].headers)["anthropic-version"] == version


@pytest.mark.parametrize("more", [{"temperature": 1}, {"top_k": 5}, {"temperature": 1, "top_k": 5}])
async def test_what_the_newer_version_refuses_goes_once_without_it(more):
    gateway = gateway_of()
    history = [{"role": "user", "content": "hi"}]
    for _ in range(2):
        answer = await say(gateway, history, OWN, "2026-10-21", **more)
        assert answer.status == 200, answer.body
    assert recovered(gateway) == ["drop_sampling"] * 2  # of the version, and not of the endpoint
    answer = await say(gateway, history, OWN, "2023-06-01", **more)
    assert more.items() <= gateway.wire.bodies[-1].items()


@pytest.mark.parametrize(("first", "then"), [(OWN, BEARER), (BEARER, OWN), (BEARER, BEARER | OWN)])
async def test_a_key_is_known_by_its_value(first, then):
    gateway = gateway_of()
    history = [{"role": "user", "content": "hi"}]
    history += echo(await say(gateway, history, first))
    answer = await say(gateway, history, then)
    assert "restored=1" in answer.header("x-thoughtline-replay")


@pytest.mark.parametrize("shown", [OWN, BEARER, BEARER | OWN, {**OWN, "api-key": KEY}])
async def test_where_the_gateway_has_a_key_no_other_goes_out(shown):
    gateway = gateway_of(key="sk-ant-api03-ours")
    answer = await say(gateway, [{"role": "user", "content": "hi"}], shown)
    assert answer.status == 200
    sent = gateway.wire.sent[0].headers
    assert [pair for pair in sent if "sk-ant" in pair[1]] == [("x-api-key", "sk-ant-api03-ours")]
