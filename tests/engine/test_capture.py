"""Answers become events: what is written of an input and an output, and what a turn starts with."""

from support.stored_conversations import ask, call, say, target, thought
from thoughtline.clock import SystemClock
from thoughtline.engine.capture import Capture, input_events, output_parts, started_turn
from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    PermissionDecision,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEnded,
    UserMessage,
)
from thoughtline.log.parts import Decision, Result
from thoughtline.replay.match import request_path
from thoughtline.replay.plan import ReplayPlan

ORIGIN = target().origin


def test_words_that_follow_one_another_are_one_message():
    result, decision = Result(content="ok", call="c"), Decision(call="c", verdict="allow")
    parts = [ask("a"), ask("b"), result, decision, ask("c")]
    assert input_events(parts) == [
        UserMessage(parts=(ask("a"), ask("b"))),
        ToolResult(result=result),
        PermissionDecision(decision=decision),
        UserMessage(parts=(ask("c"),)),
    ]


def test_an_output_is_what_was_canonical_in_the_order_it_came():
    hm = thought("hm", ORIGIN)
    events = [
        ReasoningDelta(text="hm"),
        Reasoning(thought=hm),
        TextDelta(text="Now."),
        AssistantMessage(parts=(say("Now."),)),
        ToolCall(call=call("ls")),
    ]
    assert output_parts(events) == [hm, say("Now."), call("ls")]
    capture = Capture(
        path=request_path(()),
        replay_plan=ReplayPlan(decisions=()),
        origin=ORIGIN,
        tenant="t",
        clock=SystemClock(),
    )
    capture.take(events[:2])
    assert capture.output == [hm]
    capture.take([*events[2:], TurnEnded(outcome=Outcome.COMPLETED)])
    assert capture.output == output_parts(events)


def test_decisions_that_the_turn_before_has_are_only_counted():
    made = tuple(ReplayDecision(turn=n, action=Action.RESTORED, entry=f"t{n}") for n in range(3))
    plan = ReplayPlan(decisions=made)
    assert started_turn(ORIGIN, plan, 0).replay == made
    again = started_turn(ORIGIN, plan, 2)
    assert (again.replay, again.repeated) == (made[2:], 2)
    assert again.tally
