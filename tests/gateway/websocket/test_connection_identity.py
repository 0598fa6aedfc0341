"""Over a WebSocket a renewed token is the same client, too, and a forged one learns nothing."""

import contextlib
import json

import pytest

from support import gateway_server as gateways
from support.gateway_websocket import SocketClient, dial, say
from thoughtline.stores.base import INTERNAL_PREFIX
from thoughtline.testing import serving, simulator
from thoughtline.testing.sims.tokens import make_token

SECRET = b"of the provider"


@contextlib.contextmanager
def logged_in(*, websockets):
    """A gateway in front of a provider that checks its tokens."""
    sim = simulator("openai", token_secret=SECRET)
    with serving(sim) as sims:
        upstreams = gateways.upstreams(
            sims, "openai", supports_websockets=websockets, identity="token"
        )
        with gateways.running(upstreams) as running:
            running.ws = running.url.replace("http", "ws") + "/v1/responses"
            yield running, sim


def token(subject="alice", n=1, secret=SECRET):
    return make_token(secret, subject, iat=n)


@pytest.mark.parametrize("websockets", [True, False])
async def test_a_renewed_token_goes_on(websockets):
    with logged_in(websockets=websockets) as (running, sim):
        before = None
        for n in range(4):
            async with dial(running.ws, key=token(n=n)) as socket:
                client = SocketClient(socket)
                continue_from(client, before)
                events = await client.ask(*([] if before else [say("go on")]))
                assert events[-1]["type"] == "response.completed", events
                before = client
        audit = sim.requests[-1].audit
        assert audit.exact >= 3
        assert audit.clean


def continue_from(client, before):
    """Go on with another connection, and without the thoughts."""
    if before is not None:
        client.history = [item for item in before.history if item.get("type") != "reasoning"]
        client.new = before.new


@pytest.mark.parametrize("websockets", [True, False])
async def test_a_forged_token_is_refused_and_told_nothing(websockets):
    with logged_in(websockets=websockets) as (running, _):
        async with dial(running.ws, key=token()) as socket:
            client = SocketClient(socket)
            await client.ask(say("a secret"))
        forged = {"key": token(secret=b"made up"), "x-thoughtline-report": "on"}
        async with dial(running.ws, **forged) as socket:
            forger = SocketClient(socket)
            continue_from(forger, client)
            events = await forger.ask()
        assert events[-1]["type"] == "error"
        told = json.dumps(events)
        sessions = [s.session for s in await running.proxy.store.sessions(limit=10)]
        (session,) = [id for id in sessions if not id.startswith(INTERNAL_PREFIX)]
        assert session not in told
        assert "restored=" not in told
