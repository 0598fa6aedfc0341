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

    def __init__(self, body, released):
        super().__init__(200, body, {"content-type": "text/event-stream"})
        self.released = released

    async def chunks(self):
        yield self.body
        await self.released.wait()
        yield END


class LateEndWire(ScriptedWire):
    def __init__(self, said=said):
        super().__init__(Answer())
        self.said = said
        self.released = asyncio.Event()
        self.asked = asyncio.Event()  # for the second time
        self.asked_thrice = asyncio.Event()

    @asynccontextmanager
    async def send(self, request):
        self.sent.append(request)
        if len(self.sent) > 1:
            self.asked.set()
        if len(self.sent) > 2:
            self.asked_thrice.set()
        yield LateEnd(self.said(len(self.sent)), self.released)


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


# -- where another conversation looks like it ------------------------------------------------------


def called(number):
    """Every answer is the same call, under an id of its own."""
    run = {"name": "run", "arguments": "{}"}
    call = {"index": 0, "id": f"call_{number}c6e8f9a7b1d2", "type": "function", "function": run}
    thought = event(reasoning_content=f"Hm {number}.")
    return thought + event(tool_calls=[call]) + event(finish_reason="stop")


def worded(number):
    """Every answer has the same words."""
    return (
        event(reasoning_content=f"Hm {number}.")
        + event(content="Well.")
        + event(finish_reason="stop")
    )


def going_on(number, *, calls, thought=""):
    """What a client sends behind that answer."""
    if not calls:
        said = {"role": "assistant", "content": "Well."}
        return [*ASKED, said | thought, {"role": "user", "content": "So?"}]
    id, run = f"call_{number}c6e8f9a7b1d2", {"name": "run", "arguments": "{}"}
    call = {"id": id, "type": "function", "function": run}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [*ASKED, said, {"role": "tool", "tool_call_id": id, "content": "ok"}]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("evidence", ["hint", "call id", "thought"])
async def test_what_points_to_the_unwritten_turn_is_not_overruled(evidence, ends):
    """Another conversation has said the same, and is written: it gets none of its thoughts."""
    wire = LateEndWire(called if evidence == "call id" else worded)
    gateway = InProcessGateway(wire, "deepseek", commit_wait=30 if ends else 0)
    named = {name: {"x-thoughtline-session": name} for name in "ab"} if evidence == "hint" else {}
    wire.released.set()
    await gateway.post(PATH, body(ASKED), named.get("a"))
    wire.released.clear()
    first = await begun(gateway, ASKED, named.get("b"))
    kept = {"reasoning_content": "Hm 2."} if evidence == "thought" else {}
    asked = body(going_on(2, calls=evidence == "call id", thought=kept))
    second = asyncio.create_task(gateway.post(PATH, asked, named.get("b")))
    if ends:
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(wire.sent) == 2
    else:
        await wire.asked_thrice.wait()
    wire.released.set()
    await asyncio.gather(first, second)
    own = "Hm 2." if ends or evidence == "thought" else ""  # a placeholder
    assert wire.bodies[2]["messages"][1]["reasoning_content"].strip() == own


async def test_a_look_alike_that_runs_is_not_waited_for():
    """What the client brings points to a turn that is written."""
    wire = LateEndWire(called)
    gateway = InProcessGateway(wire, "deepseek")
    wire.released.set()
    await gateway.post(PATH, body(ASKED))
    wire.released.clear()
    other = await begun(gateway)
    mine = asyncio.create_task(gateway.post(PATH, body(going_on(1, calls=True))))
    await wire.asked_thrice.wait()
    assert wire.bodies[2]["messages"][1]["reasoning_content"] == "Hm 1."
    wire.released.set()
    await asyncio.gather(other, mine)
