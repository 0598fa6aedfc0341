"""The UI message stream: every chunk in its place, durations as stored, failures inside it."""

import json
import sys
from pathlib import Path

import httpx2
import pytest

from thoughtline.durations import reasoning_durations, total
from thoughtline.errors import StoreError
from thoughtline.events import (
    AssistantMessage,
    Event,
    Outcome,
    Reasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    TurnEnded,
    TurnStarted,
    draft,
)
from thoughtline.fronts import HEADERS, ui_stream
from thoughtline.fronts.chunks import Encoder
from thoughtline.parts import Call, Carrier, Text, Thought, Timing
from thoughtline.testing import Say, Think, Use
from ticking import ticking
from ui_chunks import NAMES, merged, unframed


def script(turn, sim):
    if turn % 2:
        return Think(f"So that is it, then. {sim.serial}"), Say(f"Done. [{sim.mark}]")
    return Think(f"Let me look first. {sim.serial}"), Use("read_file", '{"path": "a.txt"}')


def check(chunks):
    """The grammar of the protocol; gives the metadata at the end."""
    opened, calls, step, metadata = {}, {}, False, {}
    assert chunks[0]["type"] == "start"
    for chunk in chunks[1:]:
        kind, _, stage = chunk["type"].rpartition("-")
        if kind in ("text", "reasoning"):
            assert step
            if stage == "start":
                assert chunk["id"] not in opened and not any(opened.values())
            else:
                assert opened[chunk["id"]]
            opened[chunk["id"]] = stage != "end"
        elif chunk["type"] == "start-step":
            assert not step
            step = True
        elif chunk["type"] == "finish-step":
            assert step and not any(opened.values())
            step = False
        elif kind == "tool-input":
            before = calls.get(chunk["toolCallId"])
            assert before is None if stage == "start" else before in ("start", "delta")
            calls[chunk["toolCallId"]] = stage
        elif kind == "tool-output":
            assert calls[chunk["toolCallId"]] in ("available", "error")
            calls[chunk["toolCallId"]] = "output"
        elif chunk["type"] == "message-metadata":
            merged(metadata, chunk["messageMetadata"])
        else:
            assert chunk is chunks[-1] and chunk["type"] in ("finish", "abort", "error")
    assert not step and not any(opened.values())
    return metadata


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
        assert metadata.get("reasoningTotal") == total(*answer.turns)
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
        encoder, types, early = Encoder("m"), [], {}
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
        encoder = Encoder("m")
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


def events(*bodies):
    for seq, body in enumerate(bodies):
        made = draft(body, id=f"e{seq}", parent="", at=0.0)
        fields = {name: getattr(made, name) for name in made.__struct_fields__}
        yield Event(session="s", seq=seq, **fields)


def told(*happenings):
    encoder = Encoder("m")
    bodies = [
        h for h in happenings if not isinstance(h, ReasoningDelta | TextDelta | ToolCallDelta)
    ]
    wrapped = dict(zip(map(id, bodies), events(*bodies), strict=True))
    chunks = [c for h in happenings for c in encoder.feed(wrapped.get(id(h), h), 5.0)]
    chunks += encoder.end()
    return chunks, check(chunks)


def thought(id="", text="hm", carrier=Carrier.ITEM, start=0, end=3):
    timing = Timing(sent=0, opened=start * 10**9, closed=end * 10**9)
    return Reasoning(thought=Thought(carrier=carrier, raw="{}", id=id, text=text, timing=timing))


DONE = TurnEnded(outcome=Outcome.COMPLETED)


def test_what_was_not_streamed_is_shown_when_it_is_written():
    chunks, metadata = told(
        TurnStarted(), thought("rs_1"), AssistantMessage(parts=(Text(text="Hi"),)), DONE
    )
    kinds = [c["type"] for c in chunks]
    assert kinds[2:8] == [
        f"{k}-{s}" for k in ("reasoning", "text") for s in ("start", "delta", "end")
    ]
    assert metadata["reasoningDurations"] == {"rs_1": 3}


def test_an_id_that_changes_on_the_way_keeps_its_duration():
    _, metadata = told(TurnStarted(), ReasoningDelta("hm", "rs_live"), thought("rs_stored"), DONE)
    assert metadata["reasoningDurations"] == {"rs_live": 3, "rs_stored": 3}


def test_two_items_are_two_parts_and_overlap_counts_once():
    chunks, metadata = told(
        TurnStarted(),
        ReasoningDelta("a", "rs_1"),
        ReasoningDelta("b", "rs_2"),
        thought("rs_1", start=0, end=5),
        thought("rs_2", start=3, end=7),
        DONE,
    )
    assert [c["type"] for c in chunks].count("reasoning-start") == 2
    assert metadata["reasoningDurations"] == {"rs_1": 5, "rs_2": 4}
    assert metadata["reasoningTotal"] == 7


def test_calls_side_by_side_without_ids_and_with_bad_input():
    chunks, _ = told(
        TurnStarted(),
        ToolCallDelta(0, '{"a"', "one"),
        ToolCallDelta(1, "{", "two"),
        ToolCallDelta(0, ":1}"),
        ToolCall(call=Call(name="one", arguments='{"a":1}')),
        ToolCall(call=Call(name="two", arguments="{")),
        DONE,
    )
    assert len({c["toolCallId"] for c in chunks if c["type"] == "tool-input-start"}) == 2
    assert [c["type"] for c in chunks if c["type"].startswith("tool-input-")][-2:] == [
        "tool-input-available",
        "tool-input-error",
    ]


def test_a_call_that_breaks_off_does_not_spin_for_ever():
    failed = TurnEnded(outcome=Outcome.FAILED, reason="cut")
    chunks, _ = told(TurnStarted(), ToolCallDelta(0, "{", "one", "c1"), failed)
    assert [c["type"] for c in chunks][-3:] == ["tool-input-error", "finish-step", "error"]


def test_a_message_ends_once_and_nothing_comes_after():
    encoder = Encoder("m")
    encoder.feed(TextDelta("Hi"), 5.0)
    assert encoder.end()[-1]["type"] == "abort"
    assert (encoder.feed(TextDelta("!"), 6.0), encoder.end("late")) == ([], [])


def test_half_an_emoji_is_still_a_stream():
    from thoughtline.fronts.ui_stream import written

    assert json.loads(written([{"type": "x", "delta": "\ud83d"}])[6:])["delta"] == "\ud83d"


async def test_the_example(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    sys.modules.pop("ui_stream", None)
    import ui_stream as example

    transport = httpx2.ASGITransport(app=example.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
        for words in ("Hello", "And again"):
            said = {"role": "user", "parts": [{"type": "text", "text": words}]}
            response = await client.post("/api/chat", json={"id": "c", "messages": [said]})
            assert response.headers.items() >= HEADERS.items() - {("content-type", "")}
            chunks = unframed(response.content)
            assert check(chunks)["reasoningDurations"]
            assert chunks[-1] == {"type": "finish"}
    await example.log.close()
