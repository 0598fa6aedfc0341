"""Nothing crosses: tenants with equal histories, ids that repeat, switches of account and provider."""

import asyncio
import json

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gateway_server import running, upstreams
from thoughtline.cli.conversation import SimulatedConversation
from thoughtline.log.parts import Result, Text
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import serving, simulator

TOOLS = [
    {
        "type": "function",
        "function": {"name": "run", "parameters": {"type": "object", "properties": {}}},
    }
]
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


def visible(message):
    return {k: v for k, v in message.items() if k != "reasoning_content"}


class Talk:
    """One careless client."""

    def __init__(self, opening, key):
        self.messages = [{"role": "user", "content": opening}]
        self.headers = {"authorization": f"Bearer {key}"}
        self.audits = []

    async def exchange(self, client, url, model="kimi-k3"):
        sent = {"model": model, "messages": self.messages, "tools": TOOLS}
        reply = await client.post(url, json=sent, headers=self.headers)
        assert reply.status_code == 200, reply.text
        self.audits.append(reply.headers["x-sim-thoughts"])
        message = visible(reply.json()["choices"][0]["message"])
        calls = message.get("tool_calls") or []
        results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
        self.messages += [message, *(results or [{"role": "user", "content": "go on"}])]


def test_two_hundred_conversations_at_once_on_repeating_ids():
    """Two tenants say the same to the same model, a hundred times each; the ids are all alike."""
    sim = simulator("kimi-k3", serials=False)

    async def run(url):
        talks = [Talk(f"mend file {n // 2}.txt", f"tenant-{n % 2}") for n in range(200)]
        async with httpx2.AsyncClient(timeout=60) as client:
            for _ in range(4):
                await asyncio.gather(*(talk.exchange(client, url) for talk in talks))
        return talks

    with serving(sim) as sims, running(upstreams(sims, "kimi-k3")) as gateway:
        talks = asyncio.run(run(f"{gateway.url}/u/kimi-k3/v1/chat/completions"))
    for talk in talks:
        assert talk.audits[-1] == f"exact=3; {CLEAN}"


def test_equal_first_words_in_one_tenant_are_never_mixed():
    """Twenty conversations that nobody can tell apart: none gets a thought of another."""
    sim = simulator("kimi-k3", serials=False)

    async def run(url):
        talks = [Talk("do it", "one") for _ in range(20)]
        async with httpx2.AsyncClient(timeout=60) as client:
            for _ in range(4):
                for talk in talks:
                    await talk.exchange(client, url)
        return talks

    with serving(sim) as sims, running(upstreams(sims, "kimi-k3")) as gateway:
        talks = asyncio.run(run(f"{gateway.url}/u/kimi-k3/v1/chat/completions"))
    assert {part for talk in talks for part in talk.audits[-1].split("; ")} <= {
        *(f"exact={n}" for n in range(4)),
        *(f"missing={n}" for n in range(4)),
        "altered=0",
        "misplaced=0",
        "foreign=0",
    }


@pytest.mark.parametrize("name", ["openai", "claude", "gemini"])
async def test_another_account_never_gets_a_sealed_thought(name):
    sim, store = simulator(name), MemoryStore()
    model = sim.models()[0]
    mine = SimulatedConversation(sim, model=model, store=store, account="mine", keep=True)
    await mine.run(3)
    theirs = SimulatedConversation(sim, model=model, store=store, account="theirs", keep=True)
    theirs.turns = list(mine.turns)
    last = mine.turns[-1]
    await theirs.say(
        [Result(call=c.id, name=c.name, content="x") for c in last.calls] or [Text(text="go on")]
    )
    sealed = [t for turn in mine.turns for t in turn.thoughts if t.sealed]
    assert sealed
    sent = theirs.exchanges[-1].decision.body.decode()
    assert not any(_seal(t.raw) in sent for t in sealed)


def _seal(raw):
    value = json.loads(raw)
    if isinstance(value, str):
        return value
    return next(
        value[k]
        for k in ("encrypted_content", "signature", "data", "thoughtSignature")
        if value.get(k)
    )


_step = st.tuples(st.integers(0, 3), st.sampled_from(["go on", "again", "Please mend a.txt"]))


@settings(max_examples=25)
@given(st.lists(_step, min_size=4, max_size=24))
def test_any_interleaving_of_look_alikes_keeps_to_itself(steps):
    """A random schedule over four look-alike conversations of two tenants on one archive."""

    async def run():
        sim, store = simulator("kimi", serials=False), MemoryStore()
        talks = [
            SimulatedConversation(
                sim,
                model="kimi-k2.6",
                store=store,
                tenant=f"t{n % 2}",
                account=f"a{n % 2}",
                stream=False,
            )
            for n in range(4)
        ]
        for which, words in steps:
            talk = talks[which]
            calls = talk.turns[-1].calls if talk.turns else ()
            await talk.say([Result(call=c.id, content="ok") for c in calls] or [Text(text=words)])
            audit = talk.replies[-1].headers["x-sim-thoughts"]
            assert "misplaced=0; foreign=0" in audit, audit
            assert "altered=0" in audit, audit

    asyncio.run(run())
