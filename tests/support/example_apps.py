"""The example behind assistant-ui, served for a test, with a model whose pace the test sets."""

import asyncio
import importlib
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from support.waiting import eventually
from thoughtline.testing import Pace

FOLDER = Path(__file__).parents[2] / "examples" / "assistant-ui"


class Served:
    """The example while it runs."""

    def __init__(self, url, sims):
        self.url, self._sims = url, sims

    def pace(self, delay):
        """Seconds between two pieces of what the model says, from now on."""
        self._sims[-1].app.pace = Pace(delay)


@asynccontextmanager
async def served(monkeypatch, *, store="memory://", page=None, delay=0.0):
    """The back end on a loopback port, and the built page if there is one."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PACE", str(delay))
    monkeypatch.setenv("STORE", store)
    monkeypatch.delenv("PROVIDER", raising=False)
    for name in ("server", "model"):
        sys.modules.pop(name, None)
    model, server = importlib.import_module("model"), importlib.import_module("server")
    sims, serving = [], model.serving

    @contextmanager
    def watched(*args, **more):
        with serving(*args, **more) as sim:
            sims.append(sim)
            yield sim

    monkeypatch.setattr(model, "serving", watched)
    routes = [route for route in server.app.router.routes if not isinstance(route, Mount)]
    if page is not None:
        routes.append(Mount("/", StaticFiles(directory=page, html=True)))
    server.app.router.routes[:] = routes
    config = uvicorn.Config(
        server.app, port=0, log_level="error", ws="none", timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    task = asyncio.ensure_future(running.serve())
    await eventually(lambda: running.started or task.done())
    assert not task.done(), "the example did not start"
    port = running.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(f"http://127.0.0.1:{port}", sims)
    finally:
        running.should_exit = True
        await task
        for name in ("server", "model"):
            sys.modules.pop(name, None)
