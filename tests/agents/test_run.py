"""A run: awaited, iterated over, shared, left and cancelled."""

import asyncio

import pytest
from msgspec.structs import replace

import thoughtline
from support.agents import (
    MIDDLE,
    TOOLS,
    accepted,
    each_strict,
    results,
    talking,
)
from thoughtline.log.events import (
    Delta,
    Event,
    Outcome,
)


async def test_a_run_can_be_awaited_without_listening_and_again():
    async with talking("deepseek") as (chat, _):
        run = chat.run("Go")
        assert not run.done
        answer = await run
        assert run.done
        assert await run is answer
        assert [event async for event in run] == []


async def test_leaving_the_iteration_does_not_stop_the_run():
    async with talking("deepseek") as (chat, sim):
        run = chat.run("Go")
        async for event in run:
            if isinstance(event, Delta):
                break
        assert (await run).outcome is Outcome.COMPLETED
        assert len(sim.requests) == 3


@pytest.mark.timeout(60)
async def test_two_listeners_share_the_events_and_both_come_to_an_end():
    async with talking("deepseek") as (chat, _):
        run = chat.run("Go")

        async def listen():
            return [event async for event in run]

        heard = await asyncio.gather(listen(), listen())
        written = [event for half in heard for event in half if isinstance(event, Event)]
        log = await chat.log.store.read(chat.id)
        assert sorted(written, key=lambda event: event.seq) == log
        assert [event async for event in run] == []


@each_strict
async def test_cancel_in_the_middle_of_an_answer(name):
    async with talking(name, held=MIDDLE.get(name, 9)) as (chat, sim):
        wire = chat.log.wire
        run = chat.run("Go")
        waiting = asyncio.ensure_future(run._wait())
        await wire.reached.wait()
        run.cancel()
        answer = await waiting
        assert answer.outcome is Outcome.ABORTED
        assert answer.reason == "cancelled"
        assert answer.turns[-1].outcome is Outcome.ABORTED
        assert wire.left == 1
        wire.go.set()
        answer = await chat.run("Go on")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert sim.requests[1].audit.exact == 0
        assert accepted(sim)


@each_strict
async def test_cancel_while_tools_run(name):
    started, stopped = asyncio.Event(), []

    async def read_file(path: str, n: float) -> str:
        return "read"

    async def search(query: str, **more) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    async with talking(name, tools=[read_file, search, TOOLS[1]]) as (chat, sim):
        run = chat.run("Go")
        waiting = asyncio.ensure_future(run._wait())
        await started.wait()
        run.cancel()
        answer = await waiting
        assert answer.outcome is Outcome.ABORTED
        assert stopped == [True]
        assert chat.interrupted == []  # the log says what became of them
        assert "No result: the run was cancelled." in {r.content for r in results(answer)}
        chat.use(tools=TOOLS)
        answer = await chat.run("Go on")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert accepted(sim)


async def test_cancel_before_it_starts():
    async with talking("deepseek") as (chat, sim):
        run = chat.run("Go")
        run.cancel()
        answer = await run
        assert (answer.outcome, answer.turns) == (Outcome.ABORTED, ())
        assert sim.requests == []


async def test_whoever_waits_and_is_cancelled_takes_the_run_along():
    async with talking("deepseek", held=5) as (chat, _):
        for listen in (True, False):
            run = chat.run("Go")

            async def wait(run=run, listen=listen):
                if listen:
                    async for _ in run:
                        pass
                await run

            task = asyncio.ensure_future(wait())
            await chat.log.wire.reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert run.done
            assert chat.turns[-1].outcome is Outcome.ABORTED
            chat.log.wire.reached.clear()


async def test_closing_the_log_cancels_what_is_under_way():
    async with talking("deepseek", held=5) as (chat, _):
        run = chat.run("Go")
        waiting = asyncio.ensure_future(run._wait())
        await chat.log.wire.reached.wait()
    assert (await waiting).outcome is Outcome.ABORTED


async def test_one_run_at_a_time():
    async with talking("deepseek", held=5) as (chat, _):
        first = asyncio.ensure_future(chat.run("One")._wait())
        await chat.log.wire.reached.wait()
        with pytest.raises(thoughtline.ThoughtlineError, match="busy with another run"):
            await chat.run("Two")
        with pytest.raises(thoughtline.ThoughtlineError, match="busy"):
            chat.switch("")
        chat.log.wire.go.set()
        assert (await first).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("times", [2, 3, 4, 6])
async def test_somebody_impatient_cancels_more_than_once(times, tmp_path):
    async with talking("deepseek", url=f"sqlite:///{tmp_path}/a.db", held=9) as (chat, _):
        run = chat.run("Go")
        waiting = asyncio.ensure_future(run)
        await chat.log.wire.reached.wait()
        for _ in range(times):
            run.cancel()
            await asyncio.sleep(0)
        chat.log.wire.go.set()
        assert (await waiting).turns[-1].outcome is Outcome.ABORTED
        assert (await chat.run("Again")).outcome is Outcome.COMPLETED


async def test_an_answer_may_be_demanded():
    async with talking("claude") as (chat, _):
        answer = await chat.run("Go")
        assert answer.raise_for_outcome() is answer
        lost = chat.options.provider
        short = await chat.log.create(provider=lost, tools=TOOLS, max_exchanges=1)
        capped = await short.run("Go")
        with pytest.raises(thoughtline.RunFailed, match="its limit without an answer: 1") as caught:
            capped.raise_for_outcome()
        assert caught.value.answer is capped and caught.value.answer.outcome == "capped"
        chat.use(replace(lost, model="nope"))
        failed = await chat.run("Go on")
        with pytest.raises(thoughtline.RunFailed, match="the run failed: 404: model: nope"):
            failed.raise_for_outcome()
