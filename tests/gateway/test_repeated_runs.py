"""The same conversation once more, word for word; answers that were lost and asked for again.

The simulated providers say the same to everybody, and only their thoughts differ. Each client knows
the thoughts of its own answers: what goes upstream must be those, or nothing.
"""

import pytest
from msgspec.structs import replace

from support.gateway import TurnClient, gateway_with, statuses
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.sqlite.store import SqliteStore
from thoughtline.testing import simulator

PROVIDERS = (
    "kimi",
    "kimi-k3",
    "gemini",
    "deepseek",
    "minimax",
    "mistral",
    "mimo",
    "vllm",
    "glm",
    "openai",
    "claude",
    "deepseek-anthropic",
)


class Runs:
    """Clients of one tenant that talk with one simulated provider."""

    def __init__(self, name, store=None):
        sim = simulator(name)
        self.dialect, self.model = sim.dialect, sim.models()[0]
        self.fields = FIELDS.get(name)
        self.gateway = gateway_with(name, POLICIES.get(name, name), serials=False, store=store)

    def client(self, **headers):
        return TurnClient(
            self.gateway, self.dialect, self.model, keep=False, fields=self.fields, headers=headers
        )

    def sent(self):
        """The thoughts of each output as they went upstream."""
        request = self.client().dialect.read(self.gateway.wire.sent[-1].body)
        return [thoughts(turn) for turn in request.turns if turn.output]


def thoughts(turn):
    """What tells the thoughts of an output from all others."""
    return list(dict.fromkeys(str(thought.seals or thought.text) for thought in turn.thoughts))


def own(client):
    """The thoughts that a client's earlier answers came with."""
    return [thoughts(turn) for turn in client.turns[:-1] if turn.output]


def header(answer):
    pairs = [pair.split("=") for pair in answer.header("x-thoughtline-replay").split("; ")]
    return {name: int(count) for name, count in pairs if count.isdigit()}


async def talk(runs, client, exchanges=6):
    """Talk on; each request carries the client's own thoughts, or what the provider asks of them."""
    for _ in range(exchanges):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
        assert runs.sent() == own(client), (len(client.turns), header(answer))
        assert header(answer)["tied"] == 0


@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_same_conversation_once_more_keeps_its_thoughts(name):
    runs = Runs(name)
    for _ in range(3):
        await talk(runs, runs.client())
    assert set(statuses(runs.gateway)) == {200}
    assert len(await runs.gateway.store.sessions()) == 3


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("runs_before", [0, 1])
async def test_an_answer_that_was_lost_and_asked_for_again(name, runs_before):
    runs = Runs(name)
    for _ in range(runs_before):
        await talk(runs, runs.client(), 8)
    client = runs.client()
    await talk(runs, client, 1)
    for _ in range(4):
        await talk(runs, client, 1)
        lost = client.turns.pop()
        answer = await client.say(*lost.input)  # the same request once more
        assert answer.status == 200, answer.body
        assert runs.sent() == own(client)
    await talk(runs, client, 2)
    assert len(await runs.gateway.store.sessions()) == runs_before + 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_first_answer_that_was_lost_is_known_by_the_hint(name):
    runs = Runs(name)
    client = runs.client(**{"x-thoughtline-session": "mine"})
    await talk(runs, client, 1)
    client.turns.clear()
    await talk(runs, client, 4)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_two_that_nobody_can_tell_apart_get_nothing(name):
    """Both began, and neither went on: whose answer is meant cannot be known, and is told so."""
    runs = Runs(name)
    one, two = runs.client(), runs.client()
    for _ in range(4):
        for client in (one, two):
            answer = await client.say(*client.next())
            if answer.status != 200:
                continue
            for mine, sent in zip(own(client), runs.sent(), strict=True):
                assert sent == mine or not set(sent) & every_thought(one, two), header(answer)
    counts = header(answer)
    assert counts["tied"] or runs.sent() == own(two)


def every_thought(*clients):
    return {raw for client in clients for turn in client.turns for raw in thoughts(turn)}


async def test_a_tie_is_counted():
    runs = Runs("kimi")
    one, two = runs.client(), runs.client()
    await one.say(*one.next())
    await two.say(*two.next())
    counts = header(await one.say(*one.next()))
    assert (counts["tied"], counts["missed"], counts["restored"]) == (1, 0, 0)


@pytest.mark.parametrize("name", ["kimi", "deepseek", "gemini"])
async def test_a_regenerated_answer_keeps_the_thoughts_before_it(name):
    runs = Runs(name)
    await talk(runs, runs.client())
    client = runs.client()
    await talk(runs, client, 4)
    for _ in range(2):
        last = client.turns.pop()
        client.turns.append(Turn(input=last.input))
        client.turns.pop()
        await client.say(*last.input)
        assert runs.sent() == own(client)
    await talk(runs, client, 2)


@pytest.mark.parametrize("name", ["kimi", "gemini", "openai"])
async def test_runs_are_told_apart_after_a_restart(name, tmp_path):
    """What was continued is read from the file, by whichever process asks."""
    turns = []
    for exchanges in (4, 1, 3):  # a run, then another one that is interrupted
        store = CachedStore(SqliteStore(tmp_path / "log.db"))
        runs = Runs(name, store)
        client = runs.client()
        runs.gateway.wire.sim._count = 100 * exchanges  # no thought is like one before
        if exchanges == 3:
            client.turns[:] = turns
        await talk(runs, client, exchanges)
        turns = client.turns
        await store.close()


@pytest.mark.parametrize("name", ["kimi", "deepseek", "minimax", "glm"])
async def test_which_turn_is_open_says_nothing_about_older_outputs(name):
    """A client alters its last answer, so that it is not found: the one before is not the last."""
    runs = Runs(name)
    one, two = runs.client(), runs.client()
    await talk(runs, one, 2)
    await two.say(*two.next())  # looks like the first answer of the other, and is open
    one.turns[-1] = replace(one.turns[-1], output=(Text(text="I did something else."),))
    answer = await one.say(Text(text="And now?"))
    assert answer.status == 200, answer.body
    assert not set(runs.sent()[0]) & every_thought(two), header(answer)
