"""A host that refuses a key which the library put in: the session goes on without it."""

import json
from contextlib import asynccontextmanager

import thoughtline
from support.agents import TOOLS, provider, wired
from support.gateway import Answer
from thoughtline.testing import simulator

WORDS = {"error": {"message": "Unknown parameter: 'messages[1].reasoning_content'."}}


class RefusingWire:
    """Refuses every request whose messages have `reasoning_content`."""

    def __init__(self, inner):
        self.inner, self.refused = inner, 0

    @asynccontextmanager
    async def send(self, request):
        if any("reasoning_content" in one for one in json.loads(request.body)["messages"]):
            self.refused += 1
            yield Answer(400, WORDS)
            return
        async with self.inner.send(request) as answer:
            yield answer

    async def close(self):
        await self.inner.close()


async def test_a_session_goes_on_without_the_key():
    sim = simulator("glm")
    wire = RefusingWire(wired(sim))
    async with thoughtline.open("memory://", wire=wire, secret=b"secret") as log:
        chat = await log.create(provider=provider(sim, policy="generic"), tools=TOOLS)
        for question in ("go", "on", "and on"):
            run = await chat.run(question)
    assert run.outcome == "completed"
    assert wire.refused == 1
