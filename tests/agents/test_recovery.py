"""Refused thoughts: found, quarantined, and the session goes on; also with a server that forgets."""

import json
from contextlib import asynccontextmanager

import msgspec
import pytest

import thoughtline
from support.agents import TOOLS, check, provider, talking, wired
from thoughtline.log.decisions import ReplayDecision, mark
from thoughtline.log.events import Outcome, Quarantined
from thoughtline.testing import simulator

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
    """A corrected request is not the one whose decisions its start was written with."""
    async with talking("openai") as (original, _):
        for _ in range(2):
            await original.run("Go")
        chat = await damaged(original, {1})
        written, append = [], chat.log.store.append

        async def appending(batch):
            written.extend(batch.index)
            return await append(batch)

        monkeypatch.setattr(chat.log.store, "append", appending)
        assert (await chat.run("And now?")).outcome is Outcome.COMPLETED
        assert quarantined(await chat.log.store.read(chat.id))
        session = await chat.log.read(chat.id)
        for entry in written:
            logged = session.turn(entry.turn).replay
            decisions = [msgspec.convert(decision, ReplayDecision) for decision in logged]
            assert entry.decisions_mark == mark(decisions) != ""


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
        assert len(refused) <= 3 * 2  # three runs: each is corrected at most twice
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
async def test_a_refusal_is_corrected_once_and_later_thoughts_go_back(name):
    """Providers rarely name the culprit for certain: what it may be stays behind, and no more."""
    async with talking(name) as (original, sim):
        for number in range(3):
            await original.run(f"Go {number}")
        chat = await damaged(original, {6})
        before = len(sim.requests)
        for number in range(3):
            answer = await chat.run(f"And {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        statuses = [record.reply.status for record in sim.requests[before:]]
        assert statuses.count(400) <= 1
        audit = sim.requests[-1].audit
        assert (audit.misplaced, audit.foreign, audit.altered) == (0, 0, 0)
        assert audit.exact > 0
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


async def test_a_refusal_that_is_not_about_thoughts_is_not_corrected():
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


# -- what the gateway knows, and the library did not ---------------------------------------------


def refusing(status, message, accepts):
    """A wire of the openai simulator behind an endpoint with a demand of its own."""

    class Refusing:
        def __init__(self, inner):
            self.inner, self.refused = inner, 0

        @asynccontextmanager
        async def send(self, request):
            if accepts(json.loads(request.body)):
                async with self.inner.send(request) as inbound:
                    yield inbound
                return
            self.refused += 1
            error = {"error": {"message": message, "type": "invalid_request_error"}}
            yield Refused(status, json.dumps(error).encode())

        async def close(self):
            await self.inner.close()

    return Refusing


class Refused:
    headers = ()

    def __init__(self, status, body):
        self.status, self.body = status, body

    async def chunks(self):
        yield self.body


async def test_a_model_without_encrypted_reasoning_is_not_asked_for_it(tmp_path):
    """`Provider("openai", model="gpt-4o")`: asked for once, refused once, remembered for good."""
    sim, url = simulator("openai"), f"sqlite:///{tmp_path}/t.db"
    demand = refusing(
        400,
        "Encrypted content is not supported with this model.",
        lambda body: "include" not in body,
    )
    wire = demand(wired(sim))
    async with thoughtline.open(url, wire=wire, secret=b"secret") as log:
        chat = await log.create(provider=provider(sim), tools=TOOLS)
        for number in range(2):
            answer = await chat.run(f"Go {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
    assert wire.refused == 1
    again = demand(wired(sim))
    async with thoughtline.open(url, wire=again, secret=b"secret") as log:
        chat = await log.create(provider=provider(sim), tools=TOOLS)
        answer = await chat.run("Another day")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
    assert again.refused == 0


async def test_what_the_user_asks_for_is_not_taken_out():
    sim = simulator("openai")
    wire = refusing(
        400,
        "Encrypted content is not supported with this model.",
        lambda body: "include" not in body,
    )(wired(sim))
    options = {"include": ["reasoning.encrypted_content"]}
    async with thoughtline.open(wire=wire, secret=b"secret") as log:
        chat = await log.create(provider=provider(sim, options=options), tools=TOOLS)
        answer = await chat.run("Go")
        assert answer.outcome is Outcome.FAILED
        assert "not supported" in answer.reason
    assert wire.refused == 1


async def test_a_parameter_that_is_not_taken_is_left_out():
    sim = simulator("openai")
    wire = refusing(
        400,
        "Unsupported parameter: max_output_tokens",
        lambda body: "max_output_tokens" not in body,
    )(wired(sim))
    async with thoughtline.open(wire=wire, secret=b"secret") as log:
        options = {"max_output_tokens": 900}
        chat = await log.create(provider=provider(sim, options=options), tools=TOOLS)
        for number in range(2):
            answer = await chat.run(f"Go {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
    assert wire.refused == 1


async def test_ids_of_nine_characters_where_an_endpoint_asks_for_them():
    sim = simulator("mistral")
    async with thoughtline.open(wire=wired(sim), secret=b"secret") as log:
        away = simulator("kimi")
        log._wire = wired(sim, away)
        chat = await log.create(provider=provider(away), tools=TOOLS)
        await chat.run("One")
        chat.use(provider(sim))
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason


@pytest.mark.parametrize("limit", [{"keep_last": 1}, {"loop_only": True}])
async def test_optional_thoughts_can_be_limited(limit):
    """Where a provider does not demand old thoughts, fewer of them may go back."""
    async with talking("vllm") as (chat, sim):
        for number in range(3):
            await chat.run(f"Go {number}")
        everything = sim.requests[-1].audit.exact
    async with talking("vllm", **limit) as (chat, sim):
        for number in range(3):
            answer = await chat.run(f"Go {number}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        limited = sim.requests[-1].audit
        assert limited.exact < everything
        assert (limited.misplaced, limited.foreign) == (0, 0)
