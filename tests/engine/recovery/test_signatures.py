"""One controlled retry: Gemini's thought signatures, in its own API and behind Chat Completions."""

import json

import pytest

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    TurnClient,
    gateway_with,
    recovered,
    statuses,
)
from thoughtline.testing import simulator

DOORS = [("gemini", "gemini"), ("gemini-vertex", "gemini"), ("gemini-compat", "chat")]
SKIP = "skip_thought_signature_validator"


@pytest.mark.parametrize(("name", "dialect"), DOORS)
async def test_a_lost_signature_is_bypassed_where_it_is_missed(name, dialect):
    """An endpoint that nobody knows, and a loop that began without us."""
    gateway = gateway_with(name)
    client = await TurnClient(gateway, dialect, gateway.wire.sim.models()[0]).run(1, direct=True)
    client.keep = False
    for _ in range(2):
        assert (await client.say(*client.next())).status == 200
        client.turns.pop()
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["sign_or_bypass"])
    assert gateway.wire.sent[1].body.count(SKIP.encode()) == 1  # on the first of parallel calls
    [quirks] = await gateway.facts("endpoint_learned")
    assert (quirks.quirk.need, quirks.quirk.scope) == ("required", "first_call")


async def test_a_found_signature_is_not_bypassed():
    """The row forbids thoughts; the provider does not."""
    gateway = gateway_with("gemini-compat", "openai")
    await TurnClient(gateway, "chat", gateway.wire.sim.models()[0], keep=False).run(4)
    assert statuses(gateway).count(400) == 1
    assert SKIP not in "".join(request.body.decode() for request in gateway.wire.sent)


async def test_the_value_in_its_other_spelling_where_the_first_is_not_taken():
    text = "Function call is missing a thought_signature in functionCall parts."
    refused = Answer(400, {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}})
    wire = ScriptedWire(refused)
    gateway = InProcessGateway(wire, "gemini")
    call = {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {}}}]}
    told = {"functionResponse": {"name": "run", "response": {"result": "ok"}}}
    asked = {"role": "user", "parts": [{"text": "go"}]}
    body = {"contents": [asked, call, {"role": "user", "parts": [told]}]}
    for _ in range(2):
        await gateway.post("/v1beta/models/gemini-3-pro:generateContent", body)
    signed = [b["contents"][1]["parts"][0]["thoughtSignature"] for b in wire.bodies]
    assert signed[:2] == [SKIP, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="]
    assert len(signed) == 3  # then there is nothing left to try


@pytest.mark.parametrize("policy", ["gemini", "generic"])
@pytest.mark.parametrize(("name", "dialect"), DOORS)
async def test_old_signatures_go_and_running_steps_are_signed_anew(name, dialect, policy):
    """The server has new keys: everything it signed before is lost."""
    gateway = gateway_with(name, policy)
    client = await TurnClient(gateway, dialect, gateway.wire.sim.models()[0], keep=False).run(1)
    gateway.wire.sim = simulator(name, seed=1)
    await client.run(4)
    assert recovered(gateway) == ["resign"]
    assert statuses(gateway) == [200, 400, 200, 200, 200, 200]
    assert gateway.wire.sent[2].body.count(SKIP.encode()) == 1
    refusals = await gateway.facts("quarantined")
    assert {r.reason for r in refusals} == {"resign"}


async def test_models_that_do_not_insist_get_no_bypass():
    gateway = gateway_with("gemini", "gemini")
    client = await TurnClient(gateway, "gemini", "gemini-2.5-pro", keep=False).run(1)
    gateway.wire.sim = simulator("gemini", seed=1)
    await client.run(3)
    assert (recovered(gateway), statuses(gateway)) == (["resign"], [200, 400, 200, 200, 200])
    assert SKIP not in "".join(request.body.decode() for request in gateway.wire.sent)


async def test_a_client_s_own_spoilt_signatures_are_remembered():
    gateway = gateway_with("gemini", "gemini")
    foreign = gateway_with("gemini", "gemini", seed=9)
    client = await TurnClient(foreign, "gemini", foreign.wire.sim.models()[0]).run(2, direct=True)
    client.gateway = gateway
    await client.run(3)
    assert recovered(gateway) == ["resign"]
    assert statuses(gateway) == [400, 200, 200, 200]


async def test_gemini_behind_a_router_is_signed_in_the_router_s_way():
    text = "Function call is missing a thought_signature in functionCall parts."
    inner = json.dumps({"error": {"message": text}})
    error = {"error": {"message": "Provider returned error", "metadata": {"raw": inner}}}
    said = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
    wire = ScriptedWire(Answer(400, error), Answer(200, said))
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    body = {"model": "google/gemini-3-pro", "messages": messages}
    assert (
        await InProcessGateway(wire, "openrouter").post("/v1/chat/completions", body)
    ).status == 200
    [detail] = wire.bodies[1]["messages"][1]["reasoning_details"]
    assert (detail["type"], detail["data"]) == ("reasoning.encrypted", SKIP)
