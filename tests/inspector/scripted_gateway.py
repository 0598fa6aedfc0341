"""A gateway with its inspector on a loopback port, and a provider whose lines the test speaks.

A test opens a `talk`, has the model think, say and stop, and looks at the page in between: nothing
waits for a clock. `record` writes finished sessions straight into the log.
"""

import asyncio
import io
import json
import threading
import time
from contextlib import contextmanager

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from inspector.exchange_events import SECOND, drafted, timed
from support.waiting import eventually
from thoughtline.clock import SystemClock
from thoughtline.errors import Unavailable
from thoughtline.gateway.build import build
from thoughtline.gateway.settings import (
    AccessSettings,
    Secret,
    Settings,
    StoreSettings,
    UpstreamSettings,
)
from thoughtline.inspector import inspector
from thoughtline.log.decisions import Action, MatchLevel, ReplayDecision
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Call, Carrier, Origin, Thought
from thoughtline.log.usage import Usage
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore

MODEL = "deepseek-v4-pro"
ORIGIN = Origin(
    dialect="chat", provider="deepseek", endpoint="https://api.deepseek.com", model=MODEL
)


class Talk:
    """One request through the gateway; its answer is written by the test, piece by piece."""

    def __init__(self, stage, body, session):
        self._stage, self._pieces = stage, asyncio.Queue()
        self._task = stage.do(self._ask(body, session))
        self.session = self._task.headers["x-thoughtline-session"]

    def _delta(self, **delta):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return {"id": "c1", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}

    async def _ask(self, body, session):
        self._stage.pending.append(self)
        hint = {"x-thoughtline-session": session} if session else {}
        client = await self._stage.client()
        request = client.build_request(
            "POST",
            f"{self._stage.url}/v1/chat/completions",
            json=body,
            headers={"authorization": "Bearer client-key", **hint},
        )
        answer = await client.send(request, stream=True)
        self._reading = asyncio.ensure_future(answer.aread())
        return answer

    def _put(self, piece):
        self._stage.call(self._pieces.put_nowait, piece)

    def think(self, text):
        self._put(self._delta(role="assistant", reasoning_content=text))

    def say(self, text):
        self._put(self._delta(content=text))

    def stop(self):
        """The answer is complete, and the client has it."""
        done = self._delta()
        done["choices"][0]["finish_reason"] = "stop"
        done["usage"] = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
        self._put(done)
        self._put("[DONE]")
        self._put(None)
        self._stage.do(asyncio.wait_for(asyncio.shield(self._reading), 60))

    def hang_up(self):
        """The client goes away in mid-sentence."""
        self._stage.call(self._reading.cancel)
        self._stage.do(self._task.aclose())

    async def stream(self):
        while (piece := await self._pieces.get()) is not None:
            data = piece if isinstance(piece, str) else json.dumps(piece)
            yield f"data: {data}\n\n"


class Calendar(SystemClock):
    """Time as it is, but for what is written of another day."""

    day = None

    def wall(self):
        return self.day or super().wall()


class Skipping(SystemClock):
    """Time as it is, but for what was skipped."""

    skipped = 0

    def wall(self):
        return super().wall() + self.skipped

    def mono(self):
        return super().mono() + self.skipped * SECOND


class Kept(MemoryStore):
    """A store that outlives the gateway, and can be down for writing."""

    down = False
    may_erase = None  # an event, for which whoever erases waits

    async def append(self, batch):
        if self.down:
            raise Unavailable("it is down")
        return await super().append(batch)

    async def erase(self, entry_filter, **more):
        if self.may_erase:
            await self.may_erase.wait()
        return await super().erase(entry_filter, **more)

    async def close(self):
        pass


class Stage:
    """What a test holds in its hand."""

    def __init__(self, loop, token):
        self.loop, self.token, self.store = loop, token, Kept(Calendar())
        self.pending, self.lines, self.clock = [], io.StringIO(), Skipping()
        self.refuse = None  # status and words with which the provider refuses
        self.url, self._client, self._provider, self._gateway = "", None, None, None

    async def start(self):
        """Run the gateway; again, after a stop, where it was."""
        if self._provider is None:
            route = Route("/v1/chat/completions", self.answer, methods=["POST"])
            self._provider = await _served(Starlette(routes=[route]))
        up = UpstreamSettings(
            name="up", base_url=f"http://127.0.0.1:{self._provider[2]}", policy="deepseek"
        )
        settings = Settings(
            store=StoreSettings(url="memory://"),
            upstreams={"up": up},
            access=AccessSettings(admin_token=Secret(self.token))
            if self.token
            else AccessSettings(),
        )
        app = build(
            settings, store=self.store, clock=self.clock, log=self.lines, env={}, pages=inspector
        )
        self._gateway = await _served(app, int(self.url.rpartition(":")[2] or 0))
        self.url = f"http://127.0.0.1:{self._gateway[2]}"

    async def stop(self):
        """The gateway goes away."""
        self._gateway[0].should_exit = True
        await self._gateway[1]

    async def close(self):
        if self._client:
            await self._client.aclose()
        await self.stop()
        self._provider[0].should_exit = True
        await self._provider[1]

    def do(self, work):
        """Have the gateway's loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def call(self, work, *arguments):
        self.loop.call_soon_threadsafe(work, *arguments)

    async def client(self):
        self._client = self._client or httpx2.AsyncClient(timeout=None)
        return self._client

    def talk(self, *said, session=""):
        """Ask a question after this conversation: person, model, person, …"""
        roles = ("user", "assistant")
        messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
        return Talk(self, {"model": MODEL, "messages": messages, "stream": True}, session)

    def written(self, session):
        """Wait until something of this session is in the log: a turn is written after its answer."""
        self.do(self._written(session))

    async def _written(self, session):
        await eventually(lambda: self.store.read(session, limit=1))

    def skip(self, page, seconds):
        """Let time pass at once, for the gateway and for a page whose clock is installed."""
        self.clock.skipped += seconds
        page.clock.fast_forward(seconds * 1000)

    def record(self, session, *turns, tenant="alice"):
        """Write a session that is over into the log."""
        self.do(self._record(session, turns, tenant))

    async def _record(self, session, turns, tenant):
        for turn in turns:
            self.store._clock.day = turn["at"]
            entry = IndexEntry(
                session=session,
                turn=turn["id"],
                origin=ORIGIN,
                at=turn["at"],
                shape="t" * len(turn["thoughts"]) + "x",
                thoughts=tuple(turn["thoughts"]),
                calls=turn["calls"],
                chars=sum(len(thought.text) for thought in turn["thoughts"]),
                keys=(f"{session}/{turn['id']}".encode(),),
            )
            await self.store.append(
                Batch(session=session, tenant=tenant, drafts=turn["drafts"], index=(entry,))
            )
        self.store._clock.day = None

    async def answer(self, request):
        await request.body()
        if self.refuse:
            status, words = self.refuse
            return JSONResponse({"error": {"message": words}}, status)
        return StreamingResponse(self.pending.pop(0).stream(), media_type="text/event-stream")


# -- turns for the log ---------------------------------------------------------------------------


def thought(text, seconds, *, id="", sealed=False, aborted=False, start=0):
    raw = json.dumps({"type": "reasoning", "id": id, "encrypted_content": "x" * 3000})
    return Thought(
        carrier=Carrier.ITEM if id else Carrier.REASONING_CONTENT,
        raw=raw if id else json.dumps(text),
        text="" if sealed else text,
        id=id,
        seals=("digest",) if sealed else (),
        origin=ORIGIN,
        timing=timed(start * SECOND, seconds, sent=0, at=time.time(), cut=aborted),
    )


def turn(id, asked, *said, at=None, target=ORIGIN, cached=700, **more):
    """One exchange: thoughts and words, in order. What was asked is a text or a tool's result."""
    at = time.time() - 60 if at is None else at
    thoughts = [part for part in said if isinstance(part, Thought)]
    end = at + 2 + sum((one.timing.last - one.timing.opened) / SECOND for one in thoughts)
    more.setdefault("outcome", Outcome.COMPLETED)
    more["usage"] = Usage(input=1000, output=200, reasoning=150, cached=cached)
    drafts = drafted(id, [asked], said, target=target, at=at, end=end, **more)
    calls = tuple(part.id for part in said if isinstance(part, Call))
    return {"id": id, "at": at, "drafts": drafts, "thoughts": thoughts, "calls": calls}


def decision(position, action=Action.RESTORED, *, entry="", reason="", level=MatchLevel.FULL):
    out = action in (Action.RESTORED, Action.EXACT)
    return ReplayDecision(
        turn=position,
        action=action,
        reason=reason,
        level=level,
        entry=entry,
        thoughts=int(out),
        left=int(action is Action.DROPPED),
    )


# -- running -------------------------------------------------------------------------------------


async def _served(app, port=0):
    config = uvicorn.Config(app, port=port, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve())
    await eventually(lambda: server.started)
    return server, task, server.servers[0].sockets[0].getsockname()[1]


@contextmanager
def staged(*, token=""):
    """A stage for the length of a `with` block."""
    ready, over, box = threading.Event(), asyncio.Event(), {}

    async def main():
        stage = box["stage"] = Stage(asyncio.get_running_loop(), token)
        await stage.start()
        ready.set()
        await over.wait()
        await stage.close()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield box["stage"]
    finally:
        box["stage"].call(over.set)
        thread.join(60)
