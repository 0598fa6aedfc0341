"""With every simulated provider: what a careless client loses, and that with us it loses nothing."""

import itertools
import json

import pytest
from msgspec.structs import replace

from support.engine import begin
from thoughtline.cli.conversation import ProviderRefused, SimulatedConversation
from thoughtline.dialects.splice import with_members
from thoughtline.engine.switches import switch_fields
from thoughtline.log.decisions import Action
from thoughtline.log.parts import Result, Text, Thought
from thoughtline.log.sessions import Session
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import PROVIDERS, simulator

EXCHANGES = 12
FORBIDDING = {"deepseek-r1"}  # accepts no thought back, whoever sends it
TOLERANT = {"deepseek-chat"}  # a model that does not think
CASES = [
    pytest.param(name, model, id=f"{name}-{model.replace('/', '-')}")
    for name in PROVIDERS
    for model in simulator(name).models()[:2]
]


def audit(reply):
    pairs = (item.split("=") for item in reply.headers["x-sim-thoughts"].split("; "))
    return {key: int(value) for key, value in pairs}


def streams(name):
    return [True] if name == "codex" else [True, False]


@pytest.mark.parametrize(("name", "model"), CASES)
async def test_without_us_thoughts_are_lost(name, model):
    """Strict providers refuse a stripped history; soft ones take it, and say nothing."""
    for stream in streams(name):
        conversation = SimulatedConversation(simulator(name), model=model, stream=stream)
        try:
            await conversation.run(EXCHANGES)
        except ProviderRefused as refused:
            assert refused.reply.status in (400, 422)
        else:
            lost = audit(conversation.replies[-1])["missing"]
            assert lost or model in TOLERANT


@pytest.mark.parametrize(("name", "model"), CASES)
async def test_with_us_nothing_is_lost(name, model):
    for stream in streams(name):
        conversation = SimulatedConversation(
            simulator(name), model=model, stream=stream, store=MemoryStore()
        )
        await conversation.run(EXCHANGES)
        seen = audit(conversation.replies[-1])
        assert seen["altered"] == seen["misplaced"] == seen["foreign"] == 0
        if name in FORBIDDING or model in TOLERANT:
            assert seen["exact"] == 0
            continue
        assert seen["missing"] == 0
        assert seen["exact"] >= EXCHANGES // 2
        plain = [t for t in conversation.turns if not t.calls]
        parallel = [t for t in conversation.turns if len(t.calls) > 1]
        assert plain and parallel


@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - FORBIDDING))
async def test_a_client_that_keeps_its_thoughts_is_left_alone(name):
    """Its own body goes out, byte for byte, but for a switch that makes the provider read them."""
    sim = simulator(name)
    conversation = SimulatedConversation(sim, model=sim.models()[0], store=MemoryStore(), keep=True)
    await conversation.run(8)
    for exchange in conversation.exchanges:
        decisions = {decision.action for decision in exchange.decision.replay_plan.decisions}
        assert decisions <= {Action.EXACT, Action.ABSENT}, exchange.decision.replay_plan.decisions
        body = exchange.incoming.request.body
        if asks := exchange.incoming.target.policy.asks:
            assert exchange.decision.body == with_members(body, switch_fields(body, asks, {}))
        else:
            assert exchange.decision.body is body


@pytest.mark.parametrize("name", PROVIDERS)
async def test_restoring_a_restored_body_changes_nothing(name):
    sim = simulator(name)
    store = MemoryStore()
    conversation = SimulatedConversation(sim, model=sim.models()[0], store=store)
    await conversation.run(7)
    last = conversation.exchanges[-1]
    again = await begin(
        last.decision.dialect.read(last.decision.body),
        dialect=last.decision.dialect,
        target=last.decision.target,
        tenant="tenant",
        store=store,
    )
    assert again.decision.body == last.decision.body


@pytest.mark.parametrize("name", ["deepseek", "kimi", "kimi-k3", "openai", "claude", "gemini"])
async def test_two_tenants_with_the_same_words_share_nothing(name):
    sim, store = simulator(name, serials=False), MemoryStore()
    model = sim.models()[0]
    one = SimulatedConversation(sim, model=model, store=store, tenant="one", account="one")
    two = SimulatedConversation(sim, model=model, store=store, tenant="two", account="two")
    await one.run(6)
    await two.run(6)
    for conversation in (one, two):
        seen = audit(conversation.replies[-1])
        assert (seen["foreign"], seen["misplaced"], seen["missing"]) == (0, 0, 0)
    sessions = {e.recording.session for e in one.exchanges} & {
        e.recording.session for e in two.exchanges
    }
    assert not sessions


async def test_interleaved_conversations_on_repeating_ids_never_mix():
    """Forty conversations with the same ids and nearly the same words, all at once."""
    sim, store = simulator("kimi-k3", serials=False), MemoryStore()
    talks = [SimulatedConversation(sim, model="kimi-k3", store=store) for _ in range(40)]
    said = [[Text(text=f"Please mend file {number}.txt")] for number in range(40)]
    for _ in range(6):
        for number, talk in enumerate(talks):
            turn = await talk.say(said[number])
            said[number] = [Result(call=c.id, content="ok") for c in turn.calls] or [
                Text(text="go on")
            ]
    for talk in talks:
        seen = audit(talk.replies[-1])
        assert (seen["foreign"], seen["misplaced"], seen["altered"], seen["missing"]) == (
            0,
            0,
            0,
            0,
        )


@pytest.mark.parametrize("away", ["openai", "claude", "gemini", "deepseek", "groq"])
async def test_after_a_switch_of_provider_nothing_sealed_goes_along(away):
    """Not even when the client itself keeps it and sends it."""
    home_sim, away_sim, store = simulator("openai"), simulator(away), MemoryStore()
    home = SimulatedConversation(home_sim, model=home_sim.models()[0], store=store, keep=True)
    await home.run(4)
    seals = [
        json.loads(t.raw).get("encrypted_content") for turn in home.turns for t in turn.thoughts
    ]
    assert all(seals)
    for kept in (True, False):
        there = SimulatedConversation(
            away_sim, model=away_sim.models()[0], store=store, account="other", keep=kept
        )
        there.turns = [
            t
            if away == "openai"
            else replace(t, output=tuple(p for p in t.output if not isinstance(p, Thought)))
            for t in home.turns
        ]
        await there.say(
            [Text(text="and now elsewhere")]
            if not home.turns[-1].calls
            else [Result(call=c.id, name=c.name, content="x") for c in home.turns[-1].calls]
        )
        sent = there.exchanges[-1].decision.body.decode()
        assert not any(seal in sent for seal in seals)


async def test_the_log_folds_to_what_was_said():
    store = MemoryStore()
    conversation = SimulatedConversation(
        simulator("deepseek"), model="deepseek-v4-pro", store=store
    )
    await conversation.run(8)
    id = conversation.exchanges[0].recording.session
    assert {e.recording.session for e in conversation.exchanges} == {id}
    session = Session(id).extend(await store.read(id))
    lived = session.path(session.heads[0])
    assert [t.output for t in lived] == [
        tuple(
            replace(p, timing=t.timing) if isinstance(p, Thought) else p
            for p, t in zip(turn.output, log.output, strict=True)
        )
        for turn, log in zip(conversation.turns, lived, strict=True)
    ]
    assert lived[0].input == (Text(text="Please mend a.txt"),)


async def test_every_request_extends_the_last_byte_for_byte():
    """Prompt caches live on equal prefixes: what was sent once is sent again."""
    store = MemoryStore()
    conversation = SimulatedConversation(
        simulator("deepseek"), model="deepseek-v4-pro", store=store
    )
    await conversation.run(10)
    heads = []
    for exchange in conversation.exchanges:
        start = exchange.decision.body.index(b'"messages":[')
        heads.append(exchange.decision.body[start : exchange.decision.body.index(b'],"tools"')])
    for before, after in itertools.pairwise(heads):
        assert after.startswith(before)
