"""A gateway in this process: a proxy over a wire that a test writes, or over a simulator."""

import asyncio
import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from msgspec.structs import replace

from support.gateway_server import RecordingObserver
from thoughtline.cli.conversation import TOOLS, stripped
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.engine.capture import output_parts
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.proxy import Proxy
from thoughtline.log.parts import Origin, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Request, simulator

PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
    "gemini": "/models/{model}:generateContent",
}


class Answer:
    """A response, for a wire to give and for a client to have."""

    def __init__(self, status=200, body=b"{}", headers=None):
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = list((headers or {"content-type": "application/json"}).items())
        self._left = [self.body]

    async def chunks(self):
        while self._left:
            yield self._left.pop(0)

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return dict(self.headers).get(name)


class ScriptedWire:
    """Answers with what it was given, one after the other; the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    @asynccontextmanager
    async def send(self, request):
        self.sent.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        made = answer(request) if callable(answer) else answer
        yield type(made)(made.status, made.body, dict(made.headers))

    async def close(self):
        pass

    @property
    def bodies(self):
        return [json.loads(request.body) for request in self.sent]


class SimWire(ScriptedWire):
    """Takes requests to a simulated provider."""

    def __init__(self, sim):
        self.sim = sim
        self.sent = []
        self.replies = []

    @asynccontextmanager
    async def send(self, request):
        self.sent.append(request)
        place = urlsplit(request.url)
        head = {name.lower(): value for name, value in request.headers}
        reply = self.sim.answer(
            Request(request.method, place.path, head, request.body, place.query)
        )
        self.replies.append(reply)
        yield Answer(reply.status, reply.body, reply.headers)


class InProcessGateway:
    """A gateway with one upstream."""

    def __init__(
        self,
        wire,
        policy="generic",
        *,
        store=None,
        url="http://sim",
        observer=None,
        clock=None,
        **options,
    ):
        self.wire = wire
        self.store = store or MemoryStore()
        self.notes = observer or RecordingObserver()
        upstream = Upstream(name="up", base_url=url, policy=policy)
        self.proxy = Proxy(
            auth=Auth(b"secret" * 8),
            directory=Directory([upstream]),
            store=self.store,
            wire=wire,
            observer=self.notes,
            options=ProxyOptions(**options),
            clock=clock,
        )

    async def get(self, path, headers):
        """One request without a body, with these headers and no others."""
        return await self._ask("GET", path, b"", headers)

    async def post(self, path, body, headers=None, keep=bytes, query=""):
        """One request as a client sends it; the answer as it gets it, or what it keeps of that."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"authorization": "Bearer a-key", "anthropic-version": "2023-06-01"}
        head = {**head, "content-type": "application/json", **(headers or {})}
        return await self._ask("POST", path, raw, head, keep, query)

    async def _ask(self, method, path, raw, head, keep=bytes, query=""):
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(n.encode(), v.encode()) for n, v in head.items()],
        }
        waiting = [{"type": "http.request", "body": raw, "more_body": False}]
        told = []
        over = asyncio.Event()

        async def receive():
            if waiting:
                return waiting.pop()
            await over.wait()  # as servers do it: who has been answered is gone
            return {"type": "http.disconnect"}

        async def send(message):
            told.append({**message, "body": keep(message.get("body", b""))})
            if "body" in message and not message.get("more_body"):
                over.set()

        await self.proxy(scope, receive, send)
        await self.proxy.engine.writer.settled()
        start = told[0]
        made = {n.decode(): v.decode() for n, v in start["headers"]}
        return Answer(start["status"], b"".join(m.get("body", b"") for m in told[1:]), made)

    async def events(self, type):
        """All events of one type, in all sessions."""
        sessions = await self.store.sessions(limit=1000)
        events = [e for s in sessions for e in await self.store.read(s.session)]
        return [event for event in events if event.type == type]

    async def facts(self, type):
        """Their bodies."""
        return [event.body() for event in await self.events(type)]


def gateway_with(name, policy="generic", *, store=None, **more):
    """A gateway over a simulated provider."""
    sim = simulator(name, **more)
    return InProcessGateway(SimWire(sim), policy, store=store)


def statuses(gateway):
    """What the simulated provider answered, request by request."""
    return [reply.status for reply in gateway.wire.replies]


def audit(gateway):
    """What it says of the thoughts that came last."""
    return gateway.wire.replies[-1].headers["x-sim-thoughts"]


def recovered(gateway):
    """The strategies that were tried and helped."""
    return [record[1] for record in gateway.notes.records if record[0] == "recovered" and record[2]]


class TurnClient:
    """A client that writes its requests from turns; tests may alter those in between."""

    def __init__(
        self, gateway, dialect, model, *, keep=True, fields=None, tools=TOOLS, headers=None
    ):
        self.gateway, self.model, self.keep = gateway, model, keep
        self.dialect = DIALECTS[dialect]
        self.fields, self.tools, self.headers = fields or {}, tools, headers or {}
        self.turns = []

    @property
    def path(self):
        return "/v1" + PATHS[self.dialect.name].format(model=self.model)

    def body(self):
        turns = self.turns if self.keep else [stripped(turn) for turn in self.turns]
        return self.dialect.write(
            turns, model=self.model, tools=self.tools, stream=False, fields=self.fields
        )

    async def say(self, *parts, direct=False):
        """One exchange through the gateway, or past it; the answer, and the turn in `turns`."""
        self.turns.append(Turn(input=parts))
        answer = await (self._past() if direct else self._through())
        if answer.status != 200:
            self.turns.pop()
            return answer
        reader = self.dialect.reader(stream=False, clock=SystemClock(), origin=Origin(), sent=0)
        said = output_parts([*reader.feed(answer.body), *reader.close()])
        self.turns[-1] = replace(self.turns[-1], output=tuple(said))
        return answer

    async def _through(self):
        return await self.gateway.post(self.path, self.body(), self.headers)

    async def _past(self):
        head = {"authorization": "Bearer a-key", "anthropic-version": "2023-06-01"}
        request = Request("POST", self.path, head | self.headers, self.body())
        reply = self.gateway.wire.sim.answer(request)
        return Answer(reply.status, reply.body, reply.headers)

    async def run(self, exchanges, *, direct=False):
        """Talk on: results for calls, a new question after an answer."""
        for _ in range(exchanges):
            answer = await self.say(*self.next(), direct=direct)
            assert answer.status == 200, answer.body
        return self

    def next(self):
        """What comes next."""
        calls = self.turns[-1].calls if self.turns else ()
        said = [Result(call=call.id, name=call.name, content="ok") for call in calls]
        return said or [Text(text=f"Question {len(self.turns)}")]
