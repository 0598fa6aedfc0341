"""A request that goes on from a settled beginning sends and keeps what the whole walk would."""

import asyncio
from types import SimpleNamespace

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.both_ways import STEPS, BothWays, talks
from support.clients import TOOLS
from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.gateway_websocket import SocketClient, dial, gateway, say
from support.transports import talk
from thoughtline.engine.exchange import Engine
from thoughtline.engine.settled_prefix import SettledPrefix, Unsettled
from thoughtline.gateway import proxy
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import PROVIDERS, serving
from thoughtline.transports import Transport


@pytest.fixture(autouse=True)
def both_ways(monkeypatch):
    monkeypatch.setattr(proxy, "Engine", BothWays)


@pytest.fixture(scope="module")
def sims():
    with serving("deepseek", "openai") as served:
        yield served


@pytest.fixture
def engines(monkeypatch):
    """All engines that are made."""
    made = []

    def engine(*args, **options):
        made.append(BothWays(*args, **options))
        return made[-1]

    monkeypatch.setattr(proxy, "Engine", engine)
    return made


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("echo", ["keep", "strip"])
def test_a_growing_conversation_is_reused_and_equal(name, echo):
    with talks(name, echo=echo) as (one, other):
        for _ in range(8):
            one.turn()
            other.turn()
        assert one.sent == other.sent
        assert one.engine.reused >= 3
        assert other.engine.reused == 0


def test_what_settled_turns_were_taken_for_is_not_asked_for_again(monkeypatch):
    monkeypatch.setattr(proxy, "Engine", Engine)
    with talks("deepseek") as (talk, _):
        talk.engine.prefixes.min_size = 0
        store, asked = talk.gateway.store, []
        find = store.find

        async def noted(tenant, keys):
            asked.append(len(keys))
            return await find(tenant, keys)

        store.find = noted
        for _ in range(12):
            talk.turn()
        assert max(asked[-3:]) < 10
        asked.clear()
        talk.runner.run(store.erase(EntryFilter(turn="another")))
        talk.turn()
        assert max(asked) > 12


ONE_OF_EACH = ("deepseek", "glm", "openai", "claude", "claude-bound", "gemini")
"""Providers of each dialect: demands for all outputs, for a loop, and for what stands before."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("step", STEPS)
def test_after_each_thing_that_may_happen_both_walks_are_equal(name, step):
    with talks(name) as (one, other):
        for talk in (one, other):
            for each in (*["turn"] * 5, step, "turn", "turn", step, "turn"):
                getattr(talk, each)()
        assert one.sent == other.sent


@pytest.mark.parametrize("name", ["claude", "gemini", "gemini-compat", "deepseek-anthropic"])
def test_what_a_loop_lost_is_decided_anew_when_the_next_one_begins(name):
    reasons = set()
    for nth in range(1, 7):
        with talks(name) as (one, other):
            for talk in (one, other):
                for _ in range(4):
                    talk.turn()
                talk.erase(nth)
                for _ in range(6):
                    talk.turn()
            assert one.sent == other.sent
            reasons |= set(one.engine.whole)
    assert "loop" in reasons or not name.startswith("gemini")


def test_two_runs_that_look_alike_are_not_mixed_up():
    """Only what the client says behind the history tells them apart."""
    wire = ScriptedWire(Answer())
    answers = iter(range(100))

    def answer(_request):
        said = {"role": "assistant", "content": "Done.", "reasoning_content": f"t{next(answers)}"}
        return Answer(200, {"choices": [{"message": said, "finish_reason": "stop"}]})

    wire.answers = [answer]
    with asyncio.Runner() as runner:
        gateway = InProcessGateway(wire, "kimi")
        messages = [{"role": "user", "content": "Please mend it."}]
        for _ in range(6):
            for run in ("one", "two"):
                asked = {"model": "kimi-k3", "messages": messages, "tools": TOOLS}
                body = {**asked, "session_id": run}
                runner.run(gateway.post("/v1/chat/completions", body))
            messages += [{"role": "assistant", "content": "Done."}, messages[0]]
    last = [[m.get("reasoning_content") for m in body["messages"][1::2]] for body in wire.bodies]
    assert last[-2:] == [["t0", "t2", "t4", "t6", "t8"], ["t1", "t3", "t5", "t7", "t9"]]
    assert "session" in gateway.proxy.engine.whole


async def test_what_another_node_writes_late_is_not_overruled(tmp_path):
    """The client's own first turn: until it is known, one that looks like it was taken for it."""
    wire, answers = ScriptedWire(Answer()), iter(range(100))

    def answer(request):
        nth = next(answers)
        said = {"role": "assistant", "content": "Well.", "reasoning_content": f"t{nth}"}
        if b'"tool"' not in request.body:
            call = {"name": "ls", "arguments": "{}"}
            id = f"call_{nth:03}c6e8f9a7b1d2"
            said |= {"tool_calls": [{"id": id, "type": "function", "function": call}]}
        return Answer(200, {"choices": [{"message": said, "finish_reason": "stop"}]})

    async def turn(gateway, messages, words):
        asked = {"model": "kimi-k3", "messages": messages, "tools": TOOLS}
        made = await gateway.post("/v1/chat/completions", asked)
        said = made.json["choices"][0]["message"]
        del said["reasoning_content"]
        calls = said.get("tool_calls", ())
        heard = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
        messages += [said, *(heard or [{"role": "user", "content": words}])]

    wire.answers = [answer]
    node, behind = (CachedStore(SqliteStore(tmp_path / "t.db")) for _ in range(2))
    here, there = (InProcessGateway(wire, "kimi", store=one) for one in (node, KeptBatches()))
    other, own = ([{"role": "user", "content": "Please mend it."}] for _ in range(2))
    for _ in range(3):
        await turn(here, other, "And then?")
    await turn(there, own, "")
    for _ in range(5):
        await turn(here, own, "Go on.")
    for batch in there.store.batches:
        await behind.append(batch)
    await turn(here, own, "Go on.")
    for store in (node, behind):
        await store.close()
    sent = [m.get("reasoning_content") for m in wire.bodies[-1]["messages"][1::2]]
    assert sent[0] == "t3"
    assert here.proxy.engine.reused
    assert here.proxy.engine.whole[-1] == "index"


class KeptBatches(MemoryStore):
    """A store that keeps what was written to it, for another one."""

    def __init__(self):
        super().__init__()
        self.batches = []

    async def append(self, batch):
        self.batches.append(batch)
        return await super().append(batch)


@pytest.mark.parametrize("full", [True, False])
async def test_over_a_websocket_too(sims, engines, full):
    with gateway(sims, "openai", websockets=True) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket)
            await client.ask(say("Please go ahead."))
            for _ in range(6):
                await client.ask(full=full)
    assert engines[-1].reused >= 4


def test_in_a_transport_too(sims, engines, tmp_path):
    mount = Transport(f"sqlite:///{tmp_path}/thoughts.db", policy="deepseek")
    with httpx2.Client(transport=mount) as client:
        talk(client, sims.url("deepseek") + "/chat/completions", 8)
    assert engines[-1].reused >= 4


@settings(max_examples=50)
@given(
    st.sampled_from(sorted(PROVIDERS)),
    st.sampled_from(["keep", "strip", "respell"]),
    st.sampled_from([None, None, "generic"]),
    st.lists(st.sampled_from(STEPS), min_size=3, max_size=8),
)
def test_whatever_happens_both_walks_are_equal(name, echo, policy, steps):
    with talks(name, echo=echo, policy=policy) as (one, other):
        for step in ("turn", "turn", "turn", *steps, "turn"):
            getattr(one, step)()
            getattr(other, step)()
            assert one.sent == other.sent


MINE, OTHER = IndexEntry("s", "mine"), IndexEntry("s", "other")
FILED = {b"full": (MINE,), b"seal": (MINE, OTHER), b"unknown seal": ()}


def is_settled(**now):
    """Whether a beginning holds for which this was found, of which something else is found now."""
    prefix = SimpleNamespace(filed=FILED)
    found = {key: entries for key, entries in FILED.items() if entries}
    found |= {key.encode(): entries for key, entries in now.items()}
    try:
        SettledPrefix.check_entries(prefix, {key: made for key, made in found.items() if made})
    except Unsettled:
        return False
    return True


@pytest.mark.parametrize("unknown", [True, False])
def test_the_index_entries_of_a_settled_beginning_are_the_same(monkeypatch, unknown):
    if not unknown:
        monkeypatch.delitem(FILED, b"unknown seal")
    assert is_settled()
    assert is_settled(more=(OTHER,))
    assert is_settled(full=[MINE], seal=[MINE, OTHER])
    assert not is_settled(full=(OTHER, MINE))  # what the client brings may point to the other
    assert not is_settled(full=(OTHER,))
    assert not is_settled(full=())
    assert not is_settled(seal=(MINE,))
    assert not is_settled(seal=())


def test_a_seal_that_is_known_by_now_is_another_origin():
    assert not is_settled(**{"unknown seal": (OTHER,)})
