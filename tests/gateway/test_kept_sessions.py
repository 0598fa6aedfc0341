"""A store that a gateway and a person share: what the gateway captured expires, nothing else does."""

import io

import thoughtline
from stores.samples import StillClock
from support.agents import TOOLS, lines_of, provider, wired
from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire
from thoughtline.gateway.retention import Sweep
from thoughtline.gateway.telemetry import open_log
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.spelling import write


async def captured(gateway, sim):
    talker = talker_of(sim.dialect, sim, model=sim.models()[0], echo="strip")
    head = {"authorization": f"Bearer {talker.key}", **talker.headers}
    answer = await gateway.post(talker.path, write(talker.request()), head)
    talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))
    return dict(answer.headers)["x-thoughtline-session"]


async def test_only_what_was_captured_is_swept_and_cleared(tmp_path):
    path, sim, clock = tmp_path / "shared.db", simulator("deepseek"), StillClock()
    clock.now = 4_000_000_000.0  # long after everything is written
    async with thoughtline.open(f"sqlite:///{path}", wire=wired(sim), secret=b"s") as log:
        chat = await log.create(provider=provider(sim), tools=TOOLS)
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        lines = [line.replace(chat.id, "moved") for line in await lines_of(log, chat.id)]
        await log.import_lines(lines)
        store = SqliteStore(path)
        gateway = InProcessGateway(SimWire(sim), "deepseek", store=store)
        session = await captured(gateway, sim)
        assert await store.read(session)

        await store.forget(ALL_ENTRIES)
        assert all(
            thought.text for turn in (await log.read(chat.id)).turns for thought in turn.thoughts
        )
        await chat.run("Three")  # written from the log, with all of its thoughts
        assert sim.requests[-1].audit.clean

        sweep = Sweep(store, retention=60.0, clock=clock, log=open_log(stream=io.StringIO()))
        await sweep.once()
        left = {one.session for one in await log.sessions()}
        assert {chat.id, fork.id, "moved"} <= left
        assert session not in left
        await store.close()
