"""A session as UI messages: what the stream showed, on every branch, with the same durations."""

import asyncio
import json

import pytest

from support.ticking_provider import ticking
from support.ui_chunks import NAMES, merged, unframed
from thoughtline.agents.ui import ResumableStream, history, ui_stream
from thoughtline.errors import ThoughtlineError
from thoughtline.log.durations import reasoning_durations, total_seconds
from thoughtline.log.events import Outcome
from thoughtline.log.parts import Call, Carrier, Result, Text, Thought, Timing
from thoughtline.log.turns import Turn
from thoughtline.testing import Say, Think, Use

SECOND = 1_000_000_000


def script(turn, sim):
    if turn % 2:
        return Think(f"So that is it, then. {sim.serial}"), Say(f"Done. [{sim.mark}]")
    return Think(f"Let me look first. {sim.serial}"), Use("read_file", '{"path": "a.txt"}')


def plain(turn, sim):
    return Think(f"Hm. {sim.serial}"), Say(f"Well. [{sim.mark}]")


async def streamed(run, **more):
    """The message that a client puts together."""
    chunks = unframed(b"".join([chunk async for chunk in ui_stream(run, **more)]))
    parts, metadata, name, open_parts = [], {}, "", {}
    for chunk in chunks:
        match chunk["type"]:
            case "start":
                name = chunk["messageId"]
            case "start-step":
                parts.append({"type": "step-start"})
            case "text-start" | "reasoning-start":
                kind = chunk["type"].removesuffix("-start")
                part = open_parts[chunk["id"]] = {"type": kind, "text": ""}
                if "providerMetadata" in chunk:
                    part["providerMetadata"] = chunk["providerMetadata"]
                parts.append(part)
            case "text-delta" | "reasoning-delta":
                open_parts[chunk["id"]]["text"] += chunk["delta"]
            case "text-end" | "reasoning-end":
                part = open_parts[chunk["id"]]
                part["state"] = "done"
                if "providerMetadata" in chunk:  # it takes the place of what it had
                    part["providerMetadata"] = chunk["providerMetadata"]
            case "tool-input-available":
                call = {"toolCallId": chunk["toolCallId"], "input": chunk["input"]}
                part = {"type": f"tool-{chunk['toolName']}", **call, "state": "input-available"}
                open_parts[chunk["toolCallId"]] = part
                parts.append(part)
            case "tool-output-available":
                part = open_parts[chunk["toolCallId"]]
                part |= {"state": "output-available", "output": chunk["output"]}
            case "message-metadata":
                merged(metadata, chunk["messageMetadata"])
    return {"id": name, "role": "assistant", "parts": parts, "metadata": metadata}


def as_streamed(message):
    """Without the durations of parts.

    Chunks have no such member, and what a part of a stream says was measured when its text ended:
    what is sealed may come later. The message's metadata has the stored ones.
    """
    parts = [{k: v for k, v in part.items() if k != "duration"} for part in message["parts"]]
    for part in parts:
        part.get("providerMetadata", {}).get("thoughtline", {}).pop("duration", None)
    return {**message, "parts": parts}


@pytest.mark.parametrize("name", NAMES)
async def test_the_history_says_what_the_stream_said(name):
    async with ticking(name, script=script, seconds=1.7) as chat:
        for words in ("Please mend a.txt", "And again"):
            live = await streamed(chat.run(words), clock=chat.log.clock)
            *_, asked, answer = history(chat.tree).path
            assert asked["role"] == "user"
            assert asked["parts"] == [{"type": "text", "text": words}]
            assert answer["metadata"].pop("turn") == chat.head
            assert answer["metadata"].pop("outcome") == "completed"
            assert as_streamed(answer) == as_streamed(live)
            json.dumps(answer)


async def test_durations_stay_with_their_messages_on_every_branch():
    async with ticking("claude", script=plain, seconds=0.9) as chat:
        first = await chat.run("One")
        second = await chat.run("Two")
        chat.log.wire.seconds = 3.3
        edited = await chat.switch(first.turn).run("Two, but better")
        again = await chat.switch(first.turn).run("Two")
        made = history(chat.tree, head=chat.head)
        runs = {run.turns[0].id: run for run in (first, second, edited, again)}
        answers = {m["id"]: m for m in made.messages if m["role"] == "assistant"}
        assert answers.keys() == runs.keys()
        for id, run in runs.items():
            assert answers[id]["metadata"]["reasoningDurations"] == reasoning_durations(*run.turns)
            assert answers[id]["metadata"]["reasoningTotal"] == total_seconds(*run.turns)
            assert made.turn(id) == run.turn
        totals = [answers[id]["metadata"]["reasoningTotal"] for id in runs]
        assert totals[1] < totals[2]
        tied = {e["message"]["id"]: e["parentId"] for e in made.repository["messages"]}
        asked = {id: tied[id] for id in runs}
        assert asked[second.turn] == asked[again.turn] != asked[edited.turn]
        assert tied[asked[second.turn]] == tied[asked[edited.turn]] == first.turn
        assert tied[asked[first.turn]] is None
        assert made.repository["headId"] == again.turn
        assert [m["id"] for m in made.path][1::2] == [first.turn, again.turn]
        ids = [entry["message"]["id"] for entry in made.repository["messages"]]
        assert all(tied[id] is None or tied[id] in ids[: ids.index(id)] for id in ids)


async def test_a_fork_shows_what_it_goes_on_from():
    async with ticking("openai", script=plain) as chat:
        first = await chat.run("One")
        await chat.run("Two")
        fork = await chat.fork(at=first.turn)
        assert [m["role"] for m in history(fork.tree).path] == ["user", "assistant"]
        third = await fork.run("Three")
        assert [m["id"] for m in history(fork.tree).path][1::2] == [first.turn, third.turn]


def thought(text="", *, seconds=2, **more):
    timing = Timing(sent=0, opened=0, first=0, last=1, closed=seconds * SECOND)
    return Thought(carrier=Carrier.BLOCK, raw="{}", text=text, timing=timing, **more)


def turn(id, parent="", *, said="", output=(), outcome=Outcome.COMPLETED, **more):
    words = (Text(text=said),) if said else ()
    parts = (*more.pop("input", ()), *words)
    return Turn(id=id, parent=parent, input=parts, output=output, outcome=outcome, **more)


def test_somebody_speaks_in_the_middle_of_an_answer():
    call = Call(name="look", arguments="{}", id="c")
    result = Result(content="seen", call="c")
    made = history(
        [
            turn("a", said="Go", output=(call,)),
            turn("b", "a", input=(result,), output=(Text(text="So."), call)),
            turn("c", "b", input=(result,), output=(Text(text="Done."),)),
            turn("d", "b", input=(result,), said="No, wait", output=(Text(text="Yes?"),)),
            turn("e", "b", input=(result,), output=(Text(text="Done too."),)),
        ]
    )
    tied = {e["message"]["id"]: e["parentId"] for e in made.repository["messages"]}
    assert tied == {
        "a-asked": None,
        "a": "a-asked",
        "a~b": "a-asked",
        "a~e": "a-asked",
        "d-asked": "a~b",
        "d": "d-asked",
    }
    assert [made.turn(id) for id in ("a", "a~b", "a~e")] == ["c", "b", "e"]
    assert made.head == "a~e"
    [cut] = [m for m in made.messages if m["id"] == "a~b"]
    states = [part["state"] for part in cut["parts"] if part["type"] == "tool-look"]
    assert states == ["output-available", "output-error"]
    assert made.turn("") == ""
    with pytest.raises(ThoughtlineError, match="read the history again"):
        made.turn("gone")


def test_an_answer_that_is_under_way_is_left_to_the_stream():
    turns = [
        turn("a", said="Go", output=(Text(text="Gone."),)),
        turn("b", "a", said="On", outcome=None),
    ]
    running = history(turns, head="a", running=True)
    assert [m["id"] for m in running.path] == ["a-asked", "a", "b-asked"]
    [*_, broken] = history(turns).path
    assert broken["id"] == "b" and broken["metadata"]["outcome"] == "interrupted"
    assert history([]).repository == {"headId": None, "messages": []}


def test_what_is_sealed_stopped_or_broken_is_said_so():
    bad = Call(name="look", arguments="{nonsense", id="c")
    stopped = thought("I was about to", seconds=5)
    made = history(
        [
            turn("a", said="Go", output=(thought(seals=("s",)), Text(text="Hm."), bad)),
            turn(
                "b",
                "a",
                input=(Result(content="not JSON", call="c", error=True),),
                output=(
                    Thought(
                        carrier=Carrier.BLOCK,
                        raw="{}",
                        text=stopped.text,
                        timing=Timing(opened=0, last=5 * SECOND, aborted=True),
                    ),
                ),
                outcome=Outcome.ABORTED,
            ),
        ]
    )
    answer = made.path[-1]
    sealed, _, call, second = [p for p in answer["parts"] if p["type"] != "step-start"]
    assert (sealed["type"], sealed["text"]) == ("reasoning", "")
    assert (call["state"], call["errorText"]) == ("output-error", "not JSON")
    keys = [part["providerMetadata"]["thoughtline"]["key"] for part in (sealed, second)]
    metadata = answer["metadata"]
    assert [metadata["reasoningDurations"][key] for key in keys] == [2, 5]
    assert [metadata["reasoningStates"][key] for key in keys] == ["done", "aborted"]
    assert metadata["outcome"] == "aborted"


async def test_long_sessions_are_no_trouble():
    turns = [
        turn(str(n), str(n - 1) if n else "", said="" if n % 3 else "Go", output=(thought("hm"),))
        for n in range(3000)
    ]
    made = history(turns)
    assert len(made.path) == 2000 and made.turn("0") == "2"


async def test_a_kept_stream_outlives_its_readers():
    gate = asyncio.Event()

    async def stream():
        yield b"one "
        yield b"two "
        await gate.wait()
        yield b"three"

    kept = ResumableStream(stream())
    first = kept.read()
    seen = await anext(first)
    while seen != b"one two ":
        seen += await anext(first)
    await first.aclose()
    assert not kept.done
    late = asyncio.ensure_future(collect(kept))
    await asyncio.sleep(0)
    gate.set()
    await kept.over()
    assert await late == b"one two three" == await collect(kept)
    assert kept.done


async def collect(kept):
    return b"".join([chunk async for chunk in kept.read()])
