"""The UI message stream: every chunk in its place, durations as stored, failures inside it."""

import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.ticking_provider import ticking
from support.ui_chunks import NAMES, check, unframed
from thoughtline.agents.ui import HEADERS, ui_stream
from thoughtline.agents.ui.chunks import MessageEncoder
from thoughtline.errors import StoreError
from thoughtline.log.durations import reasoning_durations, total_seconds
from thoughtline.log.events import (
    Event,
    Outcome,
    ReasoningDelta,
)
from thoughtline.testing import Say, Think, Use


def script(turn, sim):
    if turn % 2:
        return Think(f"So that is it, then. {sim.serial}"), Say(f"Done. [{sim.mark}]")
    return Think(f"Let me look first. {sim.serial}"), Use("read_file", '{"path": "a.txt"}')


@pytest.mark.parametrize("name", NAMES)
async def test_a_run_is_a_message(name):
    async with ticking(name, script=script) as chat:
        run = chat.run("Please mend a.txt")
        chunks = unframed(b"".join([part async for part in ui_stream(run, clock=chat.log.clock)]))
        metadata, answer = check(chunks), await run
        assert chunks[0] == {"type": "start", "messageId": answer.turns[0].id}
        assert chunks[-1] == {"type": "finish"}
        assert [c["type"] for c in chunks].count("start-step") == 2
        assert "".join(c["delta"] for c in chunks if c["type"] == "text-delta") == answer.text
        [used] = [c for c in chunks if c["type"] == "tool-input-available"]
        assert used["input"] == {"path": "a.txt"} and used["toolName"] == "read_file"
        [output] = [c for c in chunks if c["type"] == "tool-output-available"]
        assert output["output"] == "the text of a.txt"
        stored = reasoning_durations(*answer.turns)
        assert metadata.get("reasoningDurations", {}) == stored
        assert metadata.get("reasoningTotal") == total_seconds(*answer.turns)
        keys = [
            c["providerMetadata"]["thoughtline"]["key"]
            for c in chunks
            if c["type"] == "reasoning-start"
        ]
        assert set(keys) <= stored.keys()
        assert keys or not any(thought.text for thought in answer.thoughts)
        assert set(metadata.get("reasoningStates", {"": "done"}).values()) == {"done"}


@pytest.mark.parametrize("name", ["deepseek", "claude", "mistral", "openrouter"])
async def test_a_thought_ends_when_it_ends_and_not_with_its_turn(name):
    async with ticking(name, script=script) as chat:
        encoder, types, early = MessageEncoder("m"), [], {}
        async for happening in (run := chat.run("Please mend a.txt")):
            for chunk in encoder.feed(happening, chat.log.clock.wall()):
                types.append(chunk["type"])
                if not isinstance(happening, Event):
                    early |= chunk.get("messageMetadata", {}).get("reasoningDurations", {})
        stored = reasoning_durations(*(await run).turns)
        assert early and early.items() <= stored.items()
        ended = types.index("reasoning-end")
        assert types[ended + 1] == "message-metadata"
        assert ended < types.index("tool-input-start")


async def test_a_timer_may_count_from_the_moment_the_thought_is_seen():
    async with ticking("claude", script=script) as chat:
        encoder = MessageEncoder("m")
        async for happening in (run := chat.run("Go")):
            told = encoder.feed(happening, chat.log.clock.wall())
            if any(chunk["type"] == "reasoning-start" for chunk in told):
                [live] = [c["messageMetadata"] for c in told if c["type"] == "message-metadata"]
                [started] = live["reasoningStartedAt"].values()
                assert abs(started / 1000 - chat.log.clock.wall()) < 10
                assert set(live["reasoningStates"].values()) == {"thinking"}
        await run
        assert encoder.end()[-1] == {"type": "finish"}


async def test_a_cancelled_run_is_an_abort():
    async with ticking("deepseek", script=script) as chat:
        run = chat.run("Go")
        body = b""
        async for part in ui_stream(run):
            body += part
            if b"reasoning-delta" in part:
                run.cancel()
        chunks = unframed(body)
        metadata = check(chunks)
        assert chunks[-1] == {"type": "abort"}
        answer = await run
        assert answer.outcome is Outcome.ABORTED
        assert metadata.get("reasoningDurations", {}) == reasoning_durations(*answer.turns)


async def test_who_stops_reading_cancels_the_run():
    async with ticking("deepseek", script=script) as chat:
        run = chat.run("Go")
        stream = ui_stream(run)
        await anext(stream)
        await stream.aclose()
        await run.over()
        assert chat.turns[-1].outcome is Outcome.ABORTED


class Broken:
    """A run that breaks."""

    done = True

    def __init__(self, error, *before):
        self.error, self.before = error, before

    async def __aiter__(self):
        for happening in self.before:
            yield happening
        raise self.error

    def cancel(self):
        raise AssertionError


async def test_a_failure_is_told_discreetly():
    broken = Broken(StoreError("/srv/secret.db"), ReasoningDelta("hm"))
    chunks = unframed(b"".join([part async for part in ui_stream(broken)]))
    assert check(chunks)["reasoningStates"] == {"part-0": "aborted"}
    assert chunks[-1] == {"type": "error", "errorText": "The model could not answer."}
    broken = Broken(StoreError("the disk is full"))
    chunks = unframed(b"".join([part async for part in ui_stream(broken, explain=str)]))
    assert chunks == [{"type": "start"}, {"type": "error", "errorText": "the disk is full"}]


async def test_an_accident_is_told_and_raised():
    stream = ui_stream(Broken(ZeroDivisionError()))
    assert unframed(await anext(stream))[-1]["type"] == "error"
    with pytest.raises(ZeroDivisionError):
        await anext(stream)


def test_the_example(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples"))
    sys.modules.pop("ui_stream", None)
    import ui_stream as example

    with TestClient(example.app) as client:
        for words in ("Hello", "And again"):
            said = {"role": "user", "parts": [{"type": "text", "text": words}]}
            response = client.post("/api/chat", json={"id": "c", "messages": [said]})
            assert response.headers.items() >= HEADERS.items() - {("content-type", "")}
            chunks = unframed(response.content)
            assert check(chunks)["reasoningDurations"]
            assert chunks[-1] == {"type": "finish"}
