"""What a client says in the place of a model is not missed."""

import pytest

from support.gateway import TurnClient, gateway_with
from thoughtline.log.parts import Call, Text
from thoughtline.log.turns import Turn
from thoughtline.replay.client_words import is_clients_own

WORDS = "Got it. Thanks for the context!"


@pytest.mark.parametrize("name", ["deepseek", "kimi-k3", "openrouter"])
async def test_a_made_up_answer_is_not_missed_in_any_request(name):
    gateway = gateway_with(name, name.partition("-")[0])
    client = TurnClient(gateway, "chat", gateway.wire.sim.models()[0], keep=False)
    context = Turn(input=(Text(text="This is a project."),), output=(Text(text=WORDS),))
    client.turns.append(context)
    for _ in range(3):
        answer = await client.say(*client.next())
        assert "missed=0" in answer.header("x-thoughtline-replay")
    assert "restored=2" in answer.header("x-thoughtline-replay")


def test_a_call_beside_it_is_a_models():
    call = Call(id="c", name="ls", arguments="{}")
    assert is_clients_own(Turn(output=(Text(text=f" {WORDS}\n"),)))
    assert not is_clients_own(Turn(output=(Text(text=WORDS), call)))
    assert not is_clients_own(Turn(output=(Text(text=f"{WORDS} So."),)))
