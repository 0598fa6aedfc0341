"""Simulated providers on a loopback port: in a thread for a `with` block, or until Ctrl-C.

    with serving("deepseek", "kimi") as sims:
        client = OpenAI(base_url=sims.url("deepseek"), api_key="any")
        ...
        assert sims["deepseek"].requests[-1].audit.clean

The port is chosen by the system unless one is given. Nothing listens on anything but loopback.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import uvicorn

from thoughtline.testing.sims import PROVIDERS, simulator
from thoughtline.testing.sims.app import SimApp
from thoughtline.testing.sims.base import Pace, Simulator

HOST = "127.0.0.1"


class Serving:
    """Simulators that are being served."""

    def __init__(self, app: SimApp, port: int) -> None:
        self.app = app
        self.port = port

    def __getitem__(self, name: str) -> Simulator:
        return self.app.simulators[name]

    def root(self, name: str) -> str:
        """Where a provider's paths begin."""
        return f"http://{HOST}:{self.port}/{name}"

    def url(self, name: str) -> str:
        """The base URL to give to a client of this provider's dialect."""
        return base_url(self.root(name), self[name])

    @property
    def aborted(self) -> int:
        """How many replies a client hung up on."""
        return self.app.aborted


def base_url(root: str, sim: Simulator) -> str:
    """What a client wants: OpenAI's clients include the version, the others add it themselves."""
    return root + sim.base_path if sim.dialect in ("chat", "responses") else root


def build(*names: str | Simulator, **options: Any) -> Mapping[str, Simulator]:
    """The simulators of these names (all of them when none is given), by name."""
    chosen = names or tuple(PROVIDERS)
    sims = [simulator(n, **options) if isinstance(n, str) else n for n in chosen]
    return {sim.provider: sim for sim in sims}


@contextlib.contextmanager
def serving(
    *names: str | Simulator, port: int = 0, pace: Pace | None = None, **options: Any
) -> Iterator[Serving]:
    """Serve these providers for the length of the block, from a thread of their own."""
    app = SimApp(build(*names, **options), pace=pace)
    with _listening(port) as sock:
        server = uvicorn.Server(config(app))
        thread = threading.Thread(target=server.run, args=([sock],), name="sims", daemon=True)
        thread.start()
        try:
            _wait_until_up(server, thread)
            yield Serving(app, sock.getsockname()[1])
        finally:
            app.closing = True
            server.should_exit = True
            thread.join(timeout=10)


def serve_forever(app: SimApp, sock: socket.socket) -> None:
    """Serve until interrupted."""
    # uvicorn ends cleanly on Ctrl-C, then raises the signal again for its caller.
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config(app)).run([sock])


def config(app: SimApp) -> uvicorn.Config:
    """How uvicorn runs the app: quietly, as cut streams are meant to be cut."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,  # as providers do: a busy machine is not a reason to hang up
    )


def listen(port: int) -> socket.socket:
    """A listening socket on loopback; 0 lets the system choose."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
        sock.listen(1024)
    except (OSError, OverflowError):
        sock.close()
        raise
    return sock


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    sock = listen(port)
    try:
        yield sock
    finally:
        sock.close()


def _wait_until_up(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + 10
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the simulated providers did not start")
        time.sleep(0.005)
