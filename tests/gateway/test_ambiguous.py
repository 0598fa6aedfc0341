"""Bodies that say one thing twice: what may not be sent on is not sent on."""

import pytest

from rooms import Answer, Client, Rooms, ScriptedWire, with_sim
from thoughtline.turns import Turn

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
    client = Client(with_sim(name, policy), dialect, model, fields=THINKING.get(dialect))
    await client.run(2)
    client.turns.append(Turn(input=tuple(client.next())))
    body = client.body()
    assert body.count(key) == 1
    twice = body.replace(key, key + b"[]," + key)
    wire = ScriptedWire(Answer())
    elsewhere = Rooms(wire, other, store=client.rooms.store, url="http://elsewhere")
    answer = await elsewhere.post(client.path, twice)
    assert (answer.status, wire.sent) == (400, [])
    assert "write each key once" in answer.json["error"]["message"]
    assert (await elsewhere.post(client.path, body)).status == 200  # without the seal
    assert len(wire.sent) == 1
