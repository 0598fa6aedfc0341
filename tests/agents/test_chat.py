"""The head of a chat: forks, branches, and what is said in them."""

import pytest

import thoughtline
from support.agents import TOOLS, check, talking
from thoughtline.log.events import Outcome, SessionForked
from thoughtline.log.parts import Result


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


async def test_who_talks_on_in_a_fork_uses_the_session_that_it_goes_on_from():
    async with talking("openai") as (chat, _):
        await chat.run("One")
        fork = await chat.fork()
        await fork.run("Two")
        used = {one.session: one.touched for one in await chat.log.store.sessions()}
        assert used[chat.id] >= fork.turns[-1].started
