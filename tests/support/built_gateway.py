"""A gateway as `build` makes it, over a simulated provider, with its log at hand."""

import contextlib
import io
import json

from starlette.testclient import TestClient

from support.gateway import InProcessGateway, SimWire
from thoughtline.gateway.build import build
from thoughtline.gateway.settings import (
    AccessSettings,
    Secret,
    Settings,
    StoreSettings,
    UpstreamSettings,
)
from thoughtline.inspector import inspector
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

TOKEN = "admin-token-canary"
KEY = "client-key-canary"
TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]


def configured(**sections):
    """Settings with one upstream, `up`, and nothing on disk."""
    upstream = UpstreamSettings(
        name="up", base_url="http://sim", policy="deepseek", models=("deepseek-*",)
    )
    given = {"store": StoreSettings(url="memory://"), "upstreams": {"up": upstream}}
    return Settings(**given | sections)


def with_token(**sections):
    return configured(access=AccessSettings(admin_token=Secret(TOKEN)), **sections)


class BuiltGateway:
    """A gateway and what is around it."""

    def __init__(
        self, settings=None, *, sim="deepseek", wire=None, store=None, pages=inspector, **more
    ):
        self.settings = settings or configured()
        self.sim = simulator(sim)
        self.wire = wire or SimWire(self.sim)
        self.lines = io.StringIO()
        self.inner = store or MemoryStore()
        self.app = build(
            self.settings,
            wire=self.wire,
            store=self.inner,
            pages=pages,
            log=self.lines,
            env={},
            **more,
        )
        self.proxy = self.app.proxy
        self.telemetry = self.proxy.observer
        self.store = self.proxy.store

    @property
    def log(self):
        return [json.loads(line) for line in self.lines.getvalue().splitlines()]

    def events(self, name):
        return [line for line in self.log if line["event"] == name]

    @contextlib.contextmanager
    def client(self, peer="127.0.0.1", host="127.0.0.1:7337", **more):
        """A client at this address, while the gateway lives."""
        with TestClient(self.app, base_url=f"http://{host}", client=(peer, 4711), **more) as client:
            yield client

    def gateway(self):
        """The proxy alone, for the clients in `gateway`."""
        gateway = InProcessGateway(self.wire, store=self.store)
        gateway.proxy = self.proxy
        return gateway


def converse(client, exchanges=3, *, model="deepseek-v4-pro", key=KEY, said="hello-canary"):
    """A careless client's conversation; the answers."""
    messages, answers = [{"role": "user", "content": said}], []
    for _ in range(exchanges):
        answer = client.post(
            "/v1/chat/completions",
            json={"model": model, "messages": messages, "tools": TOOLS},
            headers={"authorization": f"Bearer {key}"},
        )
        answers.append(answer)
        message = answer.json()["choices"][0]["message"]
        message.pop("reasoning_content", None)
        messages.append(message)
        calls = message.get("tool_calls") or []
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "result-canary"}
            for call in calls
        ]
        if not calls:
            messages.append({"role": "user", "content": "go on"})
    return answers


def metrics(client):
    """The samples of /metrics: name and labels → value."""
    lines = [line for line in client.get("/metrics").text.splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
