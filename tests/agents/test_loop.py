"""The turn loop: what is asked, run, recorded and shown, and what happens when things go wrong."""

import asyncio

import pytest

import thoughtline
from support.agents import (
    TOOLS,
    check,
    each_strict,
    results,
    talking,
)
from thoughtline.log.events import (
    Outcome,
    UserMessage,
)
from thoughtline.log.parts import Decision, Text
from thoughtline.testing import Say, Think, Use


def one_call(tool, arguments="{}"):
    """A model that calls a tool once, then says what it is."""

    def script(turn, sim):
        if turn % 2:
            return Think(f"so {sim.serial}"), Say(f"Done. [{sim.mark}]")
        return Think(f"hm {sim.serial}"), Say(f"Now. [{sim.mark}]"), Use(tool, arguments)

    return script


# -- what is shown and recorded ------------------------------------------------------------------


async def test_a_log_is_all_that_is_needed():
    async with talking("gemini") as (chat, sim):
        await chat.run("One")
        again = await chat.log.resume(chat.id, provider=chat.options.provider, tools=TOOLS)
        assert again.turns == chat.turns
        await again.use(system="Be brief.").run("Two")
        check(sim, again.turns)


# -- tools ---------------------------------------------------------------------------------------


async def test_calls_run_at_the_same_time():
    both = asyncio.Barrier(2)

    async def read_file(path: str, n: float) -> str:
        await both.wait()
        return path

    async def search(query: str, limit: int, **more) -> str:
        await both.wait()
        return query

    async with talking("deepseek", tools=[read_file, search], max_exchanges=2) as (chat, _):
        answer = await chat.run("Go")
        assert len([r for r in results(answer) if not r.error]) >= 2


@each_strict
async def test_results_that_come_in_another_order_are_sent_in_order(name):
    last = asyncio.Event()

    async def read_file(path: str, n: float) -> str:
        await last.wait()
        return "first"

    async def search(query: str, limit: int, **more) -> str:
        last.set()
        return "second"

    async with talking(name, tools=[read_file, search, TOOLS[1]]) as (chat, sim):
        answer = await chat.run("Go")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        body = sim.requests[1].request.body
        assert body.index(b"first") < body.index(b"second")
        check(sim, chat.turns)


def broken(path: str = "", **more):
    raise OSError("no such disk")


async def silent(**more):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (thoughtline.tool(name="it")(broken), "Error: OSError: no such disk"),
        (thoughtline.tool(name="it", timeout=0.01)(silent), "Error: no answer within 0.01"),
        (thoughtline.tool(name="it")(lambda: "x" * 3_000_000), "[cut: 100,000 of 3,000,000"),
        (thoughtline.tool(name="it")(lambda: b"\0\xff" * 1000), "[binary data, 2,000 bytes"),
        (thoughtline.tool(name="other")(lambda: ""), "Error: there is no tool 'it'"),
        (thoughtline.tool(name="it")(lambda path: path), "Object missing required field `path`"),
    ],
    ids=["raises", "hangs", "huge", "binary", "unknown", "misfit"],
)
@each_strict
async def test_whatever_a_tool_does_the_model_is_told(name, tool, says):
    async with talking(name, tools=[tool], script=one_call("it")) as (chat, sim):
        answer = await chat.run("Go")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        [result] = results(answer)
        assert says in result.content
        assert len(sim.requests) == 2
        check(sim, chat.turns)


async def test_a_flood_of_calls_ends_at_the_limit():
    def script(turn, sim):
        return Think(f"again {sim.serial}"), Use("run", f'{{"command": "{sim.mark}"}}')

    async with talking("deepseek", script=script, max_exchanges=3) as (chat, sim):
        run = chat.run("Go")
        answer = await run
        assert answer.outcome is Outcome.CAPPED
        assert answer.reason == "3 exchanges, and no answer"
        assert len(sim.requests) == 3
        assert results(answer)[-1].content == "Not run: the limit of 3 exchanges was reached."
        assert [turn.outcome for turn in answer.turns] == [*["completed"] * 3, "capped"]
        sim.script = lambda turn, sim: (Think("well"), Say(f"Enough. [{sim.mark}]"))
        answer = await chat.run("Stop it")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        check(sim, [turn for turn in chat.turns if turn.output])


# -- permissions ---------------------------------------------------------------------------------


def decisions(turns):
    return [(p.verdict, p.reason) for t in turns for p in t.input if isinstance(p, Decision)]


async def test_permissions_are_asked_in_order_and_written_down():
    asked = []

    async def permit(ask):
        asked.append((ask.tool, ask.arguments, ask.session))
        await asyncio.sleep(0)
        return ("deny", "not today") if ask.tool == "search" else "allow"

    async with talking("deepseek", permit=permit) as (chat, sim):
        answer = await chat.run("Go")
        assert [name for name, _, _ in asked] == ["read_file", "search", "run"]
        assert asked[0][1]["n"] == 5.0
        assert asked[0][2] == chat.id
        assert decisions(answer.turns) == [("allow", ""), ("deny", "not today"), ("allow", "")]
        assert [r.content for r in results(answer) if r.error] == ["Denied: not today"]
        check(sim, chat.turns)


async def test_always_is_remembered_by_the_log_and_not_by_a_fork():
    asked = []

    def permit(ask):
        asked.append(ask.tool)
        return thoughtline.Verdict.ALWAYS

    async with talking("gemini", permit=permit) as (chat, _):  # without call ids
        for number in range(2):
            await chat.run(f"Go {number}")
        assert sorted(asked) == ["read_file", "run", "search"]
        resumed = await chat.log.resume(
            chat.id, provider=chat.options.provider, tools=TOOLS, permit=permit
        )
        await resumed.run("And now")
        assert len(asked) == 3
        assert ("allow", "always") in decisions(resumed.turns)
        fork = await chat.fork()
        await fork.run("Elsewhere")
        assert len(asked) > 3


async def test_a_callback_that_fails_fails_the_run():
    def permit(ask):
        raise RuntimeError("who knows")

    async with talking("deepseek", permit=permit) as (chat, _):
        with pytest.raises(RuntimeError, match="who knows"):
            await chat.run("Go")
        assert chat.turns[-1].outcome is Outcome.FAILED
        assert "who knows" in chat.turns[-1].reason
        chat.use(permit=lambda ask: True)
        answer = await chat.run("Try again")
        assert answer.outcome is Outcome.COMPLETED, answer.reason


# -- cancel --------------------------------------------------------------------------------------


async def test_nothing_to_answer():
    async with talking("deepseek") as (chat, _):
        for _ in range(2):
            with pytest.raises(thoughtline.ThoughtlineError, match="nothing to answer"):
                await chat.run()
            await chat.run("Go")


async def test_words_that_are_none_are_refused_and_half_characters_are_not():
    async with talking("deepseek") as (chat, sim):
        for words in (5, None, ["a"], b"a"):
            with pytest.raises(thoughtline.ThoughtlineError, match=type(words).__name__):
                chat.run(words)
        assert (await chat.run("half \ud83d")).outcome is Outcome.COMPLETED
        assert sim.requests[0].json["messages"][-1]["content"] == "half ?"


async def test_a_run_takes_at_least_one_exchange():
    async with talking("deepseek") as (chat, _):
        for most in (0, -1):
            with pytest.raises(thoughtline.ThoughtlineError, match="at least one exchange"):
                await chat.log.create(max_exchanges=most)


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_write_is_finished_and_known_about_however_often_it_is_cancelled(times, tmp_path):
    async with talking("deepseek", url=f"sqlite:///{tmp_path}/a.db") as (chat, _):
        await chat.run("Go")
        writer = chat._writer
        note = writer.draft(UserMessage(parts=(Text(text="noted"),)), chat.head)
        writing = asyncio.ensure_future(writer.write([note]))
        await asyncio.sleep(0)
        for _ in range(times):
            writing.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert writer.session.seq == (await chat.log.store.read(chat.id))[-1].seq
        assert (await chat.run("Again")).outcome is Outcome.COMPLETED
