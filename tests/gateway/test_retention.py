"""What of a turn is kept, and how it is swept away."""

import asyncio
import io

import pytest

from stores.samples import StillClock, notes, refusal, turn
from support.built_gateway import BuiltGateway, configured, converse
from support.gateway import TurnClient, gateway_with
from thoughtline.errors import Unavailable
from thoughtline.gateway.retention import (
    MAX_INTERVAL,
    MIN_INTERVAL,
    Sweep,
    record_filter,
    thoughts_only,
)
from thoughtline.gateway.settings import StoreSettings
from thoughtline.gateway.telemetry import open_log
from thoughtline.log.events import AssistantMessage, ToolCall, ToolResult, UserMessage, draft
from thoughtline.log.parts import Call, Result, Text
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore

A, B = b"a" * 16, b"b" * 16
SAID = [
    UserMessage(parts=(Text(text="question"),)),
    AssistantMessage(parts=(Text(text="answer"),)),
    ToolCall(call=Call(name="run", arguments="{}")),
    ToolResult(result=Result(content="output")),
]


def whole_turn(session="s", id="t1", keys=(A,)):
    said = tuple(draft(body, id=f"d{n}", parent=id, at=1.0) for n, body in enumerate(SAID))
    return turn(session, id, '"hm"', keys=keys, drafts=said)


# -- what is written -----------------------------------------------------------------------------


def test_sessions_are_kept_whole():
    assert record_filter("sessions") is None


@pytest.mark.parametrize("record", ["thoughts", "off"])
def test_what_was_said_is_left_out(record):
    batch = whole_turn()
    kept = record_filter(record)(batch)
    assert [d.type for d in kept.drafts] == ["turn_started", "reasoning", "turn_ended"]
    assert kept.index == batch.index
    assert (kept.session, kept.tenant) == (batch.session, batch.tenant)


def test_bookkeeping_and_what_is_not_known_stay():
    for batch in (refusal("s", "t1"), notes("s", 2)):
        assert thoughts_only(batch) is batch


async def test_replay_finds_what_was_kept():
    hot = CachedStore(MemoryStore(), record=record_filter("thoughts"))
    await hot.append(whole_turn())
    (entry,) = (await hot.find("T", [A]))[A]
    assert [t.raw for t in entry.thoughts] == ['"hm"']
    assert not [e for e in await hot.read("s") if "question" in e.data or "output" in e.data]
    assert [e.seq for e in await hot.read("s")] == [0, 1, 2]


@pytest.mark.parametrize("record", ["sessions", "thoughts", "off"])
def test_conversations_keep_their_thoughts_whatever_is_recorded(record):
    built = BuiltGateway(configured(store=StoreSettings(url="memory://", record=record)))
    with built.client() as client:
        answers = converse(client, 4)
        session = answers[0].headers["x-thoughtline-session"]
        events = client.portal.call(built.inner.read, session)
    assert answers[-1].headers["x-thoughtline-replay"].startswith("restored=3; missed=0")
    assert answers[-1].headers["x-sim-thoughts"].startswith("exact=3; altered=0; missing=0")
    said = any("hello-canary" in e.data or "result-canary" in e.data for e in events)
    assert said is (record == "sessions")
    assert len({a.headers["x-thoughtline-session"] for a in answers}) == 1


# -- the sweep -----------------------------------------------------------------------------------


class Fragile(MemoryStore):
    down = False

    async def purge(self, **which):
        if self.down:
            raise Unavailable("the disk is gone")
        return await super().purge(**which)


def sweep(store, clock, *, retention=100.0, lines=None, **more):
    log = open_log(style="json", stream=lines or io.StringIO())
    return Sweep(store, retention=retention, clock=clock, log=log, **more)


async def test_what_nobody_uses_goes_and_what_is_used_stays():
    clock, lines = StillClock(), io.StringIO()
    store = MemoryStore(clock)
    await store.append(whole_turn("idle", "t1", [A]))
    await store.append(whole_turn("used", "t2", [B]))
    await store.append(notes("appended"))
    clock.now += 99
    store.touch(["used"])
    await store.append(notes("appended"))
    clock.now += 2
    assert await sweep(store, clock, lines=lines).once() == 1
    assert {s.session for s in await store.sessions()} == {"used", "appended"}
    await asyncio.sleep(0)  # lines are written when the loop comes round
    assert '"event":"sweep","sessions":1' in lines.getvalue()


async def test_a_sweep_that_fails_is_reported_and_tried_again():
    clock, lines = StillClock(), io.StringIO()
    store = Fragile(clock)
    await store.append(notes("s"))
    clock.now += 1000
    store.down = True
    rounds = []

    class Enough(Exception):
        pass

    async def sleep(seconds):
        rounds.append(seconds)
        store.down = False
        if len(rounds) == 2:
            raise Enough

    sweeper = sweep(store, clock, lines=lines, sleep=sleep)
    with pytest.raises(Enough):
        await sweeper.run()
    await asyncio.sleep(0)  # lines are written when the loop comes round
    assert "the disk is gone" in lines.getvalue()
    assert await store.sessions() == []
    assert rounds == [MIN_INTERVAL, MIN_INTERVAL]


async def test_for_ever_means_that_nothing_is_swept():
    await sweep(None, StillClock(), retention=0.0).run()


def test_intervals_are_neither_hasty_nor_endless():
    made = [sweep(None, None, retention=r).interval for r in (1.0, 30 * 86400.0, 200000.0)]
    assert made == [MIN_INTERVAL, MAX_INTERVAL, 2000.0]


async def test_memory_is_the_limit_where_nothing_is_written():
    clock = StillClock()
    store = MemoryStore(clock)
    for number in range(20):
        clock.now += 1
        await store.append(turn(f"s{number}", f"t{number}", '"hm"', chars=10))
    crowded = sweep(store, clock, retention=0.0, memory_limit=(8, 1000))
    assert await crowded.once() > 0
    left = await store.sessions()
    assert 1 <= len(left) <= 8
    assert left[0].session == "s19"  # the youngest stay
    assert await crowded.once() == 0
    narrow = sweep(store, clock, retention=0.0, memory_limit=(8, 5))
    await narrow.once()
    assert [s.session for s in await store.sessions()] == ["s19"]  # the last one is in use


class Staying(MemoryStore):
    """A store for two gateways, one after the other."""

    async def close(self):
        pass


def test_a_gateway_sweeps_when_it_starts():
    clock = StillClock()
    settings = configured(store=StoreSettings(url="memory://", retention=50.0))
    store = Staying(clock)
    with BuiltGateway(settings, store=store, clock=clock).client() as client:
        client.portal.call(store.append, notes("old"))
    clock.now += 100
    with BuiltGateway(settings, store=store, clock=clock).client() as client:
        client.get("/health")
        assert client.portal.call(store.sessions) == []


async def test_sessions_that_a_person_made_are_not_swept():
    clock = StillClock()
    store = MemoryStore(clock)
    await store.append(notes("captured"))
    await store.append(notes("own", kept=True))
    clock.now += 100
    sweep = Sweep(
        store, retention=50.0, clock=clock, log=open_log(style="json", stream=io.StringIO())
    )
    assert await sweep.once() == 1
    assert [one.session for one in await store.sessions()] == ["own"]


async def test_a_long_sweep_says_how_far_it_is():
    clock, lines = StillClock(), io.StringIO()

    class Slow(MemoryStore):
        async def purge(self, *, progress, **conditions):
            clock.now += 6
            progress(1, 2)
            progress(2, 2)
            return 2

    await Sweep(
        Slow(), retention=50.0, clock=clock, log=open_log(style="json", stream=lines)
    ).once()
    await asyncio.sleep(0)
    assert lines.getvalue().count("sweeping") == 1


async def test_nothing_is_restored_that_is_expired_and_not_swept_yet():
    clock = StillClock()
    settings = configured(store=StoreSettings(url="memory://", retention=100.0))
    built = BuiltGateway(settings, store=MemoryStore(clock), clock=clock)
    gateway = built.gateway()
    client = TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False)
    await client.say(Text(text="hello"))
    await client.run(2)
    clock.now += 90
    answer = await client.say(*client.next())
    assert answer.header("x-thoughtline-replay").startswith("restored=3; missed=0; ")
    clock.now += 101
    answer = await client.say(*client.next())
    assert answer.header("x-thoughtline-replay").startswith("restored=0; missed=4; ")


async def test_one_of_the_nodes_that_share_a_store_sweeps():
    class Leased(MemoryStore):
        leased = False

        async def lease(self, job, seconds):
            return self.leased

    clock = StillClock()
    store = Leased(clock)
    await store.append(notes("idle"))
    clock.now += 100
    sweep = Sweep(
        store, retention=50.0, clock=clock, log=open_log(style="json", stream=io.StringIO())
    )
    assert await sweep.once() == 0
    store.leased = True
    assert await sweep.once() == 1


async def test_a_look_alike_that_is_found_is_not_used():
    """The same words begin two conversations."""
    clock = StillClock()
    store = MemoryStore(clock)
    gateway = gateway_with("deepseek", "deepseek", serials=False, store=store)
    for exchanges in (2, 3):
        clock.now += 100
        await TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False).run(exchanges)
    assert [(one.events > 0, one.touched) for one in await store.sessions()] == [
        (True, 1200.0),
        (True, 1100.0),
    ]
