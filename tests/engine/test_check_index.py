"""The look-up index is checked against the log, and made again from it."""

import sqlite3

import pytest
from msgspec.structs import replace

from stores.samples import turn
from support.gateway import InProcessGateway, SimWire, TurnClient
from thoughtline.engine.check_index import IndexReport, check_index
from thoughtline.gateway.retention import thoughts_only
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Text
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import simulator

SIMS = {
    "deepseek": ("chat", "deepseek"),
    "openai": ("responses", "openai"),
    "claude": ("messages", "anthropic"),
    "gemini": ("gemini", "gemini"),
}
"""Simulator → its dialect and policy."""

THINKING = {"claude": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
"""Fields that make a model think, where it does not by itself."""

KEY = b"a" * 16


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def execute(path, statement):
    with sqlite3.connect(path) as db:
        return db.execute(statement).fetchall()


def client_of(sim, store, **more):
    dialect, policy = SIMS[sim]
    gateway = InProcessGateway(SimWire(simulator(sim)), policy, store=store)
    model = gateway.wire.sim.models()[0]
    return TurnClient(gateway, dialect, model, keep=False, fields=THINKING.get(sim), **more)


async def branch(client, text):
    """Say something that is not part of the conversation; returns the replay header."""
    turns = list(client.turns)
    answer = await client.say(*client.next(), Text(text=text))
    client.turns = turns
    return answer.header("x-thoughtline-replay")


@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("lost", ["entries", "keys", "both"])
async def test_thoughts_are_restored_again_after_a_rebuild(sim, lost, path):
    store = SqliteStore(path)
    client = client_of(sim, store)
    await client.say(Text(text="hello"))
    await client.run(3)
    outputs = sum(1 for one in client.turns if one.thoughts)
    assert outputs > 1
    restored = (
        f"restored={outputs}; missed=0; placeholder=0; dropped=0; corrected=0; exact=0; tied=0"
    )
    assert await branch(client, "before") == restored
    assert await check_index(store) == IndexReport(sessions=1, turns=5)
    await store.close()
    statements = {
        "entries": "UPDATE batches SET memo = x'', entries = 0",
        "keys": "DELETE FROM lookup_keys",
    }
    for table, statement in statements.items():
        if lost in (table, "both"):
            execute(path, statement)

    store = SqliteStore(path)
    client.gateway = InProcessGateway(client.gateway.wire, SIMS[sim][1], store=store)
    report = await check_index(store)
    assert not report.clean
    assert (report.missing, report.different) == ((0, 5) if lost == "keys" else (5, 0))
    assert report.orphans > 0 if lost == "entries" else report.orphans == 0
    assert "restored=0" in await branch(client, "without the index")
    report = await check_index(store, rebuild=True)
    assert report.rebuilt == 5
    assert (await check_index(store)).clean
    assert await branch(client, "after") == restored
    await store.close()


async def test_a_rebuild_twice_writes_nothing(path):
    store = SqliteStore(path)
    client = client_of("deepseek", store)
    await client.say(Text(text="hello"))
    await client.run(2)
    execute(path, "DELETE FROM lookup_keys")
    assert (await check_index(store, rebuild=True)).rebuilt == 3
    again = await check_index(store, rebuild=True)
    assert (again.clean, again.rebuilt) == (True, 0)
    await store.close()


async def test_what_only_the_entry_has_is_kept(path):
    store = SqliteStore(path)
    client = client_of("deepseek", store, headers={"x-session-id": "mine"})
    await client.say(Text(text="hello"))
    await client.run(1)
    [summary] = await store.sessions()
    before = [one.entry for one in await store.index(summary.session)]
    assert all(entry.hints for entry in before)
    execute(path, "DELETE FROM lookup_keys")
    await check_index(store, rebuild=True)
    assert [one.entry for one in await store.index(summary.session)] == before
    await store.close()


async def test_entries_that_differ_are_corrected():
    store = MemoryStore()
    client = client_of("deepseek", store)
    await client.say(Text(text="hello"))
    await client.run(2)
    [summary] = await store.sessions()
    entries = [one.entry for one in await store.index(summary.session)]
    wrong = [
        replace(entries[0], outcome=Outcome.FAILED),
        replace(entries[1], parent="nobody", shape="x"),
        replace(entries[2], keys=()),
    ]
    stale = replace(entries[0], turn="gone")
    await store.reindex(summary.session, [*wrong, stale])
    report = await check_index(store)
    assert (report.missing, report.different, report.stale) == (0, 3, 1)
    assert report.differences == {"outcome": 1, "parent": 1, "thoughts": 1, "keys": 1}
    await check_index(store, rebuild=True)
    assert [one.entry for one in await store.index(summary.session)] == entries
    assert (await check_index(store)).clean


async def test_turns_without_what_was_said_are_counted():
    store = MemoryStore()
    batch = thoughts_only(turn("s", "t1", '"a"', keys=[KEY]))
    await store.append(replace(batch, index=()))
    report = await check_index(store, rebuild=True)
    assert (report.clean, report.unrecorded, report.rebuilt) == (True, 1, 0)
    assert await store.find("T", [KEY]) == {}


async def test_what_was_forgotten_stays_forgotten():
    store = MemoryStore()
    client = client_of("deepseek", store)
    await client.say(Text(text="hello"))
    await store.forget(ALL_ENTRIES)
    report = await check_index(store, rebuild=True)
    assert (report.clean, report.rebuilt, report.cleared) == (True, 0, 1)
    assert (await store.stats()).entries == 0


async def test_what_was_forgotten_comes_back_when_asked_for():
    store = MemoryStore()
    client = client_of("deepseek", store)
    await client.say(Text(text="hello"))
    before = await store.entries(thoughts=True)
    await store.forget(ALL_ENTRIES)
    report = await check_index(store, rebuild=True, restore=True)
    assert (report.clean, report.restored) == (True, 1)
    after = await store.entries(thoughts=True)
    assert [(e.turn, e.thoughts) for e in after] == [(e.turn, e.thoughts) for e in before]


async def test_what_was_erased_does_not_come_back():
    store = MemoryStore()
    client = client_of("deepseek", store)
    await client.say(Text(text="hello"))
    await store.erase(ALL_ENTRIES)
    report = await check_index(store, rebuild=True, restore=True)
    assert (report.clean, report.restored) == (True, 0)
    assert (await store.stats()).entries == 0


async def test_progress_is_told():
    store = MemoryStore()
    for n in range(3):
        await client_of("deepseek", store).say(Text(text=f"hello {n}"))
    told = []
    await check_index(store, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_a_session_that_cannot_be_read_is_counted(path):
    store = SqliteStore(path)
    await client_of("deepseek", store).say(Text(text="hello"))
    spoilt = "CAST(replace(CAST(said AS TEXT), 'completed', 'unheard_o') AS BLOB)"
    execute(path, f"UPDATE batches SET said = {spoilt}")
    report = await check_index(store)
    assert report.unreadable == 1
    await store.close()
