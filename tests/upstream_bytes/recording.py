"""Records what Thoughtline sends upstream: the same conversations give the same bytes.

    python tests/upstream_bytes/recording.py FILE [--bodies FOLDER]

Conversations are held through a running gateway (`thoughtline serve`, with its settings file) and
through the library, with every simulated provider on a loopback port. Of each request that arrives
there the method, the target, the headers and the body are kept, as digests. Nothing here but the
public commands, settings and names of Thoughtline is used, so that two versions can be compared.

Every conversation has a simulator, an upstream and a model server's path of its own: what one
endpoint teaches the gateway changes nothing for another.
"""

import asyncio
import contextlib
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import uvicorn
from websockets.sync.client import connect

import thoughtline
from support.clients import TOOL_NAMES, client, load
from support.waiting import until
from thoughtline.testing import PROVIDERS, Reply, simulator
from thoughtline.testing.sims.app import SimApp
from thoughtline.testing.sims.serve import config, listen

POLICIES = {
    "deepseek-v3.2": "deepseek",
    "deepseek-anthropic": "deepseek",
    "deepseek-responses": "deepseek",
    "glm-anthropic": "glm",
    "kimi-k3": "kimi",
    "gemini-compat": "gemini",
    "gemini-vertex": "gemini",
    "claude": "anthropic",
    "claude-bound": "anthropic",
    "openai-ws": "openai",
}
"""The policy of a simulated provider, where the names differ; not imported, so that other versions
can be recorded too."""

FIELDS = {
    "claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "claude-bound": {"thinking": {"type": "adaptive"}},
}
"""What a client sets to make a model think, where it does not by itself."""

SWITCHES = {
    "chat": ("deepseek", "kimi-k3", "openrouter", "gemini-compat", "mistral", "minimax"),
    "responses": ("openai", "xai", "azure", "deepseek-responses"),
    "messages": ("claude", "deepseek-anthropic", "claude-bound"),
    "gemini": ("gemini", "gemini-vertex"),
}
"""Providers that a conversation wanders through, one after the other and back to the first."""

SOCKETS = ("openai", "openai-ws", "codex", "xai")
LEFT_OUT = frozenset({"host", "connection", "sec-websocket-key"})
"""Headers that differ from run to run, or belong to the hop."""


class Recorded:
    """An ASGI application in front of the simulators that keeps what arrives, by conversation."""

    def __init__(self, app):
        self.app = app
        self.arrived = {}

    async def __call__(self, scope, receive, send):
        mount = scope["path"].lstrip("/").partition("/")[0]
        requests = self.arrived.setdefault(mount, [])
        if scope["type"] == "websocket":
            requests.append(_request(scope, "CONNECT"))
            answering = send

            async def receiving():
                event = await receive()
                if event["type"] == "websocket.receive":
                    sent = (event.get("text") or "").encode() or event.get("bytes") or b""
                    frame = {"method": "FRAME", "target": "", "headers": [], "status": 0}
                    requests.append({**frame, "body": sent})
                return event

        else:
            request = _request(scope, scope["method"])
            requests.append(request)

            async def receiving():
                event = await receive()
                if event["type"] == "http.request":
                    request["body"] += event.get("body", b"")
                return event

            async def answering(event):
                request["status"] = event.get("status", request["status"])
                await send(event)

        await self.app(scope, receiving, answering)


def _request(scope, method):
    query = scope["query_string"].decode()
    headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
    return {
        "method": method,
        "target": scope["path"] + (f"?{query}" if query else ""),
        "headers": [pair for pair in headers if pair[0] not in LEFT_OUT],
        "body": b"",
        "status": 0,
    }


class Stage:
    """Simulators on a port, a gateway in front of them, and what arrived."""

    def __init__(self, folder):
        self.folder = folder
        self.sims = {}
        self.upstreams = {}
        self.recorded = Recorded(SimApp(self.sims))
        self.recorded.app.simulators = self.sims
        self.gateway = ""

    def mount(self, name, scenario, *, policy=None, websockets=False, seed=0):
        """A simulator and an upstream of its own for one conversation."""
        mount = f"{name}-{scenario}".lower()
        sim = self.sims[mount] = simulator(name, seed=seed, realistic=False)
        self.upstreams[mount] = {
            "base_url": self.url(mount),
            "policy": policy or POLICIES.get(name, name),
            "supports_websockets": websockets,
        }
        return mount, sim

    def root(self, mount):
        return f"http://127.0.0.1:{self.port}/{mount}"

    def url(self, mount):
        """What is set as `base_url`: the provider's, with its version where that is the end."""
        path = self.sims[mount].base_path
        return self.root(mount) + (path if path.rpartition("/")[2].startswith("v") else "")

    def client(self, mount, **options):
        """A client of this upstream, past the gateway or, with `through()`, through it."""
        sim = self.sims[mount]
        name = sim.provider
        given = {"model": sim.models()[0], "stream": True, **FIELDS.get(name, {}), **options}
        return client(sim.dialect, sim, base=sim.base_path, opening=f"Please mend {mount}", **given)

    def through(self, client, mount):
        """Let a client go on through the gateway."""
        versions = {"gemini": "/v1beta"}
        client.base = f"/u/{mount}{versions.get(self.sims[mount].dialect, '/v1')}"
        client.to = self.post
        return client

    def post(self, request):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway_port, timeout=60)
        target = request.path + (f"?{request.query}" if request.query else "")
        headers = {"content-type": "application/json", "user-agent": "a-client/1"}
        try:
            connection.request(request.method, target, request.body, {**headers, **request.headers})
            answer = connection.getresponse()
            head = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(status=answer.status, headers=head, chunks=(answer.read(),))
        finally:
            connection.close()

    # -- running -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def serving(self):
        sock = listen(0)
        self.port = sock.getsockname()[1]
        server = uvicorn.Server(config(self.recorded))
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield
        finally:
            self.recorded.app.closing = server.should_exit = True
            thread.join(60)
            sock.close()

    @contextlib.contextmanager
    def serving_gateway(self, program=("-m", "thoughtline")):
        """`thoughtline serve` with the upstreams that were mounted."""
        place = self.folder / "thoughtline.toml"
        place.write_text("".join(_toml(name, up) for name, up in self.upstreams.items()))
        flags = ["--port", "0", "--config", str(place), "--json", "--log-level", "error"]
        store = f"sqlite:///{self.folder}/gateway.db"
        with subprocess.Popen(
            [sys.executable, *program, "serve", "--store", store, *flags],
            stdout=subprocess.PIPE,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        ) as process:
            try:
                self.gateway = json.loads(process.stdout.readline())["url"]
                self.gateway_port = int(self.gateway.rpartition(":")[2])
                yield
                self.metrics = self._metrics()
            finally:
                process.terminate()
                process.wait(60)

    def _metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway_port, timeout=60)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        finally:
            connection.close()


def _toml(name, upstream):
    lines = [f"{key} = {json.dumps(value)}" for key, value in upstream.items()]
    return "\n".join([f'[upstreams."{name}"]', *lines, "", ""])


# -- through the gateway -------------------------------------------------------------------------
# Each conversation is a generator: it mounts what it needs, waits for the gateway, and talks.


def models(sim):
    first, *rest = sim.models()
    return first, rest[0] if rest else first


def echoing(stage, name, echo, *, stream, second=False, turns=7):
    mount, sim = stage.mount(name, f"{echo}-{'stream' if stream else 'json'}")
    yield
    model = models(sim)[second]
    talker = stage.client(mount, echo=echo, stream=stream, model=model)
    stage.through(talker, mount)
    for _ in range(turns):
        talker.turn()


def switching_models(stage, name):
    mount, sim = stage.mount(name, "models")
    yield
    talker = stage.through(stage.client(mount, echo="strip"), mount)
    for model in (*models(sim), *models(sim)):
        talker.model = model
        talker.turn()
        talker.turn()


def switching_providers(stage, dialect, echo):
    mounts = [stage.mount(name, f"away-{echo}")[0] for name in SWITCHES[dialect]]
    yield
    talker = stage.client(mounts[0], echo=echo)
    for mount in (*mounts, mounts[0]):
        sim = stage.sims[mount]
        talker.model = sim.models()[0]
        talker.body = dict(FIELDS.get(sim.provider, {}))
        stage.through(talker, mount)
        talker.turn()
        talker.turn()
        talker.turn()


def edited(stage, name):
    """The beginning of the conversation is cut off, then the client says something else there."""
    mount, _ = stage.mount(name, "edited")
    yield
    talker = stage.through(stage.client(mount, echo="strip"), mount)
    for _ in range(6):
        talker.turn()
    starts = talker.find(lambda entry: b"mend" in json.dumps(entry).encode() or is_question(entry))
    talker.history = talker.history[starts[-1] :]
    talker.turn()
    talker.turn()
    talker.history[0] = talker.user("Something else")
    talker.turn()


def is_question(entry):
    return "And then?" in json.dumps(entry)


def unknown(stage, name, policy, echo):
    """A conversation that began before the gateway was there, and lost its thoughts."""
    lost = echo if isinstance(echo, str) else "ids"
    mount, _ = stage.mount(name, f"unknown-{policy or 'own'}-{lost}", policy=policy)
    yield
    talker = stage.client(mount)
    for _ in range(4):
        talker.turn()
    talker.echo = echo
    stage.through(talker, mount)
    for _ in range(4):
        talker.turn()


def damaged(stage, name):
    """A conversation whose kept thoughts the provider does not take any more."""
    mount, _ = stage.mount(name, "damaged")
    yield
    talker = stage.client(mount)
    for _ in range(4):
        talker.turn()
    talker.history = [spoiled(entry) for entry in talker.history]
    stage.through(talker, mount)
    for _ in range(4):
        talker.turn()


SEALS = ("encrypted_content", "signature", "data", "thought_signature", "thoughtSignature")


def spoiled(entry):
    """An entry whose seals are broken in their middle."""
    if not isinstance(entry, bytes):
        return json.loads(spoiled(json.dumps(entry).encode()))
    for seal in sorted(seals(load(entry)), key=len):
        middle = len(seal) // 2
        other = "A" if seal[middle] != "A" else "B"
        broken = seal[: middle - 8] + other * 8 + seal[middle:]
        entry = entry.replace(seal.encode(), broken.encode())
    return entry


def seals(node):
    nodes = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = (
        [node[key] for key in SEALS if isinstance(node.get(key), str)]
        if isinstance(node, dict)
        else []
    )
    return [s for s in own if len(s) > 40] + [seal for inner in nodes for seal in seals(inner)]


def stateful(stage, name, *, store):
    """The Responses API with a server that remembers, or that is asked to and may not."""
    mount, sim = stage.mount(name, f"stateful-{store}")
    yield
    path = f"/u/{mount}/v1/responses"
    tools = [{"type": "function", "name": n, "parameters": {}} for n in TOOL_NAMES]
    body = {"model": sim.models()[0], "tools": tools, "store": store, "stream": False}
    body["stream"] = name == "codex"
    given, previous = [{"role": "user", "content": "Please go ahead."}], ""
    for number in range(5):
        more = {"previous_response_id": previous} if previous else {}
        raw = json.dumps({**body, **more, "input": given}).encode()
        head = {"authorization": "Bearer key-one"}
        reply = stage.post(_Post(path, raw, head))
        if reply.status != 200:
            continue
        response = _response(reply)
        previous = response["id"]
        calls = [item for item in response["output"] if item["type"] == "function_call"]
        given = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "fine"}
            for call in calls
        ] or [{"role": "user", "content": f"And then? {number}"}]


def references(stage, name):
    """The Responses API with items by their ids."""
    mount, _ = stage.mount(name, "references")
    yield
    talker = stage.through(stage.client(mount, stream=name == "codex"), mount)
    talker.turn()
    talker.turn()

    def by_id(entries):
        kinds = ("reasoning", "message", "function_call")
        return [
            {"type": "item_reference", "id": entry["id"]}
            if entry.get("type") in kinds and entry.get("id")
            else entry
            for entry in entries
        ]

    talker.echo = by_id
    for _ in range(3):
        talker.turn()


def headers(stage, name):
    """What goes through of a client's headers, and paths that are only passed on."""
    mount, _ = stage.mount(name, "headers")
    yield
    own = {
        "cookie": "a=b",
        "x-custom": "kept",
        "x-thoughtline-session": "mine",
        "accept": "application/json",
        "openai-organization": "org",
        "x-request-id": "one",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "x-forwarded-for": "10.0.0.1",
    }
    talker = stage.through(stage.client(mount, headers=own, stream=False), mount)
    talker.turn()
    body = json.dumps({"model": talker.model, "messages": []}).encode()
    for method, path in (
        ("POST", f"/u/{mount}/v1/messages/count_tokens"),
        ("GET", f"/u/{mount}/v1/files/one?after=two"),
        ("POST", f"/u/{mount}/v1/embeddings"),
        ("DELETE", f"/u/{mount}/v1/responses/resp_1"),
    ):
        sent = body if method == "POST" else b""
        stage.post(_Post(path, sent, {"authorization": "Bearer key-one", **own}, method))


def socket(stage, name, *, upstream):
    """A client that speaks over a WebSocket and sends what is new, then what is stripped."""
    mount, sim = stage.mount(name, f"socket-{upstream}", websockets=upstream)
    yield
    url = stage.gateway.replace("http", "ws") + f"/u/{mount}/v1/responses"
    tools = [{"type": "function", "name": n, "parameters": {}} for n in TOOL_NAMES]
    own = {"type": "response.create", "model": sim.models()[0], "tools": tools, "store": False}
    own["include"] = ["reasoning.encrypted_content"]
    history, new, previous = [], [{"role": "user", "content": "Please go ahead."}], ""
    with connect(
        url, additional_headers={"authorization": "Bearer key-one"}, user_agent_header="a-client/1"
    ) as line:
        for number in range(8):
            history += new
            if number == 5:  # it has forgotten its thoughts and the server's name for them
                previous = ""
                history = [
                    {k: v for k, v in item.items() if k not in ("id", "status")}
                    for item in history
                    if item.get("type") != "reasoning"
                ]
            whole = {"input": history}
            more = {"previous_response_id": previous, "input": new} if previous else whole
            line.send(json.dumps({**own, **more}))
            events = []
            while not events or events[-1]["type"] not in ENDS:
                events.append(json.loads(line.recv(timeout=60)))
            if events[-1]["type"] != "response.completed":
                break
            previous = events[-1]["response"]["id"]
            items = [e["item"] for e in events if e["type"] == "response.output_item.done"]
            history += items
            new = [
                {"type": "function_call_output", "call_id": i["call_id"], "output": "fine"}
                for i in items
                if i["type"] == "function_call"
            ] or [{"role": "user", "content": f"And then? {number}"}]


ENDS = ("response.completed", "response.failed", "response.incomplete", "error")


class _Post:
    def __init__(self, path, body, headers, method="POST"):
        self.path, _, self.query = path.partition("?")
        self.body, self.headers, self.method = body, headers, method


def _response(reply):
    if reply.headers["content-type"].startswith("application/json"):
        return json.loads(reply.body)
    last = [line for line in reply.body.split(b"\n") if line.startswith(b"data: ")][-1]
    return json.loads(last[6:])["response"]


def conversations(stage):
    """All of them; the name of each says where it was held."""
    for name in PROVIDERS:
        dialect = simulator(name).dialect
        yield echoing(stage, name, "strip", stream=True)
        if name != "codex":
            yield echoing(stage, name, "strip", stream=False, second=True)
        yield echoing(stage, name, "keep", stream=True, turns=4)
        yield echoing(stage, name, "respell", stream=True)
        yield switching_models(stage, name)
        yield edited(stage, name)
        yield unknown(stage, name, None, "strip")
        yield unknown(stage, name, "generic", "strip")
        yield damaged(stage, name)
        yield headers(stage, name)
        if dialect == "responses":
            yield unknown(stage, name, None, ids_kept)
            for store in (True, False):
                yield stateful(stage, name, store=store)
            yield references(stage, name)
    for dialect in SWITCHES:
        for echo in ("keep", "strip"):
            yield switching_providers(stage, dialect, echo)
    for name in SOCKETS:
        for upstream in (True, False):
            yield socket(stage, name, upstream=upstream)


def ids_kept(entries):
    """A client of the Responses API that loses its thoughts and keeps all ids."""
    return [entry for entry in entries if entry.get("type") != "reasoning"]


# -- through the library ---------------------------------------------------------------------------


async def read_file(path: str, n: float = 1.0) -> str:
    """Read a text file."""
    return f"{n} lines of {path}\n"


def run(command: str, cwd: str = ".") -> dict[str, str]:
    """Run a command."""
    return {"ran": command, "in": cwd}


def search(query: str, limit: int = 3, all: bool = False) -> list[str]:  # noqa: A002 (the model's word)
    """Search for something."""
    return [query] * min(limit, 2)


TOOLS = (read_file, run, search)


def provider(stage, mount, model="", **more):
    sim = stage.sims[mount]
    return thoughtline.Provider(
        sim.provider,
        model=model or sim.models()[0],
        base_url=stage.url(mount),
        dialect=sim.dialect,
        policy=POLICIES.get(sim.provider, sim.provider),
        key="key-one",
        options=FIELDS.get(sim.provider, {}),
        retries=0,
        **more,
    )


async def agent(stage, name):
    """Tools, another model, a fork, a rewind, and a session that is resumed."""
    mount, sim = stage.mount(name, "agent")
    _, second = models(sim)
    url = f"sqlite:///{stage.folder}/{mount}.db"
    given = {"tools": TOOLS, "system": "Be brief."}
    async with thoughtline.open(url, secret=b"secret") as log:
        chat = await log.create(provider=provider(stage, mount), **given)
        answers = [await chat.run(f"Please mend {number}") for number in range(3)]
        fork = await chat.fork(answers[0].turn)
        await fork.run("Elsewhere")
        head = chat.head
        chat.rewind(answers[1].turns[0].id)
        await chat.run("Never mind")
        chat.switch(head)
        await chat.use(provider(stage, mount, second)).run("With another")
        session = chat.id
    async with thoughtline.open(url, secret=b"secret") as log:
        chat = await log.resume(session, at=head, provider=provider(stage, mount), **given)
        await chat.run("And now?")


async def agent_switches(stage, home, away):
    mounts = [
        stage.mount(name, f"agent-{home}-{away}", seed=at)[0]
        for at, name in enumerate((home, away))
    ]
    async with thoughtline.open("memory://", secret=b"secret") as log:
        chat = await log.create(
            provider=provider(stage, mounts[0]), tools=TOOLS, system="Be brief."
        )
        await chat.run("One")
        await chat.use(provider(stage, mounts[1])).run("Two")
        await chat.use(provider(stage, mounts[0])).run("Three")


async def agent_responses(stage, name, **how):
    mount, _ = stage.mount(name, f"agent-{next(iter(how))}")
    async with thoughtline.open("memory://", secret=b"secret") as log:
        chat = await log.create(
            provider=provider(stage, mount, **how), tools=TOOLS, system="Be brief."
        )
        for number in range(3):
            await chat.run(f"Please mend {number}")


async def agent_recovers(stage, name):
    """Imported thoughts that the provider does not take: what the library does about it may differ."""
    mount, _ = stage.mount(name, "agent-recovers")
    given = {"tools": TOOLS, "system": "Be brief."}
    async with thoughtline.open("memory://", secret=b"secret") as log:
        chat = await log.create(provider=provider(stage, mount), **given)
        await chat.run("One")
        await chat.run("Two")
        lines = [spoiled_line(line) async for line in log.export_lines(chat.id)]
        session = chat.id
    async with thoughtline.open("memory://", secret=b"secret") as log:
        await log.import_lines(lines)
        chat = await log.resume(session, provider=provider(stage, mount), **given)
        for number in range(2):
            await chat.run(f"And {number}?")


def spoiled_line(line):
    document = json.loads(line)
    data = document.get("data")
    data = json.loads(data) if isinstance(data, str) else data
    if document.get("type") == "reasoning" and data["thought"].get("seals"):
        raw = data["thought"]["raw"]
        data["thought"]["raw"] = spoiled(raw.encode()).decode() if seals(json.loads(raw)) else raw
    document["data"] = data
    return json.dumps(document)


async def library(stage):
    for name in PROVIDERS:
        await agent(stage, name)
        await agent_recovers(stage, name)
    for home in ("deepseek", "openai", "claude", "gemini"):
        for away in ("deepseek", "openai", "claude", "gemini", "groq", "openrouter"):
            if home != away:
                await agent_switches(stage, home, away)
    for name in ("openai", "azure", "xai", "deepseek-responses"):
        await agent_responses(stage, name, stateful=True)
    for name in ("openai", "openai-ws", "deepseek-responses"):
        await agent_responses(stage, name, websockets=True)


# -- the record --------------------------------------------------------------------------------


def record_gateway(*program):
    """Hold all conversations through the gateway; what arrived, by conversation."""
    return hold(*program).recorded.arrived


def hold(*program):
    """Hold all conversations through the gateway; the stage, with what arrived."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        with stage.serving():
            held = list(conversations(stage))
            for one in held:
                next(one)
            with stage.serving_gateway(*([program] if program else [])):
                for one in held:
                    next(one, None)
        return stage


def record_library():
    """Hold all conversations through the library; what arrived, by conversation."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        with stage.serving():
            asyncio.run(library(stage))
        return stage.recorded.arrived


def digested(arrived):
    """Requests as digests: `[method, target, headers, size of the body, digest, status]`."""
    told = {}
    for mount, requests in sorted(arrived.items()):
        made = {}
        told[mount] = [_digest(mount, request, made) for request in requests]
    return told


MADE_UP = re.compile(rb'("(?:id|call_id|tool_call_id|tool_use_id)": ?")([A-Za-z0-9]{9})"')
"""Calls that another provider made get ids of nine characters, from the ids of their turns."""


def _digest(mount, request, made):
    def number(found):
        return b'%smade%05d"' % (found[1], made.setdefault(found[2], len(made)))

    body = MADE_UP.sub(number, request["body"])
    headers = sorted(list(pair) for pair in request["headers"] if pair[0] != "content-length")
    target = request["target"].removeprefix(f"/{mount}")
    digest = hashlib.sha256(body).hexdigest()[:12]
    return [request["method"], target, headers, len(body), digest, request["status"]]


def dump(*recordings):
    """Recordings as JSON, one line per conversation; equal headers are written once."""
    heads = []
    for rows in (rows for recording in recordings for rows in recording.values()):
        heads += [row[2] for row in rows if row[2] not in heads]
    lines = {
        mount: [[*row[:2], heads.index(row[2]), *row[3:]] for row in rows]
        for recording in recordings
        for mount, rows in recording.items()
    }
    listed = ",\n".join(json.dumps(head, separators=(",", ":")) for head in heads)
    told = ",\n".join(
        f"{json.dumps(mount)}:{json.dumps(rows, separators=(',', ':'))}"
        for mount, rows in lines.items()
    )
    return f'{{"headers":[\n{listed}\n],"requests":{{\n{told}\n}}}}\n'


def parse(text):
    """What `dump` wrote."""
    written = json.loads(text)
    heads = written["headers"]
    return {
        mount: [[*row[:2], heads[row[2]], *row[3:]] for row in rows]
        for mount, rows in written["requests"].items()
    }


def save_bodies(arrived, folder):
    """Write each body to a file of its own, for a look at what is different."""
    for mount, requests in arrived.items():
        place = Path(folder) / mount
        place.mkdir(parents=True, exist_ok=True)
        for number, request in enumerate(requests):
            (place / f"{number:02d}").write_bytes(request["body"])


if __name__ == "__main__":
    target, *rest = sys.argv[1:]
    recorded = [record_gateway(), record_library()]
    Path(target).write_text(dump(*map(digested, recorded)))
    for arrived in recorded if rest else ():
        save_bodies(arrived, rest[1])
