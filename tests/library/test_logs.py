"""Sessions in a store: made, resumed, forked, moved, shared with other processes."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thoughtline
from library_agents import TOOLS, check, provider, talking, wired
from thoughtline.clock import SystemClock
from thoughtline.events import Draft, Event, Outcome, SessionForked
from thoughtline.library import accounts, transfers
from thoughtline.library.transcripts import left_behind
from thoughtline.parts import Blob, Result
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import FrozenClock, simulator
from thoughtline.turns import Turn


async def lines_of(log, session, **options):
    return [line async for line in log.export_lines(session, **options)]


# -- create, resume, list ------------------------------------------------------------------------


async def test_what_is_created_is_there_once_something_was_said():
    async with talking("deepseek") as (chat, _):
        assert await chat.log.sessions() == []
        assert chat.turns == [] and chat.head == ""
        await chat.run("Go")
        [summary] = await chat.log.sessions()
        assert (summary.session, summary.tenant) == (chat.id, "local")
        folded = await chat.log.read(chat.id)
        assert folded.turns == chat.turns
        assert repr(chat) == f"Chat({chat.id!r}, head={chat.head!r})"


async def test_an_id_of_ones_own():
    async with talking("deepseek") as (chat, _):
        own = await chat.log.create(id="mine", provider=chat.options.provider)
        await own.run("Go")
        assert own.id == "mine"
        with pytest.raises(thoughtline.ThoughtlineError, match="'mine' is there already"):
            await chat.log.create(id="mine")


async def test_what_is_not_there():
    async with thoughtline.open() as log:
        for action in (log.resume("x"), log.read("x"), log.fork("x", "t")):
            with pytest.raises(thoughtline.ThoughtlineError, match="'x'"):
                await action
        with pytest.raises(thoughtline.ThoughtlineError, match="no session 'x'"):
            await lines_of(log, "x")
        chat = await log.create()
        with pytest.raises(thoughtline.ThoughtlineError, match="nobody to talk to"):
            await chat.run("Go")
        with pytest.raises(thoughtline.ThoughtlineError, match="no turn to fork at"):
            await chat.fork()
        with pytest.raises(thoughtline.ThoughtlineError, match="has no turn 't'"):
            chat.switch("t")


async def test_watching_and_deleting():
    async with talking("deepseek") as (chat, _):
        await chat.run("Go")
        seen = []
        async for event in chat.log.watch(chat.id):
            seen.append(event)
            if event.type == "turn_ended" and event.body().outcome is Outcome.COMPLETED:
                break
        assert [event.seq for event in seen] == list(range(len(seen)))
        fork = await chat.fork()
        assert not await chat.log.delete(chat.id)  # a fork goes on from it
        assert await chat.log.delete(fork.id)
        assert await chat.log.delete(chat.id)
        assert await chat.log.sessions() == []


# -- the tree ------------------------------------------------------------------------------------


async def test_a_fork_refers_and_copies_nothing():
    async with talking("openai") as (chat, sim):
        await chat.run("One")
        await chat.run("Two")
        middle = chat.turns[2].id
        fork = await chat.fork(middle)
        [event] = await chat.log.store.read(fork.id)
        assert event.body() == SessionForked(session=chat.id, turn=middle)
        assert fork.turns == chat.turns[:3]
        await fork.run("Elsewhere")
        again = await fork.fork(chat.turns[0].id)  # at a turn of the session before
        assert (await chat.log.store.read(again.id))[0].body().session == chat.id
        resumed = await chat.log.resume(fork.id, provider=chat.options.provider, tools=TOOLS)
        assert resumed.turns == fork.turns
        await resumed.use(system="Be brief.").run("And on")
        check(sim, resumed.turns)


async def test_a_fork_in_the_middle_of_a_tool_loop_says_that_there_is_no_result():
    async with talking("claude") as (chat, sim):
        await chat.run("One")
        first = chat.turns[0]
        fork = await chat.fork(first.id)
        assert fork.interrupted == list(first.calls)
        answer = await fork.run("Never mind")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        said = [part for part in answer.turns[0].input if isinstance(part, Result)]
        assert {result.content for result in said} == {
            "No result: the call was interrupted and has not been run again."
        }
        assert fork.interrupted == []
        check(sim, fork.turns)


async def test_branches_can_be_told_apart_and_switched():
    async with talking("deepseek") as (chat, _):
        first = await chat.run("One")
        left = await chat.run("Left")
        right = await chat.rewind(first.turn).run("Right")
        assert chat.heads == [left.turn, right.turn]
        assert chat.branches == [first.turn]
        assert [t.id for t in chat.switch(left.turn).turns[-len(left.turns) :]] == [
            t.id for t in left.turns
        ]
        with pytest.raises(thoughtline.ThoughtlineError, match="not on the way"):
            chat.rewind(right.turn)
        assert chat.rewind("").turns == []
        resumed = await chat.log.resume(chat.id, at=left.turn)
        assert resumed.head == left.turn
        assert (await chat.log.resume(chat.id)).head == right.turn


# -- two processes, and one that dies ------------------------------------------------------------


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
        with pytest.raises(thoughtline.Conflict, match=r"somebody else wrote to it.*refresh"):
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

        async def wait_for_it():
            nonlocal other
            while not (events := await two.store.read(first.id)) or len(events) < 6:
                await asyncio.sleep(0)
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


CRASH = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from library_agents import provider, wired
import thoughtline
from thoughtline.testing import simulator

async def read_file(path: str, n: float) -> str:
    return "done before"

async def search(query: str, **more) -> str:
    if sys.argv[3] == "tool":
        await asyncio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    sim = simulator("deepseek")
    wire = wired(sim)
    async with thoughtline.open(f"sqlite:///{sys.argv[2]}", wire=wire, secret=b"s") as log:
        chat = await log.create(id="it", provider=provider(sim), tools=[read_file, search])
        async for event in chat.run("Go"):
            if sys.argv[3] == "stream" and isinstance(event, thoughtline.ReasoningDelta):
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["stream", "tool"])
async def test_after_a_crash_the_log_is_whole_and_nothing_is_run_again(tmp_path, when):
    file = tmp_path / "agent.db"
    tests = Path(__file__).parents[1]
    died = await anyio.run_process(
        [sys.executable, "-c", CRASH, tests, file, when], check=False, stderr=None
    )
    assert died.returncode == -signal.SIGKILL
    sim, ran = simulator("deepseek", seed=1), []

    async def read_file(path: str, n: float) -> str:
        ran.append(path)

    async def search(query: str, **more) -> str:
        ran.append(query)

    async with thoughtline.open(f"sqlite:///{file}", wire=wired(sim), secret=b"s") as log:
        chat = await log.resume("it", provider=provider(sim), tools=[read_file, search])
        assert chat.turns[-1].outcome is None
        sim.script = lambda turn, sim: (thoughtline_say(sim),)
        if when == "stream":
            assert chat.interrupted == []
            answer = await chat.run()  # the message is there and waits for an answer
        else:
            assert [call.name for call in chat.interrupted] == ["search"]
            answer = await chat.run()
            said = [p.content for t in chat.turns for p in t.input if isinstance(p, Result)]
            assert said[0] == "done before"
            assert said[1].startswith("No result: the call was interrupted")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert ran == []
        assert chat.interrupted == []
        assert sim.requests[-1].reply.status == 200


def thoughtline_say(sim):
    from thoughtline.testing import Say

    return Say(f"I see. [{sim.mark}]")


# -- logs of a newer version ---------------------------------------------------------------------


def newer(turn: str) -> list[Draft]:
    """What a later version might have written."""
    clock = SystemClock()
    made = [
        ("dreamt", 1, '{"of": "sheep", "n": 1.50}'),
        ("assistant_message", 9, '{"parts": 7, "mood": "fine"}'),
        ("user_message", 1, '{"parts": [{"type":"text","text":"and","tone":"soft"}]}'),
    ]
    return [
        Draft(id=clock.new_id(), parent=turn, at=1.25, type=t, version=v, data=d)
        for t, v, d in made
    ]


async def test_events_of_a_newer_version_are_kept_and_skipped():
    async with talking("deepseek") as (chat, sim):
        await chat.run("One")
        store, id = chat.log.store, chat.id
        await store.append(Batch(session=id, tenant="local", drafts=tuple(newer(chat.head))))
        with pytest.raises(thoughtline.Conflict):
            await chat.run("Two")
        await chat.refresh()
        assert (await chat.log.read(id)).skipped == 2
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        check(sim, chat.turns)
        lines = await lines_of(chat.log, id)
        async with thoughtline.open() as other:
            await other.import_lines(lines)
            assert await other.store.read(id) == await store.read(id)
            assert await lines_of(other, id) == lines
        texts = [line for line in lines if '"dreamt"' in line]
        assert '"data":{"of": "sheep", "n": 1.50}' in texts[0]


# -- out and in ----------------------------------------------------------------------------------


async def test_an_imported_session_goes_on_as_if_nothing_had_happened():
    async with talking("claude-bound") as (chat, sim):
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        lines = await lines_of(chat.log, fork.id)
        async with thoughtline.open(wire=wired(sim), secret=b"secret") as other:
            assert await other.import_lines(line.encode() for line in lines) == [chat.id, fork.id]
            moved = await other.resume(
                fork.id, provider=provider(sim), tools=TOOLS, system="Be brief."
            )
            assert moved.turns == fork.turns
            await moved.run("Three")
            check(sim, moved.turns)


@pytest.mark.parametrize("name", ["deepseek", "openai", "gemini"])
async def test_memories_are_made_anew_as_they_were(name):
    """A gateway on the other store finds the same thoughts under the same names."""
    async with talking(name) as (chat, sim):
        await chat.run("One")
        sim.fail_next("500")
        await chat.run("Two")
        await chat.run("Three")
        lines = await lines_of(chat.log, chat.id)
        here = chat.log.store
        async with thoughtline.open() as other:
            await other.import_lines(lines)
            made = transfers.memories([await chat.log.read(chat.id)])
            names = [n for memory in made for n in memory.names]
            mine = await here.find("local", names)
            yours = await other.store.find("local", names)
            assert mine.keys() == yours.keys()
            assert {n: [m.turn for m in found] for n, found in mine.items()} == {
                n: [m.turn for m in found] for n, found in yours.items()
            }
            for n, memories in mine.items():
                for a, b in zip(memories, yours[n], strict=True):
                    assert (a.thoughts, a.parent, a.skipped) == (b.thoughts, b.parent, b.skipped)


async def test_importing_again_extends_and_never_overwrites():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        early = await lines_of(chat.log, chat.id)
        await chat.run("Two")
        late = await lines_of(chat.log, chat.id)
        for lines in (early, late, late, early):
            assert await other.import_lines(lines) == [chat.id]
        assert await lines_of(other, chat.id) == late


async def test_an_id_that_is_taken_is_a_conflict_or_gets_another_name():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        lines = await lines_of(chat.log, fork.id)
        taken = [line.replace('"One"', '"Eins"') for line in lines]
        await other.import_lines(taken[: len(await chat.log.store.read(chat.id)) + 1])
        with pytest.raises(thoughtline.Conflict, match=r"differs from event 1 on; nothing was"):
            await other.import_lines(lines)
        assert len(await other.sessions()) == 1
        first, second = await other.import_lines(lines, rename=True)
        assert first != chat.id
        assert second == fork.id
        moved = await other.resume(second)
        assert [t.id for t in moved.turns] == [t.id for t in fork.turns]
        assert (await other.store.read(second))[0].body().session == first


async def test_an_export_without_its_origin_needs_it_there():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        alone = await lines_of(chat.log, fork.id, alone=True)
        with pytest.raises(thoughtline.ThoughtlineError, match="neither in these lines nor here"):
            await other.import_lines(alone)
        await other.import_lines(await lines_of(chat.log, chat.id))
        assert await other.import_lines(alone) == [fork.id]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{"], "line 1 is no event"),
        (['{"thoughtline_export": 2}'], "export version 2"),
        (['{"session":"s"}'], "line 1 is no event of a session"),
        (["", '{"thoughtline_export":1}'], "line 2 is no event"),
    ],
)
async def test_lines_that_are_no_export(lines, says):
    async with thoughtline.open() as log:
        with pytest.raises(thoughtline.Unreadable, match=says):
            await log.import_lines(lines)


async def test_missing_lines_are_noticed():
    async with talking("deepseek") as (chat, _), thoughtline.open() as other:
        await chat.run("One")
        lines = await lines_of(chat.log, chat.id)
        with pytest.raises(thoughtline.Unreadable, match=r"line 3.*event 2, expected 1"):
            await other.import_lines([*lines[:2], *lines[3:]])
        assert await other.sessions() == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
DATA = JSON.map(json.dumps) | JSON.map(lambda v: json.dumps(v, indent=1, ensure_ascii=False))


@given(st.lists(st.tuples(st.text(min_size=1, max_size=9), DATA), min_size=1, max_size=6))
def test_every_event_comes_back_to_the_byte(facts):
    events = [
        Event(
            session="s",
            seq=seq,
            id=f"e{seq}",
            parent="",
            at=0.1 + seq,
            type=type,
            version=3,
            data=data,
        )
        for seq, (type, data) in enumerate(facts)
    ]
    lines = [transfers.line(event) for event in events]
    assert all(len(line.splitlines()) == 1 for line in lines)
    assert transfers.read_lines(lines) == {"s": events}


# -- accounts ------------------------------------------------------------------------------------


async def test_another_key_is_another_account():
    async with talking("openai") as (chat, sim):
        await chat.run("One")
        chat.use(provider(sim, key="another key"))
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        reasons = {ruling.get("reason") for ruling in answer.turns[0].replay}
        assert reasons == {"foreign account"}
        events = str(await chat.log.store.read(chat.id))
        assert "another key" not in events and "a key" not in events


def test_the_secret_lies_beside_the_file_and_stays(tmp_path):
    url = f"sqlite:///{tmp_path}/agent.db"
    made = accounts.secret(url, {})
    assert accounts.secret(f"{url}?timeout=3", {}) == made
    file = tmp_path / "agent.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["agent.secret"]
    assert accounts.secret("memory://", {}) != accounts.secret("memory://", {})
    assert accounts.fingerprint(made, "k") == accounts.fingerprint(made, "k") != "k"
    assert accounts.fingerprint(made, "") == ""
    file.write_bytes(b"short")
    with pytest.raises(thoughtline.ThoughtlineError, match="has 5 bytes, expected 32"):
        accounts.secret(url, {})
    with pytest.raises(thoughtline.ThoughtlineError, match="cannot be read or made"):
        accounts.secret(f"sqlite:///{file}/no/agent.db", {})


# -- pictures ------------------------------------------------------------------------------------


async def test_what_was_attached_for_another_api_is_not_shown_there():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    blob = Blob(kind="image_url", digest="d", raw=json.dumps(picture))
    here, there = simulator("vllm"), simulator("claude")
    async with thoughtline.open(wire=wired(here, there), secret=b"s") as log:
        chat = await log.create(provider=provider(here))
        answer = await chat.run("What is this?", blob)
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert picture in here.requests[-1].json["messages"][-1]["content"]
        answer = await chat.use(provider(there)).run("And now?")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert b"[image_url left out" in there.requests[-1].request.body


async def test_time_and_ids_can_be_given():
    sim, clock = simulator("deepseek"), FrozenClock()
    async with thoughtline.open(wire=wired(sim), clock=clock, secret=b"s") as log:
        chat = await log.create(provider=provider(sim))
        answer = await chat.run("Go")
        assert isinstance(log.store, MemoryStore)
        assert {turn.started for turn in answer.turns} == {clock.wall()}


def test_what_a_turn_left_behind_is_read_once_however_often_it_is_asked_for():
    """Each turn rules on all before it: read anew for each request, a session costs the cube."""
    looked = []

    class Ruled(dict):
        def get(self, *args):
            looked.append(args)
            return super().get(*args)

    turn = Turn(replay=(Ruled(action="dropped", memory="t1", reason="foreign model"),))
    assert left_behind(turn, {"t1": "key"}) == {"key": "foreign model"}
    seen = len(looked)
    assert left_behind(turn, {"t1": "other"}) == {"other": "foreign model"}
    assert left_behind(turn, {}) == {}
    assert len(looked) == seen > 0
