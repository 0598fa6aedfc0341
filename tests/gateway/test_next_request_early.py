"""Clients that go on before the stream has ended: the turn is found all the same.

The model has said why it stopped, and the client sends its next request at once. The usage and the
end of the stream come a moment later, and only then is the turn written.
"""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire

PATH = "/v1/chat/completions"
ASKED = [{"role": "user", "content": "Hi"}]
ECHOED = [*ASKED, {"role": "assistant", "content": "Well 1."}, {"role": "user", "content": "So?"}]


def event(**delta):
    reason = delta.pop("finish_reason", None)
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


def said(number):
    thought, words = event(reasoning_content=f"Hm {number}."), event(content=f"Well {number}.")
    return thought + words + event(finish_reason="stop")


END = b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n'


class LateEnd(Answer):
    """A stream whose end comes when it is told to."""

    def __init__(self, number, released):
        super().__init__(200, said(number), {"content-type": "text/event-stream"})
        self.released = released

    async def chunks(self):
        yield self.body
        await self.released.wait()
        yield END


class LateEndWire(ScriptedWire):
    def __init__(self):
        super().__init__(Answer())
        self.released = asyncio.Event()
        self.asked = asyncio.Event()  # for the second time

    @asynccontextmanager
    async def send(self, request):
        self.sent.append(request)
        if len(self.sent) > 1:
            self.asked.set()
        yield LateEnd(len(self.sent), self.released)


TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]


def body(messages):
    return {"model": "deepseek-v4-pro", "stream": True, "tools": TOOLS, "messages": messages}


async def begun(gateway, messages=ASKED, headers=None):
    """A request of which the client has all but the end; its task."""
    heard = asyncio.Event()

    def keep(data):
        if b'"stop"' in data:
            heard.set()
        return data

    first = asyncio.create_task(gateway.post(PATH, body(messages), headers, keep))
    await heard.wait()
    return first


async def test_the_turn_is_waited_for():
    wire = LateEndWire()
    gateway = InProcessGateway(wire, "deepseek")
    first = await begun(gateway)
    second = asyncio.create_task(gateway.post(PATH, body(ECHOED)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(wire.sent) == 1  # it waits for the first one's end
    wire.released.set()
    one, two = await asyncio.gather(first, second)
    assert "restored=1; missed=0" in two.header("x-thoughtline-replay")
    assert wire.bodies[1]["messages"][1]["reasoning_content"] == "Hm 1."
    session = "x-thoughtline-session"
    assert one.header(session) == two.header(session)


async def test_after_a_compaction_too():
    """The last turn is not written yet when the history before it is cut."""
    wire = LateEndWire()
    gateway = InProcessGateway(wire, "deepseek")
    wire.released.set()
    named = {"x-thoughtline-session": "mine"}  # plain turns need a witness
    await gateway.post(PATH, body(ASKED), named)
    wire.released.clear()
    whole = [
        *ECHOED,
        {"role": "assistant", "content": "Well 2."},
        {"role": "user", "content": "And?"},
    ]
    first = await begun(gateway, ECHOED, named)
    summary = {"role": "user", "content": "Summary: Hi was said."}
    compacted = [summary, *whole[1:]]
    second = asyncio.create_task(gateway.post(PATH, body(compacted), named))
    for _ in range(20):
        await asyncio.sleep(0)
    wire.released.set()
    one, two = await asyncio.gather(first, second)
    assert (one.status, two.status) == (200, 200)
    assert wire.bodies[2]["messages"][3]["reasoning_content"] == "Hm 2."


async def test_not_for_ever():
    """A request that would work without us is not stopped by a stream that does not end."""
    wire = LateEndWire()
    gateway = InProcessGateway(wire, "deepseek", commit_wait=0.01)
    first = await begun(gateway)
    second = asyncio.create_task(gateway.post(PATH, body(ECHOED)))
    await wire.asked.wait()
    assert wire.bodies[1]["messages"][1]["reasoning_content"] != "Hm 1."
    wire.released.set()
    await asyncio.gather(first, second)


@pytest.mark.parametrize("other", ["another conversation", "another tenant"])
async def test_others_are_not_waited_for(other):
    wire = LateEndWire()
    gateway = InProcessGateway(wire, "deepseek")
    first = await begun(gateway)
    headers = {"authorization": "Bearer other"} if other == "another tenant" else {}
    asked = ECHOED if headers else [{"role": "user", "content": "Ho"}, *ECHOED[1:]]
    second = asyncio.create_task(gateway.post(PATH, body(asked), headers))
    await wire.asked.wait()  # although the first has not ended
    wire.released.set()
    await asyncio.gather(first, second)
