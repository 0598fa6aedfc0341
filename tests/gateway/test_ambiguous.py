"""Bodies that say one thing twice: what may not be sent on is not sent on."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, TurnClient, gateway_with
from thoughtline.log.turns import Turn

HOMES = {
    "messages": ("claude", "anthropic", "claude-sonnet-4-5", "bedrock", b'"messages":'),
    "responses": ("openai", "openai", "gpt-5.6", "xai", b'"input":'),
}
THINKING = {
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
}


@pytest.mark.parametrize("dialect", HOMES)
async def test_a_foreign_seal_in_a_body_with_a_key_twice_is_refused(dialect):
    name, policy, model, other, key = HOMES[dialect]
    client = TurnClient(gateway_with(name, policy), dialect, model, fields=THINKING.get(dialect))
    await client.run(2)
    client.turns.append(Turn(input=tuple(client.next())))
    body = client.body()
    assert body.count(key) == 1
    twice = body.replace(key, key + b"[]," + key)
    wire = ScriptedWire(Answer())
    elsewhere = InProcessGateway(wire, other, store=client.gateway.store, url="http://elsewhere")
    answer = await elsewhere.post(client.path, twice)
    assert (answer.status, wire.sent) == (400, [])
    assert "write each key once" in answer.json["error"]["message"]
    assert (await elsewhere.post(client.path, body)).status == 200  # without the seal
    assert len(wire.sent) == 1


_BOUND = "messages.1.content.0: thinking block is bound to a different conversation"


@pytest.mark.parametrize("own", ["sig", "foreign"])
async def test_a_key_twice_where_blocks_are_to_be_dropped_is_no_fault(own):
    """Nothing can be set in such a body: it goes as it is, or not at all."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    reply = {"type": "message", "id": "m", "role": "assistant", "stop_reason": "end_turn"}
    content = [thought, {"type": "text", "text": "Well."}]
    fine = Answer(body={**reply, "model": "claude-sonnet-5-5", "content": content})
    refused = Answer(400, {"error": {"message": _BOUND}})
    gateway = InProcessGateway(ScriptedWire(fine, refused, fine), "anthropic")
    messages = [{"role": "user", "content": "Hi"}]
    body = {"model": "claude-sonnet-5-5", "thinking": {"type": "adaptive"}, "messages": messages}
    await gateway.post("/v1/messages", body)
    for _ in range(2):
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": "So?"}]
        assert (await gateway.post("/v1/messages", body)).status == 200
    assert gateway.wire.bodies[-1]["thinking"]["block_binding"]
    messages[1]["content"] = [{**thought, "signature": own}, content[1]]
    twice = json.dumps(body)[:-1] + ',"thinking":{"type":"adaptive"}}'
    answer = await gateway.post("/v1/messages", twice.encode())
    assert (answer.status, answer.body) == (200, fine.body)
    assert gateway.wire.sent[-1].body == twice.encode()
