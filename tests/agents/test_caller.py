"""Providers that fail: what is tried again, and what is told."""

import pytest

import thoughtline
from support.agents import MIDDLE, accepted, check, each_strict, provider, talking
from support.gateway import Answer, ScriptedWire
from thoughtline.agents import caller
from thoughtline.clock import SystemClock
from thoughtline.log.events import (
    Delta,
    Event,
    Outcome,
)
from thoughtline.testing import simulator


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


def _chat_answer(**message):
    told = {"role": "assistant", "content": "Well.", **message}
    return Answer(body={"id": "c", "choices": [{"message": told, "finish_reason": "stop"}]})


_BUSY = Answer(429, {"error": {"message": "busy"}})
_DEMAND = "The `reasoning_content` in the thinking mode must be passed back to the API."


async def test_a_thought_took_no_longer_because_the_request_had_to_wait(monkeypatch):
    """Its time is counted from the request that was answered, not from the one that was put off."""
    clock, waited = SystemClock(), []

    async def pause(_seconds):
        waited.append(clock.mono())

    monkeypatch.setattr(caller, "pause", pause)
    wire = ScriptedWire(_BUSY, _chat_answer(reasoning_content="Hm."))
    mine = thoughtline.Provider("mine", base_url="http://mine", model="m", retries=1)
    async with thoughtline.open(wire=wire, secret=b"s") as log:
        answer = await (await log.create(provider=mine)).run("Go")
        [thought] = answer.turns[-1].thoughts
        assert thought.timing.sent >= waited[0]


async def test_a_corrected_request_is_as_patient_as_the_first_one():
    demand = Answer(400, {"error": {"message": _DEMAND}})
    answers = [_chat_answer(), _BUSY, demand, _BUSY, _chat_answer(reasoning_content="Hm.")]
    wire = ScriptedWire(*answers)
    mine = thoughtline.Provider("mine", base_url="http://mine", model="m", retries=1)
    async with thoughtline.open(wire=wire, secret=b"s") as log:
        chat = await log.create(provider=mine)
        await chat.run("One")
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
        assert len(wire.sent) == 5


async def test_a_header_that_a_correction_needs_joins_the_provider_s_own():
    said = {"type": "message", "id": "m", "role": "assistant", "stop_reason": "end_turn"}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    content = [thought, {"type": "text", "text": "Well."}]
    fine = Answer(body={**said, "model": "claude-sonnet-5-5", "content": content})
    bound = "messages.1.content.0: thinking block is bound to a different conversation"
    wire = ScriptedWire(fine, Answer(400, {"error": {"message": bound}}), fine)
    mine = thoughtline.Provider(
        "anthropic",
        base_url="http://mine",
        dialect="messages",
        policy="anthropic",
        model="claude-sonnet-5-5",
        headers={"Anthropic-Beta": "own"},
    )
    async with thoughtline.open(wire=wire, secret=b"s") as log:
        chat = await log.create(provider=mine)
        await chat.run("One")
        answer = await chat.run("Two")
        assert answer.outcome is Outcome.COMPLETED, answer.reason
    sent = [value for name, value in wire.sent[-1].headers if name.lower() == "anthropic-beta"]
    assert sent == ["own,thinking-binding-controls-2026-08-01"]
