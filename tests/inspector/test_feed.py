"""The live feed: what is written, what runs, and how somebody comes back to it."""

import asyncio
import contextlib
import json

import pytest
from starlette.requests import Request

from inspector.feed_listener import QUICK, Heard, Stage, asked, listening, page_of
from inspector.sample_sessions import Session, thought
from stores.samples import turn
from support.waiting import eventually
from thoughtline.agents.log import open_log
from thoughtline.inspector import feed as feed_module
from thoughtline.log.events import EndpointLearned
from thoughtline.log.turns import Turn
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "a.db")
    made = Stage(store)
    yield made
    made.live_feed.close()
    await made.store.close()


async def test_what_is_written_is_told(stage):
    async with stage.feed() as feed:
        assert (await feed.next())[0] == "hello"
        await Session(stage.store, "s").turn("Hi", thought(), "Hello")
        heard = [await feed.next() for _ in range(5)]
    assert [data["type"] for _, data in heard] == [
        "turn_started",
        "user_message",
        "reasoning",
        "assistant_message",
        "turn_ended",
    ]
    assert {name for name, _ in heard} == {"event"}
    assert {data["session"] for _, data in heard} == {"s"}
    assert {data["turn"] for _, data in heard} == {"s-t1"}
    assert [data["seq"] for _, data in heard] == [0, 1, 2, 3, 4]


async def test_what_the_gateway_notes_for_itself_is_not_told(stage):
    async with stage.feed() as feed:
        await feed.next()
        quirk = EndpointLearned(endpoint="e", dialect="chat", model="*")
        await Session(stage.store, "thoughtline:learned").note(quirk)
        await Session(stage.store, "s").turn("Hi", "Hello")
        assert (await feed.next())[1]["session"] == "s"


DELETIONS = {  # what a person does: the session that it is about, what is told of it
    "/api/cache/reasoning?session=s": ("s", "forget"),
    "/api/cache/reasoning": (None, "forget"),
    "/api/log/reasoning?confirm=erase&session=s": ("s", "erase"),
    "/api/log/reasoning?confirm=erase": (None, "erase"),
    "/api/sessions/s": ("s", "purge"),
    "/api/tenants/T": (None, "purge"),
}


@pytest.mark.parametrize("how", DELETIONS)
async def test_what_is_deleted_is_told_when_it_is_done(stage, how):
    session, kind = DELETIONS[how]
    await stage.store.append(turn("s", "t", '"Hm."', keys=(b"k" * 16,)))
    await Session(stage.store, "other").turn("Hi", "Hello")
    async with stage.feed() as every, stage.feed("s") as one, stage.feed("other") as other:
        for feed in (every, one, other):
            await feed.next()
        await stage.delete(how)
        for feed in (every, one) if session else (every, one, other):
            name, data = await feed.next()
            assert (name, data["session"], data["kind"]) == ("deleted", session, kind)
        await Session(stage.store, "other").turn("Hi", "Hello")
        assert (await other.next())[0] == "event"
    async with stage.feed(after=int(every.last) - 1) as again:  # also to who was away
        assert [name for name, _ in await again.until("deleted")] == ["hello", "deleted"]


async def test_what_another_worker_deletes_is_told(tmp_path):
    stage, url = Stage(SqliteStore(tmp_path / "a.db")), f"sqlite:///{tmp_path}/a.db"
    await Session(stage.store, "s", tenant="local").turn("Hi", "Hello")
    async with stage.feed() as feed, open_log(url) as log:
        await feed.next()
        assert await log.delete("s")
        assert (await feed.next())[0] == "deleted"
    stage.live_feed.close()
    await stage.store.close()


async def test_who_has_just_come_may_come_back(stage):
    """Nothing is missed between the first message and the one after it."""
    await Session(stage.store, "s").turn("Hi", "Hello")
    async with stage.feed() as feed:
        assert (await feed.next())[0] == "hello"
        seen = feed.last
    await Session(stage.store, "t").turn("Hi", "Hello")
    async with stage.feed(after=int(seen)) as feed:
        await feed.next()
        assert feed.last is None  # what was missed comes first
        assert (await feed.next())[1]["session"] == "t"


async def test_nothing_that_was_said_or_thought_is_in_it(stage):
    async with stage.feed() as feed, stage.talk("said-canary") as answer:
        await feed.next()
        answer.say(reasoning_content="thought-canary")
        answer.say(content="answer-canary")
        answer.done()
        assert "canary" not in json.dumps(await feed.until("turn_closed"))


async def test_somebody_comes_back_to_all_sessions(stage):
    one, two = Session(stage.store, "one"), Session(stage.store, "two")
    async with stage.feed() as feed:
        await feed.next()
        await one.turn("Hi", "Hello")
        for _ in range(4):
            await feed.next()
        seen = feed.last
    await two.turn("Hi", "Hello")
    await one.turn("Again", "Hello")
    async with stage.feed(after=int(seen)) as feed:
        assert (await feed.next())[0] == "hello"
        heard = [await feed.next() for _ in range(8)]
        assert [(d["session"], d["seq"]) for _, d in heard] == [
            *(("two", n) for n in range(4)),
            *(("one", n) for n in range(4, 8)),
        ]


async def test_somebody_comes_back_to_one_session(stage):
    one, two = Session(stage.store, "one"), Session(stage.store, "two")
    await one.turn("Hi", "Hello")
    async with stage.feed("one", after=1) as feed:
        assert (await feed.next())[0] == "hello"
        assert [(await feed.next())[1]["seq"] for _ in range(2)] == [2, 3]
        assert feed.last == "3"
        await two.turn("Hi", "Hello")
        await one.turn("Again", "Hello")
        heard = [(await feed.next())[1] for _ in range(4)]
        assert [(d["session"], d["seq"]) for d in heard] == [("one", n) for n in range(4, 8)]


@pytest.mark.parametrize(
    ("query", "header", "first"),
    [
        (b"session=s", b"1", 2),
        (b"session=s&after=0", b"", 1),
        (b"session=s&after=0", b"2", 3),  # a browser that comes back knows better
        (b"session=s&after=-1", b"nonsense", 0),
    ],
)
async def test_a_browser_says_what_it_saw_last(stage, query, header, first):
    await Session(stage.store, "s").turn("Hi", "Hello")
    scope = {"type": "http", "method": "GET", "path": "/api/feed", "query_string": query}
    request = Request({**scope, "headers": [(b"last-event-id", header)]})
    answer = await page_of(stage.api.feed).respond(request)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    heard = Heard(answer.body_iterator)
    assert (await heard.next())[0] == "hello"
    assert (await heard.next())[1]["seq"] == first
    await answer.body_iterator.aclose()
    assert stage.live_feed.subscribers == 0


async def test_an_id_of_another_life_means_to_look_anew(stage):
    await Session(stage.store, "s").turn("Hi", "Hello")
    async with stage.feed(after=1_000_000) as feed:
        assert [name for name, _ in await feed.until("reset")] == ["hello", "reset"]
        where = int(feed.last)
    async with stage.feed(after=where) as feed:
        await feed.next()
        await Session(stage.store, "t").turn("Hi", "Hello")
        assert (await feed.next())[1]["session"] == "t"


async def test_who_was_away_for_too_long_looks_anew(stage, monkeypatch):
    monkeypatch.setattr(feed_module, "MAX_MISSED", 100)
    session = Session(stage.store, "s")
    await session.turn("Hi", "Hello")
    for _ in range(200):
        await session.turn("Hi", "Hello")
    async with stage.feed(after=1) as feed:
        heard = [name for name, _ in await feed.until("reset")]
    assert len(heard) < 700


# -- what runs -----------------------------------------------------------------------------------


async def test_a_turn_while_it_runs(stage):
    async with stage.feed() as feed:
        await feed.next()
        async with stage.talk() as answer:
            (opened,) = await feed.until("turn_opened")
            answer.say(reasoning_content="Let me see")
            thinking = (await feed.until("thought_opened"))[-1][1]
            answer.say(content="Well.")
            closed = (await feed.until("thought_closed"))[-1][1]
            text = (await feed.until("text"))[-1][1]
            answer.done()
            heard = await feed.until("turn_closed")
    assert opened[1]["thoughts"] == []
    assert (thinking["key"], thinking["turn"]) == ("part-0", opened[1]["turn"])
    (shown,) = thinking["thoughts"]
    assert (shown["state"], shown["seconds"]) == ("open", None)
    assert thinking["startedAt"] == shown["startedAt"] <= thinking["now"]
    assert closed["thoughts"][0]["state"] == "complete"
    assert closed["startedAt"] == thinking["startedAt"]
    assert text["spoke"] is True
    types = [data["type"] for name, data in heard if name == "event"]
    assert types[-1] == "turn_ended"  # it is written before it is gone
    turn = (await stage.api.reader.store.read(opened[1]["session"]))[0]
    assert turn.id == opened[1]["turn"]


@pytest.mark.parametrize("which", ["sessions", "session", "turn"])
async def test_who_is_shown_a_turn_is_told_of_its_end(stage, which):
    """Also of one that begins and ends between two looks."""
    stage.live_feed._interval = 3600
    async with stage.feed() as feed, listening(feed):
        async with stage.talk() as answer:
            answer.say(reasoning_content="Let me see")
            (running,) = stage.built.proxy.engine.recordings
            await eventually(lambda: running.snapshot().output)
            ids = {"id": running.session, "turn": running.turn}
            assert "running" in json.dumps(await asked(getattr(stage.api, which), **ids))
            heard = await feed.until("thought_opened")
            assert [data["kind"] for _, data in heard] == ["turn_opened", "thought_opened"]
            answer.done()
            await eventually(lambda: not running.running)
        for _ in range(2):  # told once
            await asked(stage.api.session, **ids)
        assert [data["kind"] for _, data in await feed.until("turn_closed")] == ["turn_closed"]
        assert (feed.waiting, stage.live_feed.version) == ([], 3)


async def test_a_refresh_in_mid_thought_shows_the_same_start(stage):
    async with stage.feed() as feed, listening(feed), stage.talk("A question") as answer:
        answer.say(reasoning_content="Let me see")
        live = (await feed.until("thought_opened"))[-1][1]
        page = await asked(stage.api.session, id=live["session"])
        (turn,) = page["turns"]
        assert (turn["running"], turn["outcome"], turn["ended"]) == (True, None, None)
        assert (page["session"]["status"], page["session"]["title"]) == ("running", "A question")
        assert (page["heads"], page["session"]["thoughts"]) == ([turn["id"]], 1)
        shown = turn["output"][0]["duration"]
        assert (shown["state"], shown["startedAt"]) == ("open", live["startedAt"])
        assert turn["output"][0]["text"] is None
        assert turn["thinking"] == {"seconds": None, "label": "Thinking"}
        async with stage.feed(live["session"]) as again:  # another page opens meanwhile
            told = (await again.until("turn_opened"))[-1][1]
            assert told["thoughts"][0]["startedAt"] == live["startedAt"]
        answer.say(content="So.")
        answer.done()
        await feed.until("turn_closed")
        (stored,) = (await asked(stage.api.session, id=live["session"]))["turns"]
    made = stored["output"][0]["duration"]
    assert (stored["running"], made["state"]) == (False, "complete")
    assert made["startedAt"] == live["startedAt"]
    assert stored["reasoningDurations"] == {"part-0": made["seconds"]}


async def test_an_old_session_that_runs_again_is_on_top(stage):
    for n in range(4):
        await Session(stage.store, f"s{n}", at=1_790_000_000.0 + n).turn("Hi", "Hello")

    async def running():
        return [("tenant-a", Turn(id="x", session="s0", started=1_790_009_999.0))]

    stage.api._session_list._find_running = running
    assert (await asked(stage.api.sessions))["sessions"][0]["id"] == "s0"
    page = await asked(stage.api.sessions, query=b"limit=2")
    assert [one["id"] for one in page["sessions"]] == ["s0", "s3", "s2"]
    assert (page["sessions"][0]["status"], page["sessions"][0]["turns"]) == ("running", 2)
    page = await asked(stage.api.sessions, query=b"limit=2&cursor=" + page["nextCursor"].encode())
    assert [one["id"] for one in page["sessions"]] == ["s1", "s0"]
    page = await asked(stage.api.sessions, query=b"limit=2&status=completed")
    assert [one["id"] for one in page["sessions"]] == ["s3", "s2"]


async def test_a_client_that_leaves_ends_its_turn(stage):
    async with stage.feed() as feed:
        await feed.next()
        async with stage.talk() as answer:
            answer.say(reasoning_content="Let me see")
            await feed.until("thought_opened")
            answer.pieces.put_nowait(None)  # the provider breaks off
            heard = await feed.until("turn_closed")
    assert "turn_ended" in [data.get("type") for _, data in heard]


# -- who looks -----------------------------------------------------------------------------------


async def test_with_nobody_looking_nothing_runs(stage):
    assert stage.live_feed._task is None
    async with stage.feed() as feed:
        await feed.next()
        task = stage.live_feed._task
        async with stage.feed() as other:
            await other.next()
            assert stage.live_feed._task is task
            assert stage.live_feed.subscribers == 2
    async with asyncio.timeout(60):
        await task
    assert stage.live_feed.subscribers == 0
    async with stage.feed() as feed:  # and again
        await feed.next()
        await Session(stage.store, "s").turn("Hi", "Hello")
        assert (await feed.next())[0] == "event"


async def test_silence_is_broken_by_a_comment(stage):
    async with stage.feed(keepalive=QUICK) as feed:
        await feed.next()
        assert await anext(feed.body) == b": still here\n\n"


async def test_the_end_ends_all_feeds(stage):
    async with stage.feed() as one, stage.feed("s") as two:
        await one.next()
        await two.next()
        stage.live_feed.close()
        for feed in (one, two):
            with pytest.raises(StopAsyncIteration):
                await feed.next()
    async with stage.feed() as late:
        await late.next()
        with pytest.raises(StopAsyncIteration):
            await late.next()


async def test_who_does_not_keep_up_is_let_go(stage, monkeypatch):
    monkeypatch.setattr(feed_module, "MAX_QUEUED", 20)
    async with stage.feed() as slow, stage.feed() as quick:
        await slow.next()
        await quick.next()
        session = Session(stage.store, "s")
        for _ in range(8):
            await session.turn("Hi", "Hello")
            for _ in range(4):
                await quick.next()
        assert stage.live_feed.subscribers == 1  # before anybody reads the rest, or goes
        heard = 0
        with contextlib.suppress(StopAsyncIteration):
            while heard < 32:
                await slow.next()
                heard += 1
        assert 20 <= heard < 32
        async with stage.feed(after=int(slow.last)) as again:
            await again.next()
            assert (await again.next())[1]["seq"] > 0
