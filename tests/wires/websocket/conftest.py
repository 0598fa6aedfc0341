"""Simulated servers with a WebSocket."""

import pytest

from thoughtline.testing import serving, simulator


@pytest.fixture(scope="module")
def sims():
    streams = simulator("openai-ws")
    with serving("openai", streams, "codex", "xai", "azure", "deepseek-responses") as served:
        for name in ("openai", "openai-ws", "codex"):
            remember_sockets(served[name])
        yield served


def remember_sockets(sim):
    """Keep the server's side of every connection, so that a test can look into its memory."""
    connect, sim.sockets = sim.connect, []

    def connecting(request):
        opened = connect(request)
        sim.sockets.append(opened)
        return opened

    sim.connect = connecting
