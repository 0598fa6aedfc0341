"""The back end of the example: branches, reloads in mid-thought, stops, and a server that restarts.

The page in front of it is tested in a real browser (see `test_assistant_ui_browser`).
"""

import asyncio
import os
import socket
import sys
from contextlib import asynccontextmanager

import httpx2

from support.example_apps import FOLDER, served
from support.ui_chunks import merged, unframed


def said(words, id="of the client"):
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": words}]}


class Page:
    """What the page does, without the page."""

    def __init__(self, client):
        self.client = client

    async def ask(self, *messages):
        body = {"id": "c", "messages": list(messages), "trigger": "submit-message"}
        response = await self.client.post("/api/chat", json=body)
        response.raise_for_status()
        return message(response.content)

    async def history(self):
        return (await self.client.get("/api/chats/c")).json()

    async def answers(self):
        """Messages of the model by their id, and what each message follows."""
        messages = (await self.history())["repository"]["messages"]
        answers = {m["message"]["id"]: m["message"] for m in messages}
        parents = {m["message"]["id"]: m["parentId"] for m in messages}
        return {id: m for id, m in answers.items() if m["role"] == "assistant"}, parents


@asynccontextmanager
async def opened(monkeypatch, **more):
    async with (
        served(monkeypatch, **more) as example,
        httpx2.AsyncClient(base_url=example.url, timeout=60) as client,
    ):
        yield example, Page(client)


def message(body):
    """The id and the metadata of a streamed message."""
    chunks = unframed(body)
    metadata = {}
    for chunk in chunks:
        if chunk["type"] == "message-metadata":
            merged(metadata, chunk["messageMetadata"])
    return {"id": chunks[0]["messageId"], "role": "assistant", "parts": [], "metadata": metadata}


async def test_every_answer_keeps_its_durations_on_its_branch(monkeypatch, tmp_path):
    store = f"sqlite:///{tmp_path}/log.db"
    async with opened(monkeypatch, store=store) as (_, page):
        assert (await page.history())["repository"] == {"headId": None, "messages": []}
        first = await page.ask(said("Is 91 prime?"))
        second = await page.ask(said("Is 91 prime?"), first, said("And 97?"))
        again = await page.ask(said("Is 91 prime?"), first, said("And 97?", "a new id"))
        edited = await page.ask(said("Is 91 prime?"), first, said("And 7?"))
        unknown = {"id": "c", "messages": [{**first, "id": "gone"}, said("And?")]}
        refused = await page.client.post("/api/chat", json=unknown)
        assert refused.status_code == 409 and "gone" in refused.json()["error"]
        before = await page.history()
    async with opened(monkeypatch, store=store) as (_, page):  # another process, so to speak
        after = await page.history()
        assert after["repository"] == before["repository"]
        assert after["repository"]["headId"] == edited["id"] and not after["running"]
        answers, parents = await page.answers()
        for live in (first, second, again, edited):
            durations = answers[live["id"]]["metadata"]["reasoningDurations"]
            assert durations == live["metadata"]["reasoningDurations"]
            assert durations.keys() == {"part-0", "part-2"}
        assert parents[second["id"]] == parents[again["id"]] != parents[edited["id"]]
        third = await page.ask(second, said("What else?"))
        answers, parents = await page.answers()
        assert parents[parents[third["id"]]] == second["id"]


async def test_who_reloads_in_mid_thought_reads_on(monkeypatch):
    async with opened(monkeypatch, delay=0.2) as (example, page):
        body = {"id": "c", "messages": [said("Is 2027 prime?")]}
        async with page.client.stream("POST", "/api/chat", json=body) as stream:
            async for piece in stream.aiter_text():
                if "reasoning-delta" in piece:
                    break
        history = await page.history()  # the connection is gone, and the model thinks on
        [asked] = history["repository"]["messages"]
        assert history["running"] and asked["message"]["role"] == "user"
        busy = await page.client.post("/api/chat", json=body)
        assert busy.status_code == 409 and "busy" in busy.json()["error"]
        example.pace(0.0)
        live = message((await page.client.get("/api/chat/c/stream")).content)
        history = await page.history()
        assert not history["running"]
        stored = history["repository"]["messages"][-1]["message"]
        assert stored["id"] == live["id"] and stored["metadata"]["outcome"] == "completed"
        durations = stored["metadata"]["reasoningDurations"]
        assert durations == live["metadata"]["reasoningDurations"]
        assert (await page.client.get("/api/chat/other/stream")).status_code == 204


async def test_a_stop_says_how_long_the_thought_took(monkeypatch):
    async with opened(monkeypatch, delay=0.2) as (_, page):
        body = {"id": "c", "messages": [said("Is 2027 prime?")]}
        seen, stopped = b"", False
        async with page.client.stream("POST", "/api/chat", json=body) as stream:
            async for piece in stream.aiter_bytes():
                seen += piece
                if b"reasoning-delta" in seen and not stopped:
                    stopped = True
                    await page.client.post("/api/chat/c/stop")
        live = message(seen)
        assert live["metadata"]["reasoningStates"] == {"part-0": "aborted"}
        answers, _ = await page.answers()
        stored = answers[live["id"]]["metadata"]
        assert stored["outcome"] == "aborted"
        assert stored["reasoningDurations"] == live["metadata"]["reasoningDurations"]


async def test_a_server_that_dies_in_mid_thought_leaves_an_interrupted_answer(
    monkeypatch, tmp_path
):
    store = f"sqlite:///{tmp_path}/log.db"
    body = {"id": "c", "messages": [said("Is 2027 prime?")]}
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = ["-m", "uvicorn", "--app-dir", str(FOLDER), "server:app", "--port", str(port)]
    settings = {**os.environ, "STORE": store, "PACE": "0.2"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, env=settings, stdout=-3, stderr=-1
    )
    try:
        while b"Uvicorn running" not in (line := await process.stderr.readline()):
            assert line, "the example did not start"
        async with (
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
            client.stream("POST", "/api/chat", json=body) as stream,
        ):
            async for piece in stream.aiter_text():
                if "reasoning-delta" in piece:
                    break
    finally:
        process.kill()
        await process.communicate()
    async with opened(monkeypatch, store=store) as (_, page):
        answers, parents = await page.answers()
        [(broken, message)] = answers.items()
        assert message["metadata"]["outcome"] == "interrupted"
        assert "reasoningDurations" not in message["metadata"]  # nobody knows
        again = await page.ask(said("Is 2027 prime?"))
        answers, parents = await page.answers()
        assert parents[again["id"]] == parents[broken]
        after = await page.ask(message, said("Well?"))
        assert after["metadata"]["reasoningDurations"]
