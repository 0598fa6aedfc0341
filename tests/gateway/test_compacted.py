"""Histories that a client compacts: a summary, and the last turns as they were."""

import pytest
from msgspec.structs import replace

from support.gateway import TurnClient, gateway_with
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn
from thoughtline.testing import simulator

PROVIDERS = (
    "kimi",
    "kimi-k3",
    "mistral",
    "gemini",
    "deepseek",
    "minimax",
    "mimo",
    "vllm",
    "openai",
)


def client_of(name, gateway, **headers):
    sim = simulator(name)
    return TurnClient(
        gateway, sim.dialect, sim.models()[0], keep=False, fields=FIELDS.get(name), headers=headers
    )


def identities(turn):
    return {str(thought.seals or thought.text) for thought in turn.thoughts}


def compacted(turns, kept):
    """A summary, answered by the model or not, and the last turns."""
    ack = Turn(input=(Text(text="Summary: much was done."),), output=(Text(text="I see."),))
    return [ack, *turns[-kept:]]


async def sent_after(client):
    """The thoughts of each output of the next request, and those of the client's own turns."""
    answer = await client.say(*client.next())
    assert answer.status == 200, answer.body
    request = client.dialect.read(client.gateway.wire.sent[-1].body)
    sent = [identities(turn) for turn in request.turns if turn.output]
    return sent, [identities(turn) for turn in client.turns[:-1]]


@pytest.mark.parametrize("kept", [2, 5, 8])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_kept_tail_is_recognised(name, kept):
    """By user message, calls and results together, also where ids repeat or are missing."""
    gateway = gateway_with(name, POLICIES.get(name, name), serials=False)
    client = client_of(name, gateway)
    await client.run(11)  # the last but one begins with a user's words
    client.turns[:] = compacted(client.turns, kept)
    sent, own = await sent_after(client)
    assert sent[-kept:] == own[-kept:]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_so_it_is_where_nobody_answers_the_summary(name):
    """Then it stands in front of the user's words, in one input with them."""
    gateway = gateway_with(name, POLICIES.get(name, name), serials=False)
    client = client_of(name, gateway)
    await client.run(11)
    summary, *tail = compacted(client.turns, 2)
    client.turns[:] = [replace(summary, output=()), *tail]
    sent, own = await sent_after(client)
    assert sent[-2:] == own[-2:]


@pytest.mark.parametrize("name", ["kimi", "gemini"])
async def test_two_tails_that_look_alike_are_a_tie(name):
    gateway = gateway_with(name, POLICIES.get(name, name), serials=False)
    mine, other = client_of(name, gateway), client_of(name, gateway)
    for client in (mine, other):
        await client.say(Text(text=f"Something else {id(client)}"))
        await client.run(10)
    mine.turns[:] = [*compacted(mine.turns, 2)]
    mine.turns[0] = replace(mine.turns[0], output=())
    sent, _ = await sent_after(mine)
    assert not set().union(*sent) & set().union(*(identities(turn) for turn in other.turns))


@pytest.mark.parametrize("name", ["glm", "mistral", "deepseek", "openai", "minimax"])
async def test_a_tail_without_the_users_words_is_known_by_random_call_ids(name):
    """A compaction in the middle of a tool loop keeps calls and results, behind a summary."""
    client = client_of(name, gateway_with(name, POLICIES.get(name, name)))
    await client.run(10)
    while not client.turns[-1].calls:
        await client.run(1)
    kept = client.turns[-1]
    client.turns[:] = [replace(kept, input=(Text(text="Summary: much was done."),))]
    sent, own = await sent_after(client)
    assert sent == own != [set()]
