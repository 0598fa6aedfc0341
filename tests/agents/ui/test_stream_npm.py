"""The real `ai` package reads the stream: parts, tools, durations, aborts and errors."""

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from support.ticking_provider import ticking
from support.waiting import eventually
from thoughtline.agents.ui import HEADERS, ui_stream
from thoughtline.errors import WireError
from thoughtline.log.durations import reasoning_durations, thought_spans, total_seconds
from thoughtline.testing import Say, Think, Use

FOLDER = Path(__file__).parents[1] / "npm"

pytestmark = [
    pytest.mark.skipif(
        shutil.which("node") is None, reason="node is not installed; https://nodejs.org has it"
    ),
    pytest.mark.skipif(
        not (FOLDER / "node_modules" / "ai").exists(),
        reason="the AI SDK is not installed; `make clients` installs it",
    ),
    pytest.mark.slow,
]


def script(turn, sim):
    if turn % 2:
        return Think(f"So that is it, then. {sim.serial}"), Say(f"Done. [{sim.mark}]")
    return Think(f"Let me look first. {sim.serial}"), Use("read_file", '{"path": "a.txt"}')


def refused(request):
    raise WireError("nobody is there")


@asynccontextmanager
async def served(chat, runs, **more):
    async def answer(request):
        asked = await request.json()
        runs.append(chat.run(asked["messages"][-1]["parts"][0]["text"]))
        body = ui_stream(runs[-1], clock=chat.log.clock, **more)
        return StreamingResponse(body, headers=HEADERS)

    app = Starlette(routes=[Route("/api/chat", answer, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve())
    await eventually(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/api/chat"
    finally:
        server.should_exit = True
        await task


async def read(url, words):
    process = await asyncio.create_subprocess_exec(
        "node", str(FOLDER / "read.mjs"), url, words, stdout=-1, stderr=-1, cwd=FOLDER
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.parametrize("name", ["claude", "openai", "deepseek"])
async def test_the_real_client_reads_a_run(name):
    runs = []
    async with ticking(name, script=script, seconds=1.7) as chat, served(chat, runs) as url:
        seen = await read(url, "Please mend a.txt")
        answer = await runs[0]
    message, metadata = seen["message"], seen["message"]["metadata"]
    assert seen["errors"] == []
    assert message["role"] == "assistant" and message["id"] == answer.turns[0].id
    parts = message["parts"]
    assert [p["type"] for p in parts if p["type"] != "reasoning"] == [
        "step-start",
        "tool-read_file",
        "step-start",
        "text",
    ]
    [tool] = [p for p in parts if p["type"] == "tool-read_file"]
    assert tool["state"] == "output-available"
    assert (tool["input"], tool["output"]) == ({"path": "a.txt"}, "the text of a.txt")
    assert parts[-1]["text"] == answer.text and parts[-1]["state"] == "done"
    stored = reasoning_durations(*answer.turns)
    assert metadata["reasoningDurations"] == stored and max(stored.values()) > 1
    assert metadata["reasoningTotal"] == total_seconds(*answer.turns)
    thoughts = [p for p in parts if p["type"] == "reasoning"]
    assert [p["text"] for p in thoughts] == [
        t.text for t in answer.thoughts
    ]  # sealed ones are empty
    assert all(p["state"] == "done" for p in thoughts)
    keys = [span.key for span in thought_spans(*answer.turns)]
    assert [p["providerMetadata"]["thoughtline"]["key"] for p in thoughts] == keys
    assert any("thinking" in states for states in seen["live"])


async def test_the_real_client_hears_of_an_abort_and_of_a_failure():
    runs = []
    async with ticking("claude", script=script) as chat, served(chat, runs, explain=str) as url:
        reading = asyncio.ensure_future(read(url, "Go"))
        await eventually(lambda: runs or reading.done())
        await eventually(lambda: chat._writer.session.turns or reading.done())
        runs[0].cancel()
        seen = await reading
        assert seen["types"][-1] == "abort" and seen["errors"] == []
        chat.log.wire.send = refused
        seen = await read(url, "Go on")
        assert seen["types"][-1] == "error"
        assert "nobody is there" in seen["errors"][0]
