"""Refused thoughts: found, quarantined, and the session goes on; also with a server that forgets."""

import json

import msgspec
import pytest
from msgspec.structs import replace

import thoughtline
from library_agents import TOOLS, check, provider, talking, wired
from thoughtline import repeats
from thoughtline.dialects import DIALECTS
from thoughtline.events import Outcome, Quarantined
from thoughtline.guards import Target
from thoughtline.library import healing
from thoughtline.library.transcripts import Terms, fold
from thoughtline.parts import Origin
from thoughtline.policies import Need, Scope, lookup
from thoughtline.policies.remedies import Remedy
from thoughtline.replay import Ruling
from thoughtline.testing import simulator
from worlds import thought

SEALING = ("openai", "azure", "xai", "claude", "gemini", "gemini-compat", "openrouter", "copilot")


def quarantined(events):
    return [b for e in events if isinstance(b := e.body(), Quarantined)]


def spoiled(raw: str) -> str:
    """A thought whose seal is broken, in the middle of its longest value."""
    value = json.loads(raw)

    def longest(node):
        if isinstance(node, str):
            return [node]
        nodes = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return [text for inner in nodes for text in longest(inner)]

    keys = ("encrypted_content", "signature", "data", "thought_signature")
    seals = [v for k in keys for v in found(value, k)] or longest(value)
    seal = max(seals, key=len)
    middle = len(seal) // 2
    other = "A" if seal[middle] != "A" else "B"
    return raw.replace(seal[middle - 8 : middle + 8], seal[middle - 8 : middle] + other * 8, 1)


def found(node, key):
    if isinstance(node, list):
        return [v for inner in node for v in found(inner, key)]
    if not isinstance(node, dict):
        return []
    own = [node[key]] if isinstance(node.get(key), str) and node[key] else []
    return own + [v for inner in node.values() for v in found(inner, key)]


async def damaged(chat, which):
    """The same session in another store, with the thoughts of some turns spoiled."""
    lines = [line async for line in chat.log.export_lines(chat.id)]
    made, number = [], -1
    for line in lines:
        document = json.loads(line)
        if isinstance(document.get("data"), str):
            document["data"] = json.loads(document["data"])
        if document.get("type") == "reasoning" and document["data"]["thought"].get("seals"):
            number += 1
            if number in which:
                document["data"]["thought"]["raw"] = spoiled(document["data"]["thought"]["raw"])
        made.append(json.dumps(document))
    log = thoughtline.open(wire=chat.log.wire, secret=b"secret")
    await log.import_lines(made)
    options = chat.options
    return await log.resume(chat.id, provider=options.provider, tools=TOOLS, system=options.system)


async def test_what_a_gateway_takes_for_said_is_what_was_written(monkeypatch):
    """A request that was healed is not the one whose rulings its start was written with."""
    async with talking("openai") as (original, _):
        for _ in range(2):
            await original.run("Go")
        chat = await damaged(original, {1})
        written, append = [], chat.log.store.append

        async def appending(batch):
            written.extend(batch.memories)
            return await append(batch)

        monkeypatch.setattr(chat.log.store, "append", appending)
        assert (await chat.run("And now?")).outcome is Outcome.COMPLETED
        assert quarantined(await chat.log.store.read(chat.id))
        session = await chat.log.read(chat.id)
        for memory in written:
            logged = session.turn(memory.turn).replay
            rulings = [msgspec.convert(ruling, Ruling) for ruling in logged]
            assert memory.ruled == repeats.mark(rulings) != ""


@pytest.mark.parametrize("name", SEALING)
@pytest.mark.parametrize(
    "which", [{4}, {0}, {1, 3}, set(range(99))], ids=["one", "first", "two", "all"]
)
async def test_a_refused_thought_is_found_and_never_sent_again(name, which):
    async with talking(name) as (original, sim):
        for number in range(2):
            await original.run(f"Go {number}")
        chat = await damaged(original, which)
        before = len(sim.requests)
        for number in range(3):
            answer = await chat.run(f"And {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        statuses = [record.reply.status for record in sim.requests[before:]]
        refused = [status for status in statuses if status != 200]
        barred = quarantined(await chat.log.store.read(chat.id))
        assert bool(barred) == bool(refused)
        assert len(refused) <= healing.PROBES + 5
        after = statuses[statuses.index(200) if 200 in statuses else 0 :]
        if refused:  # and once it is known, there is no other refusal
            last = max(at for at, status in enumerate(statuses) if status != 200)
            assert len(statuses) - last > 6
            assert all(b.reason for b in barred)
        assert after
        audit = sim.requests[-1].audit
        assert (audit.misplaced, audit.foreign) == (0, 0)
        await chat.log.close()


@pytest.mark.parametrize("name", ["openai", "claude", "gemini"])
async def test_a_single_culprit_is_all_that_is_lost(name):
    async with talking(name) as (original, sim):
        for number in range(3):
            await original.run(f"Go {number}")
        chat = await damaged(original, {6})
        answer = await chat.run("And now")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        [fact] = quarantined(await chat.log.store.read(chat.id)) or [None]
        if fact is not None:
            assert len(fact.thoughts) == 1
        assert sim.requests[-1].audit.missing + sim.requests[-1].audit.altered <= 1
        await chat.log.close()


async def test_after_a_key_rotation_the_session_goes_on():
    """Nothing that was sealed can be read any more; every thought is refused, none is named."""
    async with talking("gemini") as (chat, sim):
        await chat.run("One")
        other = simulator("gemini", seed=7)
        sim.secret = other.secret
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        answer = await chat.run("Three")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert sim.requests[-1].reply.status == 200


async def test_what_an_unknown_endpoint_demands_is_learned():
    """A DeepSeek behind an address that says nothing, after turns of somebody else."""
    away, here = simulator("groq"), simulator("deepseek")
    async with thoughtline.open(wire=wired(away, here), secret=b"secret") as log:
        chat = await log.create(provider=provider(away), tools=TOOLS)
        await chat.run("One")
        chat.use(provider(here, "deepseek-v4-pro", policy="generic"))
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert [r.reply.status for r in here.requests].count(400) == 1
        await chat.run("Three")
        other = await log.create(provider=chat.options.provider, tools=TOOLS)
        await other.run("Elsewhere")
        assert [r.reply.status for r in here.requests].count(400) == 1


async def test_a_refusal_that_is_not_about_thoughts_is_not_healed():
    async with talking("deepseek") as (chat, sim):
        await chat.run("One")
        chat.use(provider(sim, options={"tools": 1}))
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.FAILED
        assert len([r for r in sim.requests if r.reply.status != 200]) == 1


# -- a server that remembers, and forgets --------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "azure", "xai"])
async def test_stateful_sends_only_what_is_new(name):
    async with talking(name, stateful=True) as (chat, sim):
        for number in range(3):
            answer = await chat.run(f"Go {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        bodies = [record.json for record in sim.requests]
        assert all(body["store"] is True for body in bodies)
        assert "previous_response_id" not in bodies[0]
        assert all(body["previous_response_id"] for body in bodies[1:])
        assert max(len(body["input"]) for body in bodies) <= 2
        assert all(body["instructions"] == "Be brief." for body in bodies)

        fork = await chat.fork(chat.turns[3].id)
        answer = await fork.run("Elsewhere")
        assert answer.outcome is Outcome.COMPLETED
        [first] = [r.json for r in sim.requests if "Elsewhere" in str(r.json["input"])][:1]
        assert first["previous_response_id"] == chat.turns[3].response


async def test_a_server_that_forgot_is_told_everything_in_the_same_turn():
    async with talking("openai", stateful=True) as (chat, sim):
        await chat.run("One")
        sim.stored.clear()
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        refused = [r for r in sim.requests if r.reply.status != 200]
        assert len(refused) == 1
        whole = sim.requests[sim.requests.index(refused[0]) + 1]
        assert whole.audit.clean and whole.audit.exact > 0
        assert whole.json["store"] is True
        assert sim.requests[-1].json["previous_response_id"]
        assert len(answer.turns) == len(sim.requests) - 4  # the refusal was no turn


async def test_a_server_that_may_not_remember_is_not_asked_again():
    async with talking("codex", stateful=True) as (chat, sim):
        for number in range(2):
            answer = await chat.run(f"Go {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert [r.reply.status for r in sim.requests].count(400) == 1
        check(sim, chat.turns)


async def test_stateless_sends_no_ids_of_calls():
    async with talking("openai") as (chat, sim):
        await chat.run("Go")
        for record in sim.requests:
            assert record.json["store"] is False
            assert record.json["include"] == ["reasoning.encrypted_content"]
            calls = [item for item in record.json["input"] if item.get("type") == "function_call"]
            assert not any("id" in call for call in calls)


# -- plans ---------------------------------------------------------------------------------------


def terms(name="deepseek", dialect="chat", model="m", **more):
    origin = Origin(dialect=dialect, provider=name, model=model)
    target = Target(policy=lookup(name, dialect, model), origin=origin)
    return Terms(dialect=DIALECTS[dialect], target=target, model=model, **more)


async def never(body):
    raise AssertionError("nothing to probe")


async def planned(remedy, given):
    question = [thoughtline.Turn(input=(thoughtline.Text(text="?"),))]
    refused = fold(question, given)
    plans = healing.plans(question, refused, given, remedy=remedy, words="no", probe=never)
    made = [plan async for plan in plans]
    return made[0].terms if made else None


async def test_terms_are_changed_as_the_refusal_asks():
    chat = await planned(Remedy.RESTORE_ALL, terms("generic"))
    assert (chat.target.policy.need, chat.target.policy.lost) == (Need.REQUIRED, '" "')
    calls = await planned(Remedy.RESTORE_CALLS, terms("generic"))
    assert (calls.target.policy.scope, calls.target.policy.lost) == (Scope.CALLS, '""')
    signed = await planned(Remedy.SIGN_OR_BYPASS, terms("generic", "gemini"))
    assert signed.target.policy.lost == '"skip_thought_signature_validator"'
    compatible = await planned(Remedy.SIGN_OR_BYPASS, terms("generic"))
    assert "google" in compatible.target.policy.lost
    off = await planned(Remedy.RESTORE_OR_OFF, terms("generic", "messages"))
    assert off.target.policy.off == ("thinking", '{"type":"disabled"}')
    context = await planned(
        Remedy.SET_ALL_TURNS, terms("codex", "responses", options={"reasoning": {"effort": "low"}})
    )
    assert context.options == {"reasoning": {"effort": "low", "context": "all_turns"}}
    assert (await planned(Remedy.NINE_CHARACTERS, terms())).renamed
    assert (await planned(Remedy.REPLAY_IN_FULL, terms("openai", "responses", stateful=True))).full
    store = await planned(
        Remedy.SET_STORE_FALSE, terms("openai", "responses", stateful=True, options={"store": True})
    )
    assert (store.stateful, store.options) == (False, {})
    assert await planned(Remedy.RECONNECT, terms()) is None
    assert await planned(Remedy.DROP_SEALED, terms()) is None  # there is nothing to drop


@pytest.mark.parametrize("guilty", [{0}, {5}, {19}, {3, 4}, {2, 17}])
async def test_bisection_is_short(guilty):
    """Twenty thoughts, of which the provider minds one or two, and does not say which."""
    origin = terms("openai", "responses").target.origin
    turns = [
        thoughtline.Turn(
            id=f"t{n}",
            input=(thoughtline.Text(text=f"q{n}"),),
            output=(thought(f"s{n}", origin, seal=f"seal-{n}"), thoughtline.Text(text=f"a{n}")),
            target=origin,
            outcome=Outcome.COMPLETED,
        )
        for n in range(20)
    ]
    turns.append(thoughtline.Turn(input=(thoughtline.Text(text="?"),)))
    given = terms("openai", "responses")
    probes = []

    async def probe(body):
        probes.append(body)
        return not any(f'"seal-{n}"'.encode() in body for n in guilty)

    plans = healing.plans(
        turns,
        fold(turns, given),
        given,
        remedy=Remedy.DROP_SEALED,
        words="one of them",
        probe=probe,
    )
    made = [plan async for plan in plans]
    assert len(probes) <= healing.PROBES
    assert [len(plan.barred) for plan in made[:1]] == [1]
    assert len(made[-1].barred) == 20
    enough = next(plan for plan in made if {(f"t{n}", 0) for n in guilty} <= plan.barred)
    assert len(enough.barred) <= 6


def test_bars_add_up():
    turn = thoughtline.Turn(id="t", quarantined=frozenset({0}))
    other = thoughtline.Turn(id="u")
    made = healing.bar([turn, other], [("t", 2), ("t", 1)])
    assert made == [replace(turn, quarantined=frozenset({0, 1, 2})), other]
