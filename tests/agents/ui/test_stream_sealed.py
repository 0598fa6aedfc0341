"""Sealed thoughts are seen while the model thinks: a part, a key, a duration, and no text."""

import pytest

from support.ticking_provider import ticking
from support.ui_chunks import check, unframed
from thoughtline.agents.ui import history, ui_stream
from thoughtline.agents.ui.chunks import MessageEncoder
from thoughtline.log.durations import thought_spans
from thoughtline.log.events import Event, ReasoningStart
from thoughtline.testing import Say, Think, Use


def script(turn, sim):
    if turn % 2:
        return Think(f"So that is it, then. {sim.serial}"), Say(f"Done. [{sim.mark}]")
    return Think(f"Let me look first. {sim.serial}"), Use("read_file", '{"path": "a.txt"}')


SEALED = {
    "openai": {},
    "codex": {},
    "xai": {},
    "claude-bound": {"options": {"thinking": {"type": "adaptive", "display": "omitted"}}},
}


def content_parts(chunks):
    """The message's parts as the AI SDK makes them, without the marks between its steps."""
    parts = {}
    for chunk in chunks:
        match chunk["type"]:
            case "text-start" | "reasoning-start":
                parts[chunk["id"]] = {"text": "", **chunk}
            case "text-delta" | "reasoning-delta":
                parts[chunk["id"]]["text"] += chunk["delta"]
            case "reasoning-end":
                parts[chunk["id"]]["providerMetadata"] = chunk["providerMetadata"]
            case "tool-input-start":
                parts[chunk["toolCallId"]] = chunk
    return list(parts.values())


@pytest.mark.parametrize("name", SEALED)
async def test_a_sealed_thought_has_a_part_while_the_model_thinks(name):
    async with ticking(name, script=script, **SEALED[name]) as chat:
        run = chat.run("Please mend a.txt")
        encoder, chunks, early = MessageEncoder("m"), [], []
        async for happening in run:
            made = encoder.feed(happening, chat.log.clock.wall())
            chunks += made
            if not isinstance(happening, Event):
                early += [chunk["type"] for chunk in made]
        chunks += encoder.end()
        answer = await run
        spans = thought_spans(*answer.turns)
        assert [span for span in spans if not span.summary]
        assert early.count("reasoning-start") == early.count("reasoning-end") == len(spans)
        assert early.index("reasoning-start") < early.index("tool-input-start")
        metadata = check(chunks)
        assert metadata["reasoningDurations"] == {span.key: span.seconds for span in spans}


@pytest.mark.parametrize("name", [*SEALED, "deepseek", "claude", "mistral", "openrouter", "kimi"])
async def test_parts_carry_their_id_and_their_duration(name):
    """As assistant-ui looks a duration up: by the item's id, else by the part's place."""
    async with ticking(name, script=script, **SEALED.get(name, {})) as chat:
        run = chat.run("Please mend a.txt")
        body = b"".join([part async for part in ui_stream(run, clock=chat.log.clock)])
        metadata, answer = check(unframed(body)), await run
        streamed = content_parts(unframed(body))
        (reloaded,) = [m for m in history(chat.tree).messages if m["role"] == "assistant"]
        stored = [part for part in reloaded["parts"] if part["type"] != "step-start"]
    for parts, durations in (
        (streamed, metadata["reasoningDurations"]),
        (stored, reloaded["metadata"]["reasoningDurations"]),
    ):
        thoughts = 0
        for index, part in enumerate(parts):
            if part["type"].startswith("reasoning"):
                own = part["providerMetadata"]["thoughtline"]
                key = own.get("itemId") or f"part-{index}"
                assert own["key"] == key
                assert own["duration"] == durations[key] >= 1
                assert part.get("duration", own["duration"]) == own["duration"]
                thoughts += 1
        assert thoughts == len(durations) >= 2
    reasoning = [part for part in stored if part["type"] == "reasoning"]
    ids = {part["providerMetadata"]["thoughtline"].get("itemId", "") for part in reasoning}
    assert ids == {thought.id for thought in answer.thoughts}
    assert all(part["duration"] for part in reasoning)


def test_a_start_without_text_or_end_is_aborted():
    encoder = MessageEncoder("m")
    chunks = encoder.feed(ReasoningStart("rs_1", 5.0), 5.0)
    assert [chunk["type"] for chunk in chunks][-2:] == ["reasoning-start", "message-metadata"]
    chunks += encoder.end()
    assert check(chunks)["reasoningStates"] == {"rs_1": "aborted"}
