"""A gateway on a loopback port, for the length of a `with` block."""

import asyncio
import contextlib
import threading

import uvicorn

from thoughtline.cli.heads import Bounded
from thoughtline.gateway.access import Door
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.proxy import Options, Proxy
from thoughtline.gateway.upstreams import Directory, Upstream
from thoughtline.stores.hot import HotStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.wires.http import HttpWire

POLICIES = {
    "deepseek-v3.2": "deepseek",
    "deepseek-anthropic": "deepseek",
    "deepseek-responses": "deepseek",
    "kimi-k3": "kimi",
    "gemini-compat": "gemini",
    "gemini-vertex": "gemini",
    "claude": "anthropic",
    "claude-bound": "anthropic",
    "openai-ws": "openai",
}


class Notes:
    """An observer that remembers."""

    def __init__(self):
        self.walks = []
        self.losses = []
        self.sendings = []

    def replayed(self, exchange):
        pass

    def healed(self, exchange, remedy, *, changed):
        self.walks.append(("healed", remedy, changed))

    def ended(self, exchange, status, reason):
        self.walks.append((status, reason))

    def lost(self, exchange, error):
        self.losses.append(str(error))

    def passed(self, upstream, dialect, status):
        self.walks.append(("passed", upstream, status))

    def sent(self, upstream, sent):
        self.sendings.append((upstream, sent.transport, str(sent.plan.reason)))

    def refused(self, upstream, dialect, status, code):
        self.walks.append(("refused", status, code))


async def page(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ours"})


class Running:
    """A gateway that answers."""

    def __init__(self, app, notes, port):
        self.app, self.notes, self.port = app, notes, port
        self.url = f"http://127.0.0.1:{port}"

    @property
    def proxy(self):
        return self.app.proxy


def upstreams(sims, *names, **more):
    """Simulated providers of a `serving` block as upstreams."""
    return [
        Upstream(name=name, base_url=sims.root(name), policy=POLICIES.get(name, name), **more)
        for name in names
    ]


@contextlib.contextmanager
def running(upstreams, *, store=None, options=None, clients=None, wire=None, **more):
    notes = Notes()
    started = threading.Event()
    box = {}

    async def main():
        proxy = Proxy(
            door=Door(b"secret" * 8, clients=clients),
            directory=Directory(upstreams),
            store=store() if callable(store) else store or HotStore(MemoryStore()),
            wire=wire or HttpWire(),
            observer=notes,
            options=options or Options(),
        )
        app = Gateway(proxy, page, grace=more.get("grace", 5.0))
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_level="error",
            http=Bounded,
            lifespan="on",
            ws="websockets-sansio",
            server_header=False,
            date_header=False,
        )
        server = box["server"] = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        box["running"] = Running(app, notes, server.servers[0].sockets[0].getsockname()[1])
        started.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(20)
    try:
        yield box["running"]
    finally:
        box["server"].should_exit = True
        thread.join(20)
