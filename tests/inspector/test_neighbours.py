"""Several workers of one gateway: what runs in one is seen from all of them."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from inspector.listeners import Stage, asked, listening, until
from thoughtline.inspector import neighbours
from thoughtline.inspector.neighbours import Neighbours
from thoughtline.stores.memory import MemoryStore
from thoughtline.turns import Turn


@asynccontextmanager
async def answering(folder, answer):
    """A worker that can be asked."""
    before = len(list(folder.iterdir()))
    task = asyncio.ensure_future(answer())
    await until(lambda: len(list(folder.iterdir())) > before)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def workers(tmp_path):
    """Two of them, over one store."""
    store = MemoryStore()
    one, two = (Stage(store, meeting=tmp_path) for _ in range(2))
    async with answering(tmp_path, *one.live.beside), answering(tmp_path, *two.live.beside):
        yield one, two
        for stage in (one, two):  # nobody looks any more when the workers end
            stage.hub.close()
            await until(lambda task=stage.hub._task: task is None or task.done())


async def test_what_runs_in_one_is_shown_by_the_other(workers):
    one, two = workers
    async with one.talk("Who am I?") as answer:
        answer.say(reasoning_content="Let me see")
        (running,) = one.built.proxy.exchanges
        await until(lambda: running.glimpse().output)
        (listed,) = (await asked(two.api.sessions))["sessions"]
        assert (listed["status"], listed["title"]) == ("running", "Who am I?")
        (turn,) = (await asked(two.api.session, id=running.session))["turns"]
        ours = (await asked(one.api.session, id=running.session))["turns"]
        assert [turn] == ours
        assert turn["output"][0]["duration"]["state"] == "open"
        answer.done()
        await until(lambda: not running.running)
        (turn,) = (await asked(two.api.session, id=running.session))["turns"]
        assert (turn["running"], turn["outcome"]) == (False, "completed")


async def test_what_runs_in_one_is_told_by_the_other(workers):
    one, two = workers
    async with two.feed() as feed, listening(feed), one.talk() as answer:
        (opened,) = await feed.until("turn_opened")
        answer.say(reasoning_content="Let me see")
        (thinking,) = await feed.until("thought_opened")
        answer.say(content="Well.")
        closed = (await feed.until("thought_closed"))[-1][1]
        assert (await feed.until("text"))[-1][1]["spoke"] is True
        answer.done()
        heard = await feed.until("turn_closed")
    assert thinking[1]["startedAt"] == closed["startedAt"] is not None
    assert opened[1]["turn"] == heard[-1][1]["turn"]
    assert [data["type"] for name, data in heard if name == "event"][-1] == "turn_ended"


class Fake(SimpleNamespace):
    """A running turn that counts how often it is looked at."""

    looks = 0

    def glimpse(self):
        self.looks += 1
        return Turn(id=self.turn, session=self.session, started=float(self.looks))


def fake(turn="t1", pulse=()):
    return Fake(tenant="a", session="s", turn=turn, pulse=pulse, spoke=False)


async def test_a_turn_in_which_nothing_happened_is_not_sent_again(tmp_path):
    turn = fake()
    here, there = Neighbours(tmp_path, list), Neighbours(tmp_path, lambda: [turn])
    async with answering(tmp_path, there.answer):
        for _ in range(3):
            await here.look()
        assert [one.glimpse().started for one in here.running()] == [1.0]
        turn.pulse = (True,)
        await here.look()
        assert [(one.pulse, one.glimpse().started) for one in here.running()] == [((True,), 2.0)]
        assert turn.looks == 2


async def test_a_worker_that_is_gone_takes_its_turns_along(tmp_path):
    here, there = Neighbours(tmp_path, list), Neighbours(tmp_path, lambda: [fake()])
    async with answering(tmp_path, there.answer):
        await here.look()
        assert len(list(here.running())) == 1
    await here.look()
    assert list(here.running()) == []
    (tmp_path / "killed.sock").touch()  # it left its socket behind
    await here.look()
    assert list(here.running()) == []


async def test_a_worker_that_is_busy_is_as_it_was(tmp_path, monkeypatch):
    here, there = Neighbours(tmp_path, list), Neighbours(tmp_path, lambda: [fake()])
    free, over = asyncio.Event(), asyncio.Event()
    free.set()

    async def answer(reader, writer):
        await free.wait()
        await there._answer(reader, writer)
        over.set()

    async with await asyncio.start_unix_server(answer, tmp_path / "other.sock"):
        await here.look()
        assert len(list(here.running())) == 1
        there._own = list
        free.clear()
        over.clear()
        monkeypatch.setattr(neighbours, "PATIENCE", 0.05)
        await here.look()
        assert len(list(here.running())) == 1
        monkeypatch.undo()
        free.set()
        await over.wait()
        await here.look()
        assert list(here.running()) == []


async def test_nonsense_is_neither_believed_nor_answered(tmp_path):
    here, there = Neighbours(tmp_path, list), Neighbours(tmp_path, lambda: [fake()])

    async def babble(_, writer):
        writer.write(b"\xc1nonsense")
        writer.close()

    other = await asyncio.start_unix_server(babble, tmp_path / "other.sock")
    async with other, answering(tmp_path, there.answer):
        await here.look()
        assert [one.turn for one in here.running()] == ["t1"]
        (path,) = set(tmp_path.glob("*.sock")) - {tmp_path / "other.sock"}
        assert await neighbours._exchanged(path, b"\xc1nonsense") == b""
