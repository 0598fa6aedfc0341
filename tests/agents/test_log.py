"""Sessions in a store: made, resumed, forked, moved, shared with other processes."""

import json
import signal
import sys
from pathlib import Path

import anyio
import pytest

import thoughtline
from support.agents import TOOLS, check, lines_of, provider, talking, wired
from thoughtline.clock import SystemClock
from thoughtline.engine import quirks
from thoughtline.engine.secrets import CredentialHash, store_secret
from thoughtline.log.events import Draft, Outcome
from thoughtline.log.parts import Result
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import FrozenClock, simulator

# -- create, resume, list ------------------------------------------------------------------------


async def test_what_endpoints_have_taught_is_not_listed_among_the_sessions():
    away, here = simulator("groq"), simulator("deepseek")
    async with thoughtline.open(wire=wired(away, here), secret=b"secret") as log:
        chat = await log.create(provider=provider(away), tools=TOOLS)
        await chat.run("One")
        await chat.use(provider(here, "deepseek-v4-pro", policy="generic")).run("Two")
        assert await log.store.read(quirks.SESSION)
        assert [one.session for one in await log.sessions()] == [chat.id]
        assert [one.session for one in await log.sessions(limit=1)] == [chat.id]


async def test_what_is_created_is_there_once_something_was_said():
    async with talking("deepseek") as (chat, _):
        assert await chat.log.sessions() == []
        assert chat.turns == [] and chat.head == ""
        await chat.run("Go")
        [summary] = await chat.log.sessions()
        assert (summary.session, summary.tenant) == (chat.id, "local")
        folded = await chat.log.read(chat.id)
        assert folded.turns == chat.turns
        assert repr(chat) == f"Chat({chat.id!r}, head={chat.head!r})"


def asked_systems(sim):
    """The system prompts of the requests, as the provider got them."""
    bodies = [json.loads(record.request.body)["messages"] for record in sim.requests]
    return [[m["content"] for m in messages if m["role"] == "system"] for messages in bodies]


async def test_a_resumed_session_keeps_its_system_prompt():
    sim = simulator("deepseek")
    async with thoughtline.open(wire=wired(sim), secret=b"secret") as log:
        chat = await log.create(provider=provider(sim), system="Be brief.")
        await chat.run("One")
        first = chat.head
        again = await log.resume(chat.id, provider=provider(sim))
        assert again.options.system == "Be brief."
        await again.use(system="Be long.").run("Two")
        await (await log.resume(chat.id, provider=provider(sim))).run("Three")
        await (await log.resume(chat.id, provider=provider(sim), at=first)).run("Branch")
        forked = await log.fork(chat.id, first)
        await forked.use(provider(sim)).run("Fork")
        none = await log.resume(forked.id, provider=provider(sim), system="")
        await none.run("None")
        await (await log.resume(forked.id, provider=provider(sim))).run("Still none")
    told = [["Be brief."], ["Be long."], ["Be long."], ["Be brief."], ["Be brief."], [], []]
    assert asked_systems(sim) == told


async def test_a_system_prompt_is_written_where_it_changes():
    async with talking("deepseek", tools=()) as (chat, _):
        await chat.run("One")
        await chat.run("Two")
        await chat.use(system="").run("Three")
        assert [turn.system for turn in chat.turns] == ["Be brief.", None, ""]
        lines = await lines_of(chat.log, chat.id)
        assert sum("Be brief." in line for line in lines) == 1
        async with thoughtline.open() as other:
            await other.import_lines(lines[:-4])
            [moved] = await other.sessions()
            assert (await other.resume(moved.session)).options.system in ("Be brief.", "")


async def test_a_limit_of_exchanges_is_at_least_one():
    async with thoughtline.open() as log:
        assert (await log.create(max_exchanges=4)).options.max_exchanges == 4
        with pytest.raises(ValueError, match="max_exchanges=0: a run takes at least one"):
            await log.create(max_exchanges=0)


async def test_what_is_not_there_has_its_class():
    async with talking("deepseek") as (chat, _):
        await chat.run("Go")
        with pytest.raises(thoughtline.SessionNotFound):
            await chat.log.resume("nope")
        with pytest.raises(thoughtline.SessionExists):
            await chat.log.create(id=chat.id)
        for action in (chat.switch, chat.rewind):
            with pytest.raises(thoughtline.TurnNotFound):
                action("nope")
        run = chat.run("Go on")
        async for _ in run:
            with pytest.raises(thoughtline.ChatBusy):
                chat.switch("")
            break
        await run


async def test_an_id_of_ones_own():
    async with talking("deepseek") as (chat, _):
        own = await chat.log.create(id="mine", provider=chat.options.provider)
        await own.run("Go")
        assert own.id == "mine"
        with pytest.raises(thoughtline.ThoughtlineError, match="'mine' is there already"):
            await chat.log.create(id="mine")


async def test_what_is_not_there():
    async with thoughtline.open() as log:
        for action in (log.resume("x"), log.read("x"), log.fork("x", "t")):
            with pytest.raises(thoughtline.ThoughtlineError, match="'x'"):
                await action
        with pytest.raises(thoughtline.ThoughtlineError, match="no session 'x'"):
            await lines_of(log, "x")
        chat = await log.create()
        with pytest.raises(thoughtline.ThoughtlineError, match="this chat has no provider to ask"):
            await chat.run("Go")
        with pytest.raises(thoughtline.ThoughtlineError, match="no turn to fork at"):
            await chat.fork()
        with pytest.raises(thoughtline.ThoughtlineError, match="has no turn 't'"):
            chat.switch("t")


async def test_watching_and_deleting():
    async with talking("deepseek") as (chat, _):
        await chat.run("Go")
        seen = []
        async for event in chat.log.watch(chat.id):
            seen.append(event)
            if event.type == "turn_ended" and event.body().outcome is Outcome.COMPLETED:
                break
        assert [event.seq for event in seen] == list(range(len(seen)))
        fork = await chat.fork()
        assert not await chat.log.delete(chat.id)  # a fork goes on from it
        assert await chat.log.delete(fork.id)
        assert await chat.log.delete(chat.id)
        assert await chat.log.sessions() == []


# -- two processes, and one that dies ------------------------------------------------------------


CRASH = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.agents import provider, wired
from support.waiting import eventually
import thoughtline
from thoughtline.testing import simulator

async def read_file(path: str, n: float) -> str:
    return "done before"

async def search(query: str, **more) -> str:
    if sys.argv[3] == "tool":
        await eventually(lambda: b"done before" in Path(sys.argv[2] + "-wal").read_bytes())
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    sim = simulator("deepseek")
    wire = wired(sim)
    async with thoughtline.open(f"sqlite:///{sys.argv[2]}", wire=wire, secret=b"s") as log:
        chat = await log.create(id="it", provider=provider(sim), tools=[read_file, search])
        async for event in chat.run("Go"):
            if sys.argv[3] == "stream" and isinstance(event, thoughtline.ReasoningDelta):
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["stream", "tool"])
async def test_after_a_crash_the_log_is_whole_and_nothing_is_run_again(tmp_path, when):
    file = tmp_path / "agent.db"
    tests = Path(__file__).parents[1]
    died = await anyio.run_process(
        [sys.executable, "-c", CRASH, tests, file, when], check=False, stderr=None
    )
    assert died.returncode == -signal.SIGKILL
    sim, ran = simulator("deepseek", seed=1), []

    async def read_file(path: str, n: float) -> str:
        ran.append(path)

    async def search(query: str, **more) -> str:
        ran.append(query)

    async with thoughtline.open(f"sqlite:///{file}", wire=wired(sim), secret=b"s") as log:
        chat = await log.resume("it", provider=provider(sim), tools=[read_file, search])
        assert chat.turns[-1].outcome is None
        sim.script = lambda turn, sim: (thoughtline_say(sim),)
        if when == "stream":
            assert chat.interrupted == []
            answer = await chat.run()  # the message is there and waits for an answer
        else:
            assert [call.name for call in chat.interrupted] == ["search"]
            answer = await chat.run()
            said = [p.content for t in chat.turns for p in t.input if isinstance(p, Result)]
            assert said[0] == "done before"
            assert said[1].startswith("No result: the call was interrupted")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert ran == []
        assert chat.interrupted == []
        assert sim.requests[-1].reply.status == 200


def thoughtline_say(sim):
    from thoughtline.testing import Say

    return Say(f"I see. [{sim.mark}]")


# -- logs of a newer version ---------------------------------------------------------------------


def newer(turn: str) -> list[Draft]:
    """What a later version might have written."""
    clock = SystemClock()
    made = [
        ("dreamt", 1, '{"of": "sheep", "n": 1.50}'),
        ("assistant_message", 9, '{"parts": 7, "mood": "fine"}'),
        ("user_message", 1, '{"parts": [{"type":"text","text":"and","tone":"soft"}]}'),
    ]
    return [
        Draft(id=clock.new_id(), parent=turn, at=1.25, type=t, version=v, data=d)
        for t, v, d in made
    ]


async def test_events_of_a_newer_version_are_kept_and_skipped():
    async with talking("deepseek") as (chat, sim):
        await chat.run("One")
        store, id = chat.log.store, chat.id
        await store.append(Batch(session=id, tenant="local", drafts=tuple(newer(chat.head))))
        with pytest.raises(thoughtline.Conflict):
            await chat.run("Two")
        await chat.refresh()
        assert (await chat.log.read(id)).skipped == 2
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        check(sim, chat.turns)
        lines = await lines_of(chat.log, id)
        async with thoughtline.open() as other:
            await other.import_lines(lines)
            assert await other.store.read(id) == await store.read(id)
            assert await lines_of(other, id) == lines
        texts = [line for line in lines if '"dreamt"' in line]
        assert '"data":{"of": "sheep", "n": 1.50}' in texts[0]


# -- accounts ------------------------------------------------------------------------------------


async def test_another_key_is_another_account():
    async with talking("openai") as (chat, sim):
        await chat.run("One")
        chat.use(provider(sim, key="another key"))
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        reasons = {decision.reason for decision in answer.turns[0].replay}
        assert reasons == {"foreign account"}
        events = str(await chat.log.store.read(chat.id))
        assert "another key" not in events and "a key" not in events


def test_the_secret_lies_beside_the_file_and_stays(tmp_path):
    url = f"sqlite:///{tmp_path}/agent.db"
    made = store_secret(url, {})
    assert store_secret(f"{url}?timeout=3", {}) == made
    file = tmp_path / "agent.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["agent.secret"]
    assert store_secret("memory://", {}) != store_secret("memory://", {})
    assert CredentialHash(made)("k") == CredentialHash(made)("k") != "k"
    assert CredentialHash(made)("") == ""
    file.write_bytes(b"short")
    with pytest.raises(thoughtline.ThoughtlineError, match="has 5 bytes, expected 32"):
        store_secret(url, {})
    with pytest.raises(thoughtline.ThoughtlineError, match="cannot be read or created"):
        store_secret(f"sqlite:///{file}/no/agent.db", {})


# -- pictures ------------------------------------------------------------------------------------


async def test_time_and_ids_can_be_given():
    sim, clock = simulator("deepseek"), FrozenClock()
    async with thoughtline.open(wire=wired(sim), clock=clock, secret=b"s") as log:
        chat = await log.create(provider=provider(sim))
        answer = await chat.run("Go")
        assert isinstance(log.store, MemoryStore)
        assert {turn.started for turn in answer.turns} == {clock.wall()}
