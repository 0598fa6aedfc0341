"""The turn loop: what is asked, run, recorded and shown, and what happens when things go wrong."""

import asyncio

import pytest

import thoughtline
from library_agents import TOOLS, check, provider, talking
from thoughtline.events import (
    AssistantMessage,
    Delta,
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    UserMessage,
)
from thoughtline.library import sending
from thoughtline.parts import Decision, Result, Text
from thoughtline.sessions import Session
from thoughtline.testing import Say, Think, Use, simulator

MIDDLE = {"gemini": 1}  # chunks that are in the middle of an answer; 9 for the others
STRICT = ("deepseek", "claude", "openai", "gemini", "mistral")
each_strict = pytest.mark.parametrize("name", STRICT)


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """How long the loop would have waited; it does not."""
    waited = []

    async def pause(seconds):
        waited.append(seconds)

    monkeypatch.setattr(sending, "pause", pause)
    return waited


def one_call(tool, arguments="{}"):
    """A model that calls a tool once, then says what it is."""

    def script(turn, sim):
        if turn % 2:
            return Think(f"so {sim.serial}"), Say(f"Done. [{sim.mark}]")
        return Think(f"hm {sim.serial}"), Say(f"Now. [{sim.mark}]"), Use(tool, arguments)

    return script


def results(answer):
    return [p for turn in answer.turns for p in turn.input if isinstance(p, Result)]


# -- what is shown and recorded ------------------------------------------------------------------


async def test_events_are_shown_as_they_are_written():
    async with talking("deepseek") as (chat, sim):
        run = chat.run("Please mend a.txt")
        seen = [event async for event in run]
        answer = await run
        written = [event for event in seen if isinstance(event, Event)]
        assert written == await chat.log.store.read(chat.id)
        assert [event.seq for event in written] == list(range(len(written)))
        kinds = [event.type for event in written]
        assert kinds[:6] == [
            "turn_started",
            "user_message",
            "reasoning",
            "tool_call",
            "tool_call",
            "turn_ended",
        ]
        assert kinds[6:9] == ["turn_started", "tool_result", "tool_result"]
        assert kinds[-3:] == ["reasoning", "assistant_message", "turn_ended"]
        assert {type(event) for event in seen} == {
            Event,
            ReasoningDelta,
            ReasoningEnd,
            TextDelta,
            ToolCallDelta,
        }
        assert answer.outcome is Outcome.COMPLETED
        assert answer.reason == ""
        assert answer.text.strip().startswith("All “green”")
        assert len(answer.turns) == len(sim.requests) == 3
        assert [t.text for t in answer.thoughts] == [e.value for e in sim.emitted]
        assert answer.usage.input > 0 and answer.usage.output > 0
        assert (answer.session, answer.turn) == (chat.id, chat.head)


async def test_deltas_add_up_to_what_is_written():
    async with talking("openai") as (chat, _):
        text, thoughts = "", ""
        async for event in chat.run("Go"):
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, ReasoningDelta):
                thoughts += event.text
        said = [p.text for turn in chat.turns for p in turn.output if isinstance(p, Text)]
        assert text == "".join(said)
        assert thoughts == "".join(t.text for turn in chat.turns for t in turn.thoughts)


async def test_output_is_recorded_in_the_order_it_came():
    async with talking("claude") as (chat, _):
        for _ in range(2):
            await chat.run("Go")
        bodies = [e.body() for e in await chat.log.store.read(chat.id)]
        kinds = [type(b) for b in bodies if isinstance(b, Reasoning | ToolCall | AssistantMessage)]
        # thought, text, thought, two calls: the fifth turn of the script
        assert kinds[-7:-2] == [Reasoning, AssistantMessage, Reasoning, ToolCall, ToolCall]


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

    async with talking("deepseek", tools=[read_file, search], most=2) as (chat, _):
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

    async with talking("deepseek", script=script, most=3) as (chat, sim):
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


# -- providers that fail -------------------------------------------------------------------------


@each_strict
@pytest.mark.parametrize("fault", ["500", "429", "503", "cut:0", "garbage"])
async def test_a_passing_fault_is_not_noticed(name, fault, pauses):
    async with talking(name, retries=2) as (chat, sim):
        sim.fail_next(fault)
        answer = await chat.run("Go")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        check(sim, chat.turns)
        if fault in ("429", "503"):
            assert pauses == [1.0]  # as the provider asked


@each_strict
@pytest.mark.parametrize("fault", ["500", "429", "cut", "cut:0"])
async def test_a_failure_ends_the_turn_and_the_session_goes_on(name, fault, pauses):
    async with talking(name, retries=1) as (chat, sim):
        await chat.run("One")
        sim.fail_next(fault, times=2)
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.FAILED
        assert answer.reason.startswith(fault if fault.isdigit() else "the upstream's answer broke")
        assert answer.text == ""
        sim._faults.clear()
        answer = await chat.run("Three")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        check(sim, [turn for turn in chat.turns if turn.outcome is Outcome.COMPLETED])
        last = sim.requests[-1].request.body
        assert b"Two" in last and b"Three" in last


@each_strict
async def test_an_answer_that_breaks_off_is_not_asked_for_twice(name):
    """What was shown cannot be taken back; its thoughts stay in the log and out of requests."""
    async with talking(name, retries=3) as (chat, sim):
        sim.fail_next(f"cut:{MIDDLE.get(name, 9)}")
        run = chat.run("Go")
        shown = [event async for event in run]
        answer = await run
        assert answer.outcome is Outcome.FAILED
        assert len(sim.requests) == 1
        assert any(isinstance(event, Delta) for event in shown)
        assert not [e for e in shown if isinstance(e, Event) and e.type == "assistant_message"]
        again = await chat.run()
        assert again.outcome is Outcome.COMPLETED, again.reason
        assert sim.requests[1].audit.exact == 0
        assert accepted(sim)


def accepted(sim):
    return [r.reply.status for r in sim.requests] == [200] * len(sim.requests)


async def test_a_refusal_is_told_in_the_providers_words():
    async with talking("deepseek", key="") as (chat, _):
        answer = await chat.use(provider(simulator("claude"), "claude-9")).run("Go")
        assert answer.outcome is Outcome.FAILED
        assert answer.reason.startswith("404: model: claude-9")


async def test_an_unreachable_provider():
    async with thoughtline.open() as log:
        nobody = thoughtline.Provider("mine", base_url="http://127.0.0.1:9", model="m", retries=1)
        chat = await log.create(provider=nobody)
        answer = await chat.run("Go")
        assert answer.outcome is Outcome.FAILED
        assert "cannot reach http://127.0.0.1:9/v1/chat/completions" in answer.reason


# -- cancel --------------------------------------------------------------------------------------


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


async def test_nothing_to_answer():
    async with talking("deepseek") as (chat, _):
        for _ in range(2):
            with pytest.raises(thoughtline.ThoughtlineError, match="nothing to answer"):
                await chat.run()
            await chat.run("Go")


async def test_the_log_folds_to_what_was_lived():
    async with talking("kimi-k3") as (chat, _):
        await chat.run("Go")
        folded = Session(chat.id).extend(await chat.log.store.read(chat.id))
        assert folded.path(chat.head) == chat.turns
        found = await chat.log.store.find("local", _names(chat))
        assert {memory.turn for memories in found.values() for memory in memories} == {
            turn.id for turn in chat.turns
        }


def _names(chat):
    """Under which names a gateway would look for these turns."""
    from thoughtline.matching import survey

    return survey(chat.turns).names()


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
                await chat.log.create(most=most)


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


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_write_is_finished_and_known_about_however_often_it_is_cancelled(times, tmp_path):
    async with talking("deepseek", url=f"sqlite:///{tmp_path}/a.db") as (chat, _):
        await chat.run("Go")
        ledger = chat._ledger
        note = ledger.draft(UserMessage(parts=(Text(text="noted"),)), chat.head)
        writing = asyncio.ensure_future(ledger.write([note]))
        await asyncio.sleep(0)
        for _ in range(times):
            writing.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert ledger.session.seq == (await chat.log.store.read(chat.id))[-1].seq
        assert (await chat.run("Again")).outcome is Outcome.COMPLETED
