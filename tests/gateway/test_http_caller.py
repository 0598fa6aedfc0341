"""A request whose client leaves, or whose gateway stops, at any moment: it ends once, and is kept."""

import asyncio
import contextlib
import json

from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.loop_clock import settled
from support.proxied import body
from support.waiting import eventually
from thoughtline.errors import WireError
from thoughtline.gateway import asgi
from thoughtline.stores.memory import MemoryStore


class Visit:
    """A client of the proxy, in the same process: it leaves when `left` is set."""

    def __init__(self):
        self.left, self.told = asyncio.Event(), []
        self._waiting = [json.dumps(body([{"role": "user", "content": "Hi"}], stream=True))]

    async def receive(self):
        if self._waiting:
            return {"type": "http.request", "body": self._waiting.pop().encode()}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.told.append(message["type"])

    def enter(self, gateway):
        head = [(b"authorization", b"Bearer a-key")]
        path = "/v1/chat/completions"
        scope = {"type": "http", "method": "POST", "path": path, "headers": head}
        return asyncio.ensure_future(gateway.proxy(scope, self.receive, self.send))


async def test_a_client_that_leaves_while_it_is_told_of_an_error_is_no_fault(monkeypatch):
    monkeypatch.setattr(asgi, "WATCH_AFTER", 0)

    def broken(_request):
        raise WireError("cannot reach it")

    class Slow(Visit):
        async def send(self, message):
            self.left.set()
            await settled()
            await super().send(message)

    gateway, visit = InProcessGateway(ScriptedWire(broken)), Slow()
    await visit.enter(gateway)
    assert visit.told == ["http.response.start", "http.response.body"]
    assert gateway.notes.records == [("refused", 502, "upstream_unreachable")]


async def test_a_stop_while_the_turn_of_a_client_that_left_is_written_is_counted(monkeypatch):
    monkeypatch.setattr(asgi, "WATCH_AFTER", 0)
    writing = asyncio.Event()

    class SlowStore(MemoryStore):
        async def append(self, batch):
            writing.set()
            await settled()
            return await super().append(batch)

    class Endless(Answer):
        async def chunks(self):
            yield b"data: {}\n\n"
            await asyncio.Event().wait()

    class Wire(ScriptedWire):
        @contextlib.asynccontextmanager
        async def send(self, request):
            yield Endless(headers={"content-type": "text/event-stream"})

    gateway, visit = InProcessGateway(Wire(), store=SlowStore()), Visit()
    serving = visit.enter(gateway)
    await eventually(lambda: visit.told)
    visit.left.set()
    await writing.wait()
    serving.cancel()
    await asyncio.wait({serving})
    await gateway.proxy.engine.writer.settled()
    assert gateway.notes.records == [(499, "the client left")]
    [ended] = await gateway.facts("turn_ended")
    assert ended.reason == "the client left"


async def test_a_stop_after_the_answer_was_given_is_not_counted_as_another_end():
    closing = asyncio.Event()

    class Wire(ScriptedWire):
        @contextlib.asynccontextmanager
        async def send(self, request):
            async with super().send(request) as answer:
                yield answer
                closing.set()
                await asyncio.Event().wait()

    gateway, visit = InProcessGateway(Wire(Answer(503, {}))), Visit()
    serving = visit.enter(gateway)
    await closing.wait()
    serving.cancel()
    await asyncio.wait({serving})
    assert gateway.notes.records == [(503, "")]
