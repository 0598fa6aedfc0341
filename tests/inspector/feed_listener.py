"""A gateway whose provider is the test, and what somebody hears who follows its feed."""

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager

import httpx2
from starlette.requests import Request

from support.built_gateway import BuiltGateway
from support.gateway import Answer
from support.waiting import eventually
from thoughtline.gateway.build import ExtraPages
from thoughtline.gateway.pages.page import pages_of
from thoughtline.inspector.api import InspectorApi
from thoughtline.inspector.running_turns import RunningTurns

QUICK = 0.01


class Spoken(Answer):
    """An answer that a test speaks, piece by piece."""

    def __init__(self):
        super().__init__(headers={"content-type": "text/event-stream"})
        self.pieces = asyncio.Queue()

    async def chunks(self):
        while (piece := await self.pieces.get()) is not None:
            yield piece

    def say(self, *, end=False, **delta):
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if end else None}
        chunk = {"id": "c", "model": "deepseek-v4-pro", "choices": [choice]}
        self.pieces.put_nowait(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def done(self):
        self.say(end=True)
        self.pieces.put_nowait(b"data: [DONE]\n\n")
        self.pieces.put_nowait(None)


class Stage:
    """A gateway whose provider is the test, and the inspector's API over it."""

    def __init__(self, store=None, socket_folder=None):
        self.answers = []
        self.socket_folder = socket_folder
        self.built = BuiltGateway(store=store, wire=self, pages=self.pages)
        self.store = self.built.store
        self.live_feed = self.api.live_feed
        self.live_feed._interval = QUICK

    def pages(self, components):
        self.gateway = components
        self.running = RunningTurns(components.proxy.engine.recordings, self.socket_folder)
        self.api = InspectorApi(components, self.running)
        return ExtraPages(pages=pages_of(self.api))

    async def delete(self, path):
        """What a page of the gateway answers to a deletion."""
        transport = httpx2.ASGITransport(app=self.built.app, client=("127.0.0.1", 4711))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.delete(path)).raise_for_status().json()

    @asynccontextmanager
    async def send(self, request):
        self.answers.append(Spoken())
        yield self.answers[-1]

    async def close(self):
        pass

    @asynccontextmanager
    async def talk(self, said="hello"):
        """A request on its way, and its answer, to be spoken."""
        body = {
            "model": "deepseek-v4-pro",
            "stream": True,
            "messages": [{"role": "user", "content": said}],
        }
        before = len(self.answers)
        path = "/v1/chat/completions"
        asked = asyncio.ensure_future(self.built.gateway().post(path, body))
        await eventually(lambda: len(self.answers) != before)
        try:
            yield self.answers[-1]
        finally:
            asked.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asked

    @asynccontextmanager
    async def feed(self, session=None, after=None, **more):
        body = self.live_feed.follow(session, after, **more)
        try:
            yield Heard(body)
        finally:
            await body.aclose()


class Heard:
    """What a client of a feed hears."""

    def __init__(self, body):
        self.body, self.waiting, self.last = body, [], None

    async def next(self):
        """Name and data of the next message."""
        async with asyncio.timeout(60):
            while not self.waiting:
                piece = (await anext(self.body)).decode()
                self.waiting += [text for text in piece.split("\n\n") if text]
        lines = self.waiting.pop(0).splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        self.last = fields.get("id", self.last)
        return fields.get("event"), json.loads(fields.get("data", "null"))

    async def until(self, kind):
        """All messages up to one of this kind (of a `live` one) or name."""
        heard = []
        while True:
            name, data = await self.next()
            heard.append((name, data))
            if kind in (name, (data or {}).get("kind")):
                return heard


@asynccontextmanager
async def listening(feed):
    """From here on it hears everything."""
    await feed.next()
    yield


async def asked(answerer, query=b"", **params):
    """What a route of the API answers."""
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query, "headers": []}
    page = page_of(answerer)
    return json.loads((await page.respond(Request({**scope, "path_params": params}))).body)


def page_of(handler):
    """The page of this handler."""
    return next(page for page in pages_of(handler.__self__) if page.handler == handler)
