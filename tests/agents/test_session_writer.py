"""Several writers of one session: all are told, and nothing is lost."""

import asyncio

import pytest

import thoughtline
from support.agents import TOOLS, check, provider, wired
from support.waiting import eventually
from thoughtline.log.events import Outcome
from thoughtline.testing import simulator


async def test_two_writers_are_told_and_nothing_is_lost(tmp_path):
    url, sim = f"sqlite:///{tmp_path}/agent.db", simulator("deepseek")
    setting = {"provider": provider(sim), "tools": TOOLS}
    async with (
        thoughtline.open(url, wire=wired(sim), secret=b"s") as one,
        thoughtline.open(url, wire=wired(sim), secret=b"s") as two,
    ):
        first = await one.create(**setting)
        await first.run("One")
        second = await two.resume(first.id, **setting)
        await first.run("Two")
        asked = len(sim.requests)
        with pytest.raises(thoughtline.Conflict, match=r"another writer was first.*refresh"):
            await second.run("Three")
        assert len(sim.requests) == asked  # nothing was sent
        await second.refresh()
        assert second.turns == first.turns
        answer = await second.run("Three")
        assert answer.outcome is Outcome.COMPLETED
        check(sim, second.turns)


async def test_somebody_writes_while_a_turn_is_under_way(tmp_path):
    """The turn is written to its end all the same; what comes after is another branch."""
    url, sim = f"sqlite:///{tmp_path}/agent.db", simulator("deepseek")
    other = None

    async def read_file(path: str, n: float) -> str:
        while True:  # until nobody else writes, either
            await other.refresh()
            try:
                await other.run("Me first")
                return "read"
            except thoughtline.Conflict:
                await asyncio.sleep(0)

    async with (
        thoughtline.open(url, wire=wired(sim), secret=b"s") as one,
        thoughtline.open(url, wire=wired(sim), secret=b"s") as two,
    ):
        first = await one.create(provider=provider(sim), tools=[read_file, *TOOLS[1:]])
        start = asyncio.Event()

        async def written():
            return len(await two.store.read(first.id)) >= 6

        async def wait_for_it():
            nonlocal other
            await eventually(written)
            other = await two.resume(first.id, provider=provider(sim), tools=TOOLS)
            start.set()

        waiting = asyncio.ensure_future(wait_for_it())

        async def permit(ask):
            await start.wait()
            return True

        with pytest.raises(thoughtline.Conflict):
            await first.use(permit=permit).run("Go")
        await waiting
        events = await one.store.read(first.id)
        assert [event.seq for event in events] == list(range(len(events)))
        session = await one.read(first.id)
        assert all(turn.outcome for turn in session.turns)
        again = await one.resume(first.id, provider=provider(sim), tools=TOOLS)
        answer = await again.run("And now")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert all(record.reply.status == 200 for record in sim.requests)
