"""A gateway on a loopback port, for the length of a `with` block."""

import asyncio
import contextlib
import threading

import uvicorn

from support.waiting import eventually
from thoughtline.agents.simulated import POLICIES
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.server.protocol import HttpProtocol
from thoughtline.gateway.server.websocket_protocol import WebSocketProtocol
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.wires.http import HttpWire


class RecordingObserver:
    """An observer that remembers."""

    def __init__(self):
        self.records = []
        self.losses = []
        self.sendings = []

    def replayed(self, exchange):
        pass

    def recovered(self, exchange, strategy, *, changed):
        self.records.append(("recovered", strategy, changed))

    def ended(self, exchange, status, reason):
        self.records.append((status, reason))

    def lost(self, exchange, error):
        self.losses.append(str(error))

    def passed(self, upstream, dialect, status, request=""):
        self.records.append(("passed", upstream, status))

    def sent(self, upstream, sent):
        self.sendings.append((upstream, sent.transport, str(sent.plan.reason)))

    def refused(self, upstream, dialect, status, code, request=""):
        self.records.append(("refused", status, code))


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
    notes = RecordingObserver()
    started = threading.Event()
    box = {}

    async def main():
        proxy = Proxy(
            auth=Auth(b"secret" * 8, clients=clients),
            directory=Directory(upstreams),
            store=store() if callable(store) else store or CachedStore(MemoryStore()),
            wire=wire or HttpWire(),
            observer=notes,
            options=options or ProxyOptions(commit_wait=60),
        )
        app = Gateway(proxy, page, grace=more.get("grace", 5.0))
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_level="error",
            http=HttpProtocol,
            lifespan="on",
            ws=WebSocketProtocol,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        server = box["server"] = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        await eventually(lambda: server.started or serving.done())
        box["running"] = Running(app, notes, server.servers[0].sockets[0].getsockname()[1])
        box["running"].loop = asyncio.get_running_loop()
        started.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield box["running"]
    finally:
        box["server"].should_exit = True
        thread.join(60)
