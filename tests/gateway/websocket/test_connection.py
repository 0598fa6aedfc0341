"""Responses over a WebSocket through the gateway, in front of servers with and without one."""

import asyncio
import json

import pytest
from websockets.exceptions import ConnectionClosed

from support import gateway_server as gateways
from support.gateway_websocket import (
    CLEAN,
    TOOLS,
    SocketClient,
    dial,
    gateway,
    quiet,
    refused,
    say,
    status,
)
from support.loop_clock import stopped
from support.waiting import eventually
from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.websocket.connection import WebSocketGateway
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Pace, serving

# --- Errors --------------------------------------------------------------------------------------


async def test_what_cannot_be_served_is_said_in_the_protocols_envelope(sims):
    create = {"type": "response.create", "model": "gpt-5.6", "input": "hi", "store": False}
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as socket:
            assert await refused(socket, "{") == (400, "invalid_request")
            assert await refused(socket, "[]") == (400, "invalid_request")
            assert await refused(socket, {"type": "x"}) == (400, "invalid_value")
            assert await refused(socket, {**create, "input": 5}) == (400, "invalid_request")
            assert await refused(socket, {**create, "stream_id": "a b"}) == (
                400,
                "invalid_stream_id",
            )
            gone = {**create, "previous_response_id": "resp_gone"}
            assert await refused(socket, gone) == (400, "previous_response_not_found")
            stored = {**gone, "store": True}  # for the provider to know
            assert await refused(socket, stored) == (400, "previous_response_not_found")
            assert await refused(socket, {**create, "model": "gpt-5.6", "max_output_tokens": "x"})
            await socket.send(
                json.dumps({"type": "response.steer", "previous_response_id": "r", "input": []})
            )
            assert json.loads(await socket.recv())["type"] == "response.steer.failed"
            client = SocketClient(socket)
            events = await client.ask(say("after all of that"))
            assert events[-1]["type"] == "response.completed"


async def test_an_error_says_in_its_headers_that_the_gateway_refused(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as socket:
            await socket.send("{")
            told = json.loads(await socket.recv())
            assert told["headers"] == {"x-thoughtline-replay": "refused=invalid_request"}


# --- Auth, and limits ----------------------------------------------------------------------------


async def test_auth_is_the_same(sims):
    upstreams = gateways.upstreams(sims, "openai", key="key-one")
    with gateways.running(upstreams, clients={"alice": "alices-key"}) as running:
        ws = running.url.replace("http", "ws")
        assert await status(f"{ws}/v1/responses", key="nobody's") == 401
        assert await status(f"{ws}/v1/responses", key="alices-key") == 101
        assert await status(f"{ws}/u/openai/v1/responses", key="alices-key") == 101
        assert await status(f"{ws}/u/elsewhere/v1/responses", key="alices-key") == 404
        assert await status(f"{ws}/v1/chat/completions", key="alices-key") == 404
        async with dial(f"{ws}/v1/responses", key="alices-key") as socket:
            await SocketClient(socket).ask(say("door"))
    assert sims["openai"].requests[-1].account == "key-one"


async def test_a_frame_that_is_too_large_ends_the_connection(sims):
    options = ProxyOptions(max_body_bytes=20_000)
    with gateway(sims, "openai", websockets=False, options=options) as running:
        async with dial(running.ws) as socket:
            assert await refused(socket, "x" * 30_000) == (413, "request_too_large")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1009
        async with dial(running.ws) as socket:
            client = SocketClient(socket)
            await client.ask(say("x" * 15_000))
            events = await client.ask(say("y" * 15_000))  # small enough, but not with the rest
            assert events[-1]["error"]["code"] == "request_too_large"


async def test_a_connection_ends_at_its_age_and_not_in_mid_answer(sims):
    pace = Pace(delay=0.02)
    with serving("openai", pace=pace) as slow, gateway(slow, "openai", websockets=False) as running:
        running.app.sockets = WebSocketGateway(running.proxy, lifetime=50.0)
        async with dial(running.ws) as socket:
            asking = asyncio.create_task(SocketClient(socket).ask(say("age")))
            await eventually(lambda: slow["openai"].requests)
            with stopped(running.loop) as clock:
                passing = asyncio.run_coroutine_threadsafe(clock.advance(50.0), running.loop)
                await asyncio.wrap_future(passing)
            events = await asking
            assert events[-1]["type"] == "response.completed"
            event = json.loads(await socket.recv())
            assert event["error"]["code"] == "websocket_connection_limit_reached"
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1001


@pytest.mark.parametrize("finish", [True, False])
async def test_a_client_that_leaves_is_noticed(sims, finish):
    behind = MemoryStore()
    options = ProxyOptions(finish_on_disconnect=finish)
    with serving("openai", pace=Pace(delay=0.01)) as slow:
        how = {"store": CachedStore(behind), "options": options}
        with gateway(slow, "openai", websockets=True, **how) as running:
            async with dial(running.ws) as socket:
                await SocketClient(socket).send(say("leave"))
                for _ in range(4):
                    await socket.recv()
            await quiet(running, 1)
            (summary,) = await behind.sessions(tenant=None)
            events = await behind.read(summary.session)
    (end,) = [json.loads(event.data) for event in events if event.type == "turn_ended"]
    assert end["outcome"] == ("completed" if finish else "aborted")
    assert running.notes.records == [(200, "") if finish else (499, "the client left")]


# --- The provider's own client -------------------------------------------------------------------


@pytest.mark.parametrize("websockets", [True, False])
async def test_the_openai_client_talks_through_the_gateway(sims, websockets):
    openai = pytest.importorskip("openai")
    with gateway(sims, "openai", websockets=websockets) as running:
        client = openai.AsyncOpenAI(api_key="key-one", base_url=f"{running.url}/v1")
        async with client.responses.connect() as connection:
            previous, new = None, [say(f"sdk {websockets}")]
            for _ in range(4):
                await connection.response.create(
                    model="gpt-5.6",
                    input=new,
                    store=False,
                    tools=TOOLS,
                    **({"previous_response_id": previous} if previous else {}),
                )
                async for event in connection:
                    assert event.type != "error", event
                    if event.type == "response.completed":
                        break
                previous = event.response.id
                calls = [o for o in event.response.output if o.type == "function_call"]
                new = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}
                    for call in calls
                ] or [say("and then?")]
        await client.close()
        audit = sims["openai"].requests[-1].audit
        assert str(audit).endswith(CLEAN)
        assert audit.exact == 4
