"""A chat over a WebSocket: the log is the truth, and only what is new is sent."""

import asyncio
import json

import pytest

import thoughtline
from support.agents import TOOLS
from support.waiting import eventually
from thoughtline.agents import caller
from thoughtline.log.events import Outcome
from thoughtline.testing import serving

CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    async def pause(seconds):
        await asyncio.sleep(0)

    monkeypatch.setattr(caller, "pause", pause)


@pytest.fixture(scope="module")
def sims():
    with serving("openai", "openai-ws", "deepseek-responses") as served:
        yield served


def provider(sims, name="openai", model="gpt-5.6", **more):
    url = sims.url(name)
    return thoughtline.Provider(
        name,
        model=model,
        base_url=url,
        key="key-one",
        dialect="responses",
        policy=more.pop("policy", "openai"),
        websockets=True,
        **more,
    )


async def wires(chat):
    """How each turn of a session went out, by its own account."""
    events = await chat.log.store.read(chat.id)
    ends = [json.loads(event.data) for event in events if event.type == "turn_ended"]
    return [end.get("wire", "") for end in ends]


def clean(sim):
    audit = sim.requests[-1].audit
    return str(audit).endswith(CLEAN) and audit.exact


@pytest.mark.parametrize("name", ["openai", "openai-ws"])
async def test_thirty_turns_with_tools_a_fork_and_a_resume(sims, name, tmp_path):
    url, sim = f"sqlite:///{tmp_path}/log.db", sims[name]
    before = len(sim.requests)
    async with thoughtline.open(url) as log:
        chat = await log.create(provider=provider(sims, name), tools=TOOLS, system="be brief")
        while len(await wires(chat)) < 30:
            answer = await chat.run(f"{name} and then? {chat.head}")
            assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert (await wires(chat))[0] == "no_baseline"
        assert set((await wires(chat))[1:]) == {"continued"}
        assert clean(sim)
        fork = await chat.fork()
        answers = await asyncio.gather(fork.run("elsewhere"), chat.run("here"))
        assert [answer.outcome for answer in answers] == [Outcome.COMPLETED] * 2
        first = (await wires(fork))[0]
        assert first == ("continued" if name == "openai-ws" else "lane_unavailable")
        session = chat.id
    async with thoughtline.open(url) as log:
        chat = await log.resume(
            session, provider=provider(sims, name), tools=TOOLS, system="be brief"
        )
        done = len(await wires(chat))
        answer = await chat.run("and after a night's sleep?")
        assert answer.outcome is Outcome.COMPLETED
        assert (await wires(chat))[done] == "no_baseline"
        assert clean(sim)
        head = chat.turns[3].id
        await chat.rewind(head).run("or rather something else")
        assert "branch_changed" in await wires(chat)
        assert clean(sim)
    refused = [r.reply.status for r in sim.requests[before:] if r.reply.status != 200]
    assert refused == ([] if name == "openai-ws" else [400][: len(refused)])


async def test_another_model_and_another_prompt_go_out_whole(sims):
    async with thoughtline.open("memory://") as log:
        chat = await log.create(provider=provider(sims), system="one")
        await chat.run("switch")
        await chat.use(system="two").run("go on")
        await chat.use(provider(sims, model="gpt-5")).run("go on")
        answer = await chat.run("go on")
        assert answer.outcome is Outcome.COMPLETED
        assert await wires(chat) == [
            "no_baseline",
            "fields_changed(instructions)",
            "guard_changed(model)",
            "continued",
        ]


@pytest.mark.parametrize("fault", ["cut:0", "cut:2", "cut:7", "500", "429", "stall:0"])
async def test_no_turn_is_lost_to_a_fault(sims, fault):
    async with thoughtline.open("memory://") as log:
        chat = await log.create(provider=provider(sims), tools=TOOLS)
        await chat.run(f"faults {fault}")
        sims["openai"].fail_next(fault)
        if fault.startswith("stall"):
            run = chat.run("cancelled")
            events = aiter(run)
            await anext(events)  # it has begun
            await eventually(lambda: not sims["openai"]._faults)
            run.cancel()
            assert (await run).outcome is Outcome.ABORTED
        else:
            first = await chat.run("go on")
            # What was shown is not said again: then the turn has failed, and says so.
            shown = fault == "cut:7"
            assert first.outcome is (Outcome.FAILED if shown else Outcome.COMPLETED), first.reason
        answer = await chat.run("and now?")
        assert answer.outcome is Outcome.COMPLETED
        assert clean(sims["openai"])


async def test_without_a_websocket_it_is_http(sims):
    asked = provider(sims, "deepseek-responses", "deepseek-v4-flash", policy="deepseek")
    async with thoughtline.open("memory://") as log:
        chat = await log.create(provider=asked, tools=TOOLS)
        await chat.run("no socket here")
        answer = await chat.run("go on")
        assert answer.outcome is Outcome.COMPLETED
        assert set(await wires(chat)) == {"unavailable"}
        assert clean(sims["deepseek-responses"])
