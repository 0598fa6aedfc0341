"""Clients that send parallel calls, and their results, in another order than they came."""

import pytest
from msgspec.structs import replace

from support.gateway import TurnClient, gateway_with
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.log.parts import Call, Result
from thoughtline.testing import simulator

PROVIDERS = (
    "kimi",
    "deepseek",
    "mistral",
    "openai",
    "xai",
    "claude",
    "deepseek-anthropic",
    "gemini",
)


def reordered(turn):
    """The calls of an output, and the results of an input, backwards; the rest stays in place."""
    return replace(turn, input=_backwards(turn.input, Result), output=_backwards(turn.output, Call))


def _backwards(parts, kind):
    left = [part for part in parts if isinstance(part, kind)]
    return tuple(left.pop() if isinstance(part, kind) else part for part in parts)


def identities(turn):
    return {str(thought.seals or thought.text) for thought in turn.thoughts}


@pytest.mark.parametrize("serials", [True, False])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_every_thought_is_found_all_the_same(name, serials):
    sim = simulator(name)
    gateway = gateway_with(name, POLICIES.get(name, name), serials=serials)
    client = TurnClient(gateway, sim.dialect, sim.models()[0], keep=False, fields=FIELDS.get(name))
    own = []
    for _ in range(8):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
        request = client.dialect.read(gateway.wire.sent[-1].body)
        sent = [identities(turn) for turn in request.turns if turn.output]
        assert sent == own, answer.header("x-thoughtline-replay")
        own.append(identities(client.turns[-1]))
        client.turns[:] = [reordered(turn) for turn in client.turns[:-1]] + client.turns[-1:]
        client.turns[-1] = replace(
            client.turns[-1], output=_backwards(client.turns[-1].output, Call)
        )
    assert len(await gateway.store.sessions()) == 1
