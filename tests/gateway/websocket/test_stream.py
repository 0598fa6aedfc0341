"""Streams of one connection: side by side, forked, refused and cut."""

import asyncio
import json

import pytest

from support import gateway_server as gateways
from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.gateway_websocket import CLEAN, MODELS, TOOLS, SocketClient, dial, gateway, say
from thoughtline.engine.endpoints import Directory
from thoughtline.engine.exchange import Engine
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.websocket.connection import WebSocketGateway
from thoughtline.testing import serving, simulator


async def test_a_full_send_that_goes_on_is_cut_down_towards_the_server(sims):
    with gateway(sims, "openai", websockets=True) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket)
            await client.ask(say("full"))
            for _ in range(3):
                await client.ask(full=True)
        assert [reason for *_, reason in running.notes.sendings] == [
            "no_baseline",
            "continued",
            "continued",
            "continued",
        ]


async def test_a_warm_up_is_answered_and_gone_on_from(sims):
    for name, websockets in (("openai", True), ("deepseek-responses", False)):
        with gateway(sims, name, websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = SocketClient(socket, model=MODELS.get(name, "gpt-5.6"))
                events = await client.ask(say(f"warm {name}"), generate=False)
                assert [e["type"] for e in events] == [
                    "response.created",
                    "response.in_progress",
                    "response.completed",
                ]
                client.new = []
                events = await client.ask()
                assert events[-1]["type"] == "response.completed"
                assert len(events) > 3
                asked = sims[name].requests[-1].json
                assert bool(asked["input"]) is not websockets  # the server was warmed up as well


async def test_lanes_work_side_by_side_and_a_fork_goes_on_from_another(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as socket:
            main = SocketClient(socket)
            await main.ask(say("lanes"))
            forks = [SocketClient(socket, lane=f"lane.{n}") for n in range(3)]
            for fork in forks:
                fork.previous, fork.history, fork.new = main.previous, main.history, main.new
                await fork.send()
            events = {f"lane.{n}": [] for n in range(3)}
            while not all(e and e[-1]["type"] == "response.completed" for e in events.values()):
                event = json.loads(await socket.recv())
                events[event["stream_id"]].append(event)
            for fork in forks:
                fork.take(events[fork.lane])
            last = await forks[1].ask()
            assert {event["stream_id"] for event in last} == {"lane.1"}
            assert last[-1]["type"] == "response.completed"
            assert all("stream_id" not in event for event in await main.ask())
            assert str(sims["openai"].requests[-1].audit).endswith(CLEAN)


async def test_a_provider_that_refuses_is_passed_on(sims):
    sim = sims["openai"]
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = SocketClient(socket)
                await client.ask(say(f"refuse {websockets}"))
                sim.fail_next("429")
                events = await client.ask()
                assert [(e["type"], e["status"]) for e in events] == [("error", 429)]
                client.history = client.history[: -len(client.new)]
                events = await client.ask()
                assert events[-1]["type"] == "response.completed"
                assert str(sim.requests[-1].audit).endswith(CLEAN)


async def test_an_upstream_that_breaks_off_in_mid_answer_is_said_so(sims):
    sim = sims["openai"]
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = SocketClient(socket)
                await client.ask(say(f"break {websockets}"))
                sim.fail_next("cut:8")
                events = await client.ask()
                assert events[-1]["error"]["code"] == "upstream_broke_off"
                told = events[-1]["headers"]
                assert told["x-thoughtline-replay"].endswith("; refused=upstream_broke_off")
                assert told["x-thoughtline-turn"]
                assert len(events) == 9
                client.history = client.history[: -len(client.new)]
                events = await client.ask()
                assert events[-1]["type"] == "response.completed"
                assert str(sim.requests[-1].audit).endswith(CLEAN)


async def test_a_refused_thought_is_corrected_before_the_client_notices(sims):
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = SocketClient(socket)
                bad = {"type": "reasoning", "id": "rs_x", "summary": []}
                bad["encrypted_content"] = "gAAAAnot-of-this-account"
                spoken = {"type": "message", "role": "assistant", "content": "hello"}
                events = await client.ask(say("recover"), bad, spoken, say("go on"))
                assert events[-1]["type"] == "response.completed", events
                assert any(record[0] == "recovered" for record in running.notes.records)


async def test_strict_and_off_are_honoured(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws, **{"x-thoughtline-replay": "off"}) as socket:
            client = SocketClient(socket)
            await client.ask(say("off"))
            events = await client.ask()
            assert events[-1]["type"] == "response.completed"
            assert running.notes.records == []
    upstream = gateways.upstreams(sims, "deepseek-responses")
    with gateways.running(upstream, options=ProxyOptions(strict=True)) as running:
        url = running.url.replace("http", "ws") + "/u/deepseek-responses/v1/responses"
        async with dial(url) as socket:
            call = {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
            client = SocketClient(socket, model="deepseek-v4-pro")
            events = await client.ask(say("strict"), call, result)
            assert events[-1]["error"]["code"] == "thought_missing"
            told = events[-1]["headers"]
            assert "missed=1; " in told["x-thoughtline-replay"]
            assert told["x-thoughtline-replay"].endswith("; refused=thought_missing")
            assert told["x-thoughtline-request"]


async def test_only_so_many_lanes(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as socket:
            create = {"type": "response.create", "model": "gpt-5.6", "input": "x", "store": False}
            for n in range(33):
                await socket.send(json.dumps({**create, "stream_id": f"l{n}", "tools": TOOLS}))
            seen = {}
            while len(seen) < 33:
                event = json.loads(await socket.recv())
                if event["type"] in ("response.completed", "error"):
                    seen[event["stream_id"]] = event
            assert seen.pop("l32")["error"]["code"] == "websocket_stream_limit_reached"
            assert {event["type"] for event in seen.values()} == {"response.completed"}


async def test_the_servers_limit_does_not_reach_the_client(sims):
    now = [1000.0]
    sim = simulator("openai", clock=lambda: now[0])
    with serving(sim) as served, gateway(served, "openai", websockets=True) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket)
            await client.ask(say("limit"))
            now[0] += 3601
            events = await client.ask()
            assert events[-1]["type"] == "response.completed"
            assert [e["type"] for e in events].count("response.created") == 1
            assert str(sim.requests[-1].audit).endswith(CLEAN)
        assert [r for *_, r in running.notes.sendings] == [
            "no_baseline",
            "continued",
            "connection_limit",
        ]


def _event(type, **more):
    return f"data: {json.dumps({'type': type, **more})}\n\n".encode()


async def test_an_answer_that_becomes_a_refusal_is_no_turn():
    """The client is told of the error; nothing can be continued from there."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    error = {"type": "invalid_request_error", "code": "x", "message": "no more of that"}
    events = [
        _event("response.created", response={"id": "resp_1", "status": "in_progress"}),
        _event("response.output_item.added", output_index=0, item=item),
        _event("response.output_text.delta", item_id="msg_1", output_index=0, delta="We"),
        _event("error", status=400, error=error),
    ]
    stream = Answer(200, b"".join(events), {"content-type": "text/event-stream"})
    gateway = InProcessGateway(ScriptedWire(stream), "openai")
    frames = asyncio.Queue()
    create = {"type": "response.create", "model": "gpt-5", "input": "Hi"}
    frames.put_nowait({"type": "websocket.connect"})
    frames.put_nowait({"type": "websocket.receive", "text": json.dumps(create)})
    told = []

    async def send(message):
        if message["type"] == "websocket.send":
            told.append(json.loads(message["text"])["type"])
            if told[-1] == "error":
                frames.put_nowait({"type": "websocket.disconnect"})

    head = [(b"authorization", b"Bearer a-key")]
    scope = {"type": "websocket", "path": "/v1/responses", "headers": head}
    async with asyncio.timeout(60):
        await WebSocketGateway(gateway.proxy)(scope, frames.get, send)
    assert len(told) == 4
    assert gateway.notes.records == [(400, "refused")]
    assert await gateway.facts("turn_ended") == []


async def test_an_accident_is_told_and_the_next_request_is_answered(sims, monkeypatch):
    begin, accidents = Engine.begin, [KeyError("nobody thought of this")]

    async def begin_after_accidents(self, incoming):
        if accidents:
            raise accidents.pop()
        return await begin(self, incoming)

    monkeypatch.setattr(Engine, "begin", begin_after_accidents)
    with gateway(sims, "openai", websockets=False) as running:
        async with asyncio.timeout(60), dial(running.ws) as socket:
            client = SocketClient(socket)
            [event] = await client.ask(say("an accident"))
            assert (event["status"], event["error"]["code"]) == (500, "internal_error")
            assert "KeyError" in event["error"]["message"]
            assert "nobody thought" not in event["error"]["message"]
            client.previous, client.history, client.new = None, [], []
            events = await client.ask(say("and again"))
            assert events[-1]["type"] == "response.completed"


async def test_a_client_that_asks_hears_what_became_of_its_thoughts(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws, **{"x-thoughtline-report": "on"}) as socket:
            client = SocketClient(socket)
            await client.ask(say("report"))
            first, *rest = await client.ask()
            assert first["type"] == "thoughtline.report"
            assert first["headers"]["x-thoughtline-replay"].startswith("restored=")
            assert first["headers"]["x-thoughtline-turn"]
            assert rest[0]["type"] == "response.created"
        async with dial(running.ws) as socket:
            events = await SocketClient(socket).ask(say("plain"))
            assert events[0]["type"] == "response.created"


@pytest.mark.parametrize("websockets", [True, False])
@pytest.mark.parametrize("replay", ["on", "off"])
async def test_a_name_that_stands_for_a_model_is_asked_for_as_that(sims, websockets, replay):
    with gateway(sims, "openai", websockets=websockets) as running:
        rows = ModelNames([ModelRow(pattern="fast", upstream="openai", model="gpt-5.6")])
        running.proxy.directory = Directory(running.proxy.directory, model_names=rows)
        head = {"x-thoughtline-report": "on", "x-thoughtline-replay": replay}
        async with dial(running.ws, **head) as socket:
            client = SocketClient(socket, model="fast")
            await client.send(say("hi"))
            report = json.loads(await socket.recv())
            assert report["headers"]["x-thoughtline-model"] == "fast>openai/gpt-5.6"
            for _ in range(2):
                told = await client.read()
                assert told[-1]["type"] == "response.completed"
                assert {e["response"]["model"] for e in told if "response" in e} == {"fast"}
                await client.send()
                await socket.recv()
            await client.read()
        assert {one.json["model"] for one in sims["openai"].requests} >= {"gpt-5.6"}
        assert "fast" not in {one.json["model"] for one in sims["openai"].requests}
