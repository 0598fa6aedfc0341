"""Nothing crosses, whatever look-alike conversations do: a random search over their schedules.

Conversations of several tenants and endpoints say the same to simulated providers that answer all
of them with the same words; only the thoughts differ. They are run again, interleaved, altered,
forked, retried, regenerated and compacted. A thought that goes upstream is the conversation's own. Where a
client asks again or forks, it may be one that was made for the very same visible conversation, by
the same tenant, account and endpoint: nobody can tell such two apart.
"""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from support.gateway import InProcessGateway, SimWire, TurnClient
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.log import keys
from thoughtline.log.parts import Call, Result, Text
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

PROVIDERS = ("kimi", "deepseek", "mistral", "minimax", "openai", "claude", "gemini")
HOMES = (("one", "a"), ("one", "a"), ("one", "a"), ("one", "b"), ("two", "a"))
"""Credential and endpoint of each conversation: three of them nobody can tell apart."""
PLAIN = ("say", "say", "say", "run again", "alter the answer")
ALL = (*PLAIN, "lose the answer", "regenerate", "fork", "compact", "cut the head", "reorder calls")
HINTS = (None, None, "x-thoughtline-session")


def schedules(actions):
    step = st.tuples(st.integers(0, len(HOMES) - 1), st.sampled_from(actions))
    return st.lists(step, min_size=4, max_size=20)


class Emitted(Struct, frozen=True):
    """Where a thought was made, and for which visible conversation."""

    home: tuple[str, str]
    key: bytes


class Conversation:
    """A client with the thoughts of its own answers."""

    def __init__(self, world, home, hint=None):
        self.world, self.home = world, home
        headers = {"authorization": f"Bearer {home[0]}"}
        if hint:
            world.named += 1
            headers[hint] = f"conversation-{world.named}"
        self.client = TurnClient(
            world.gateways[home[1]],
            world.dialect,
            world.model,
            keep=False,
            fields=world.fields,
            headers=headers,
        )
        self.keys = []  # of its turns, when they were made

    @property
    def turns(self):
        return self.client.turns

    async def say(self, parts=None):
        answer = await self.client.say(*(parts or self.client.next()))
        if answer.status != 200:
            return  # a provider that refuses a history without thoughts
        self.check()
        made = keys.rolling_keys(self.turns)[0][-1].full
        self.keys.append(made)
        for thought in identities(self.turns[-1]):
            self.world.emitted.setdefault(thought, Emitted(self.home, made))

    def check(self):
        wire = self.client.gateway.wire
        sent = self.client.dialect.read(wire.sent[-1].body)
        outputs = [turn for turn in sent.turns if turn.output]
        own = [turn for turn in self.turns[:-1] if turn.output]
        for turn, mine, key in zip(outputs, own, self.keys, strict=True):
            for thought in identities(turn) - identities(mine):
                emitted = self.world.emitted.get(thought)
                if emitted is not None:  # and not a placeholder
                    assert self.world.retried, f"{thought} is of another conversation"
                    assert (emitted.home, emitted.key) == (self.home, key)

    async def act(self, action):
        turns, made = self.turns, self.keys
        if action in ("lose the answer", "regenerate") and turns:
            self.world.retried = True
            last = turns.pop()
            made.pop()
            await self.say(last.input)
        elif action == "fork" and turns:
            self.world.retried = True
            twin = Conversation(self.world, self.home)
            cut = len(turns) // 2
            twin.turns[:], twin.keys[:] = turns[:cut], made[:cut]
            self.world.clients.append(twin)
            await twin.say()
        elif action == "compact" and len(turns) > 2:
            kept = turns[-2:]
            summary = Text(text=f"Summary of {len(turns)} turns.")
            turns[:] = [replace(kept[0], input=(summary, *words(kept[0]))), *kept[1:]]
            made[:] = made[-2:]
            await self.say()
        elif action == "cut the head" and len(turns) > 2 and words(turns[-2]):
            turns[:], made[:] = turns[-2:], made[-2:]
            await self.say()
        elif action == "reorder calls" and turns:
            turns[:] = [
                replace(turn, input=backwards(turn.input), output=backwards(turn.output))
                for turn in turns
            ]
            await self.say()
        elif action == "alter the answer" and turns:
            turns[-1] = replace(turns[-1], output=(Text(text="Something else was said."),))
            await self.say()
        elif action == "run again":
            turns.clear()
            made.clear()
            await self.say()
        else:
            await self.say()


class World:
    """Endpoints that answer alike, one store, and conversations."""

    def __init__(self, name):
        store = MemoryStore()
        self.sim = simulator(name, serials=False)
        self.dialect, self.model = self.sim.dialect, self.sim.models()[0]
        self.fields = FIELDS.get(name)
        self.gateways = {
            endpoint: InProcessGateway(
                SimWire(self.sim), POLICIES.get(name, name), store=store, url=f"http://{endpoint}"
            )
            for endpoint in "ab"
        }
        self.emitted = {}
        self.retried = False
        self.named = 0
        self.clients = []

    async def live(self, steps, hints):
        self.clients += [
            Conversation(self, home, hint) for home, hint in zip(HOMES, hints, strict=True)
        ]
        for which, action in steps:
            await self.clients[which].act(action)


def identities(turn):
    """What tells the thoughts of an output from all others."""
    return {str(thought.seals or thought.text) for thought in turn.thoughts}


def backwards(parts):
    """Calls and results in the opposite order, each at the places of its kind."""
    left = {kind: [part for part in parts if isinstance(part, kind)] for kind in (Call, Result)}
    return tuple(left[type(part)].pop() if type(part) in left else part for part in parts)


def words(turn):
    return tuple(part for part in turn.input if isinstance(part, Text))


_hints = st.lists(st.sampled_from(HINTS), min_size=len(HOMES), max_size=len(HOMES))


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=30)
@given(steps=schedules(PLAIN), hints=_hints)
def test_a_conversation_gets_its_own_thoughts_or_none(name, steps, hints):
    """However their turns are interleaved and repeated."""
    asyncio.run(World(name).live(steps, hints))


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=60)
@given(steps=schedules(ALL), hints=_hints)
def test_altered_histories_get_nothing_of_another_conversation(name, steps, hints):
    asyncio.run(World(name).live(steps, hints))


# -- where one of them is not in the log -----------------------------------------------------------


async def live_apart(name, length, changed, *, deleted):
    """Two conversations with the same moves and one other user message; one is not in the log.

    Returns what the next request of that one has of the other's thoughts, behind that message.
    """
    world = World(name)
    one, two = (Conversation(world, HOMES[0]).client for _ in range(2))
    await one.run(length + 2)
    two.keep = True
    for number in range(length):
        said = two.next()
        if number == changed:
            said = [*(p for p in said if type(p) is not Text), Text(text="Something else")]
        answer = await two.say(*said, direct=not deleted)
        assert answer.status == 200, answer.body
    if deleted:
        session = answer.header("x-thoughtline-session")
        assert await two.gateway.store.purge(session=session)
    two.keep, before = False, len(world.gateways["a"].wire.sent)
    await two.say(*two.next())
    return crossed(one, two, world.gateways["a"].wire.sent[before:], changed)


def crossed(one, two, requests, changed):
    theirs = set().union(*map(identities, one.turns))
    for request in requests:
        outputs = [turn for turn in two.dialect.read(request.body).turns if turn.output]
        for turn, own in list(zip(outputs, two.turns, strict=False))[changed:]:
            theirs -= identities(own)
            if identities(turn) & theirs:
                return identities(turn) & theirs
    return set()


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=15)
@given(length=st.integers(1, 9), changed=st.integers(0, 8))
def test_a_look_alike_that_began_before_the_gateway_gets_nothing(name, length, changed):
    """Up to the message in which they differ they are one, and nobody can tell them apart."""
    assert not asyncio.run(live_apart(name, length, min(changed, length - 1), deleted=False))


@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=5)
@given(length=st.integers(1, 9))
def test_nor_does_one_that_was_deleted(name, length):
    assert not asyncio.run(live_apart(name, length, 0, deleted=True))
