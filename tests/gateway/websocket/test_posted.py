"""Responses clients on a WebSocket, on models that speak another dialect."""

import asyncio

import pytest

from support.gateway_websocket import CLEAN, SocketClient, dial, gateway, say
from thoughtline.engine.routes import Route
from thoughtline.errors import WireError
from thoughtline.gateway.websocket.posted import PostedWire
from thoughtline.testing import serving
from thoughtline.wires.base import Outbound

MODELS = {
    "deepseek": ("deepseek-v4-pro", "chat"),
    "kimi-k3": ("kimi-k3", "chat"),
    "claude-bound": ("claude-opus-5-5", "messages"),
    "gemini": ("gemini-3-pro-preview", "gemini"),
}


@pytest.fixture(scope="module")
def sims():
    with serving(*MODELS) as served:
        yield served


@pytest.mark.parametrize("full", [False, True], ids=["continued", "full"])
@pytest.mark.parametrize("name", MODELS)
async def test_every_thought_goes_back(sims, name, full):
    model, dialect = MODELS[name]
    with gateway(sims, name, websockets=False, dialects=(dialect,)) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket, model=model)
            await client.ask(say(f"{name} {full}"))
            for _ in range(5):
                events = await client.ask(full=full)
                assert events[-1]["type"] == "response.completed", events[-1]
        audit = str(sims[name].requests[-1].audit)
        assert CLEAN in audit
        assert not audit.startswith("exact=0")


@pytest.mark.parametrize(
    ("problem", "kind", "code"),
    [("429", "response.failed", "rate_limit_exceeded"), ("500", "error", None)],
)
async def test_a_rate_limit_is_told_in_the_stream(sims, problem, kind, code):
    """Codex waits and asks again then; at an error with a status of 429 it gives up."""
    sim = sims["deepseek"]
    with gateway(sims, "deepseek", websockets=False, dialects=("chat",)) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket, model="deepseek-v4-pro")
            sim.fail_next(problem)
            last = (await client.ask(say(f"{problem} now")))[-1]
    assert last["type"] == kind
    error = last["response"]["error"] if kind == "response.failed" else last["error"]
    assert error["code"] == code


async def test_a_client_that_leaves_ends_the_request():
    asked, left = asyncio.Event(), asyncio.Event()

    async def app(scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        asked.set()
        assert (await receive())["type"] == "http.disconnect"
        left.set()

    wire = PostedWire(app, [(b"upgrade", b"websocket")], "", Route(path="/v1/responses"))
    async with wire.send(Outbound(method="POST", url="", headers=[], body=b"{}")) as answer:
        assert answer.status == 200
        await asked.wait()
    assert left.is_set()


async def test_no_answer_at_all_is_said():
    async def app(scope, receive, send):
        assert scope["path"] == "/u/my%20own;gpt-*=m%2F1/v1/responses"
        raise RuntimeError

    wire = PostedWire(
        app, [], "", Route(path="/v1/responses", upstream="my own", options="gpt-*=m%2F1")
    )
    with pytest.raises(WireError):
        async with wire.send(Outbound(method="POST", url="", headers=[])):
            pass
