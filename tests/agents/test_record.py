"""A turn as it is written while it happens."""

from support.agents import talking
from thoughtline.log.events import (
    AssistantMessage,
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from thoughtline.log.parts import Text
from thoughtline.log.sessions import Session


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
            ReasoningStart,
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


async def test_the_log_folds_to_what_was_lived():
    async with talking("kimi-k3") as (chat, _):
        await chat.run("Go")
        folded = Session(chat.id).extend(await chat.log.store.read(chat.id))
        assert folded.path(chat.head) == chat.turns
        found = await chat.log.store.find("local", _names(chat))
        assert {entry.turn for entries in found.values() for entry in entries} == {
            turn.id for turn in chat.turns
        }


def _names(chat):
    """Under which names a gateway would look for these turns."""
    from thoughtline.replay.match import request_path

    return request_path(chat.turns).lookup_keys()
