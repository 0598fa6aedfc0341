"""A turn of every dialect is seen while it runs, and from all workers of one gateway."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from inspector.feed_listener import Stage, asked, listening
from support.gateway import Answer, InProcessGateway, SimWire
from support.waiting import eventually
from thoughtline.inspector import running_turns
from thoughtline.inspector.running_turns import PeerWorkers, RunningTurns
from thoughtline.log.durations import thought_spans, thought_state
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Request, simulator

# -- in this worker ------------------------------------------------------------------------------

ASKED = {
    "deepseek": (
        "/v1/chat/completions",
        {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]},
    ),
    "claude": (
        "/v1/messages",
        {
            "model": "claude-opus-4-8",
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [{"role": "user", "content": "hi"}],
        },
    ),
    "openai": ("/v1/responses", {"model": "gpt-5.2", "input": "hi", "store": False}),
    "gemini": (
        "/v1beta/models/{model}:streamGenerateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        },
    ),
}
POLICIES = {"claude": "anthropic"}


class Pieces(Answer):
    """An answer in the pieces that the provider sends, with a look after each."""

    def __init__(self, reply, look):
        super().__init__(reply.status, reply.body, reply.headers)
        self._pieces, self._look = list(reply.chunks), look

    async def chunks(self):
        for piece in self._pieces:
            yield piece
            self._look()


class Watched(SimWire):
    def __init__(self, sim):
        super().__init__(sim)
        self.look = None

    @asynccontextmanager
    async def send(self, request):
        place = urlsplit(request.url)
        head = {name.lower(): value for name, value in request.headers}
        reply = self.sim.answer(Request("POST", place.path, head, request.body, place.query))
        yield Pieces(reply, self.look)


@pytest.mark.parametrize("name", ASKED)
async def test_a_running_turn(name):
    wire = Watched(simulator(name))
    gateway = InProcessGateway(wire, POLICIES.get(name, name))
    seen, views = RunningTurns(gateway.proxy.engine.recordings), []
    wire.look = lambda: views.append([turn for _, turn in seen.turns()])
    path, body = ASKED[name]
    if name == "gemini":
        path = path.replace("{model}", wire.sim.models()[0])
    else:
        body = {**body, "model": wire.sim.models()[0], "stream": True}
    answer = await gateway.post(path, body)
    assert answer.status == 200, answer.body
    (session,) = await gateway.store.sessions()
    stored = Session(session.session).extend(await gateway.store.read(session.session)).turns[-1]
    running = [view[0] for view in views if view]
    assert {turn.id for turn in running} == {stored.id}
    assert {turn.session for turn in running} == {session.session}
    states = [
        [thought_state(span, running=True) for span in thought_spans(turn)] for turn in running
    ]
    assert ["open"] in states  # somebody who looked saw it think
    starts = {span.at for turn in running for span in thought_spans(turn)}
    assert starts == {span.at for span in thought_spans(stored)}
    assert seen.turns() == []  # and now it is written


async def test_a_whole_answer_has_nothing_to_see_before_it_is_there():
    wire = Watched(simulator("deepseek"))
    gateway = InProcessGateway(wire, "deepseek")
    seen, views = RunningTurns(gateway.proxy.engine.recordings), []
    wire.look = lambda: views.append([turn for _, turn in seen.turns()])
    await gateway.post(*ASKED["deepseek"])
    assert [turn.output for view in views for turn in view] == [()] * len(views)
    assert seen.turns() == []


# -- in other workers ----------------------------------------------------------------------------


@asynccontextmanager
async def answering(folder, answer):
    """A worker that can be asked."""
    before = len(list(folder.iterdir()))
    task = asyncio.ensure_future(answer())
    await eventually(lambda: len(list(folder.iterdir())) > before)
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
    one, two = (Stage(store, socket_folder=tmp_path) for _ in range(2))
    async with answering(tmp_path, *one.running.tasks), answering(tmp_path, *two.running.tasks):
        yield one, two
        for stage in (one, two):  # nobody looks any more when the workers end
            stage.live_feed.close()
            await eventually(lambda task=stage.live_feed._task: task is None or task.done())


async def test_what_runs_in_one_is_shown_by_the_other(workers):
    one, two = workers
    async with one.talk("Who am I?") as answer:
        answer.say(reasoning_content="Let me see")
        (running,) = one.built.proxy.engine.recordings
        await eventually(lambda: running.snapshot().output)
        (listed,) = (await asked(two.api.sessions))["sessions"]
        assert (listed["status"], listed["title"]) == ("running", "Who am I?")
        (turn,) = (await asked(two.api.session, id=running.session))["turns"]
        ours = (await asked(one.api.session, id=running.session))["turns"]
        assert [turn] == ours
        assert turn["output"][0]["duration"]["state"] == "open"
        answer.done()
        await eventually(lambda: not running.running)
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

    def snapshot(self):
        self.looks += 1
        return Turn(id=self.turn, session=self.session, started=float(self.looks))


def fake(turn="t1", version=()):
    return Fake(tenant="a", session="s", turn=turn, version=version, spoke=False)


async def test_a_turn_in_which_nothing_happened_is_not_sent_again(tmp_path):
    turn = fake()
    here, there = PeerWorkers(tmp_path, list), PeerWorkers(tmp_path, lambda: [turn])
    async with answering(tmp_path, there.serve):
        for _ in range(3):
            await here.refresh()
        assert [one.snapshot().started for one in here.running()] == [1.0]
        turn.version = (True,)
        await here.refresh()
        assert [(one.version, one.snapshot().started) for one in here.running()] == [((True,), 2.0)]
        assert turn.looks == 2


async def test_a_worker_that_is_gone_takes_its_turns_along(tmp_path):
    here, there = PeerWorkers(tmp_path, list), PeerWorkers(tmp_path, lambda: [fake()])
    async with answering(tmp_path, there.serve):
        await here.refresh()
        assert len(list(here.running())) == 1
    await here.refresh()
    assert list(here.running()) == []
    (tmp_path / "killed.sock").touch()  # it left its socket behind
    await here.refresh()
    assert list(here.running()) == []


async def test_a_worker_that_is_busy_is_as_it_was(tmp_path, monkeypatch):
    here, there = PeerWorkers(tmp_path, list), PeerWorkers(tmp_path, lambda: [fake()])
    free, over = asyncio.Event(), asyncio.Event()
    free.set()

    async def answer(reader, writer):
        await free.wait()
        await there._answer(reader, writer)
        over.set()

    async with await asyncio.start_unix_server(answer, tmp_path / "other.sock"):
        await here.refresh()
        assert len(list(here.running())) == 1
        there._own = list
        free.clear()
        over.clear()
        monkeypatch.setattr(running_turns, "PEER_TIMEOUT", 0.05)
        await here.refresh()
        assert len(list(here.running())) == 1
        monkeypatch.undo()
        free.set()
        await over.wait()
        await here.refresh()
        assert list(here.running()) == []


async def test_nonsense_is_neither_believed_nor_answered(tmp_path):
    here, there = PeerWorkers(tmp_path, list), PeerWorkers(tmp_path, lambda: [fake()])

    async def babble(_, writer):
        writer.write(b"\xc1nonsense")
        writer.close()

    other = await asyncio.start_unix_server(babble, tmp_path / "other.sock")
    async with other, answering(tmp_path, there.serve):
        await here.refresh()
        assert [one.turn for one in here.running()] == ["t1"]
        (path,) = set(tmp_path.glob("*.sock")) - {tmp_path / "other.sock"}
        assert await running_turns._roundtrip(path, b"\xc1nonsense") == b""


# -- on other nodes ------------------------------------------------------------------------------


class Board(MemoryStore):
    """A store in which nodes show what runs on them, while somebody looks."""

    shared = True

    def __init__(self):
        super().__init__()
        self.looked_at, self.shown = False, {}

    async def show_running(self, node, turns):
        if self.looked_at and turns is not None:
            self.shown[node] = turns
        return self.looked_at

    async def look_at_running(self, node):
        self.looked_at = True
        return {other: turns for other, turns in self.shown.items() if other != node}


def runs(turn):
    """A turn that runs in this process."""
    return SimpleNamespace(
        running=True,
        tenant="T",
        session="s",
        turn=turn,
        version=(True,),
        spoke=False,
        snapshot=lambda: Turn(id=turn, session="s"),
    )


async def test_a_node_shows_its_turns_while_somebody_looks(loop_clock):
    store = Board()
    here, there = RunningTurns([], store=store), RunningTurns([runs("t1")], store=store)
    [serve] = there.tasks
    serving = asyncio.create_task(serve())
    try:
        await loop_clock.advance(running_turns.SHOW_EVERY)
        assert store.shown == {}  # nobody looks: nothing is shown
        await here.refresh()
        for _ in range(2):  # that somebody looks is heard in one round, and followed in the next
            await loop_clock.advance(running_turns.SHOW_EVERY)
        await here.refresh()
        assert [(tenant, turn.id) for tenant, turn in here.turns()] == [("T", "t1")]
        assert [turn.id for _, turn in there.turns()] == ["t1"]
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
