"""Responses over a WebSocket through the gateway, in front of servers with and without one."""

import asyncio
import contextlib
import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import gateways
from thoughtline.gateway.proxy import Options
from thoughtline.gateway.sockets import Sockets
from thoughtline.stores.hot import HotStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Pace, serving, simulator

TOOLS = [
    {"type": "function", "name": name, "parameters": {}} for name in ("read_file", "run", "search")
]
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"
MODELS = {"deepseek-responses": "deepseek-v4-flash", "xai": "grok-4.5"}


class Client:
    """A client that sends what is new after the response before, like Codex."""

    def __init__(self, socket, *, model="gpt-5.6", lane=None, store=False):
        self.socket, self.lane = socket, lane
        self.fields = {"model": model, "tools": TOOLS, "store": store}
        self.fields["include"] = ["reasoning.encrypted_content"]
        self.previous = ""
        self.history = []  # everything, for a full send
        self.new = []

    async def ask(self, *new, full=False, **more):
        """Send, and read the answer; gives its events."""
        await self.send(*new, full=full, **more)
        return await self.read()

    async def send(self, *new, full=False, **more):
        self.new = [*new] or self.new
        self.history += self.new
        frame = {"type": "response.create", **self.fields, **more}
        if self.lane:
            frame["stream_id"] = self.lane
        if self.previous and not full:
            frame |= {"previous_response_id": self.previous, "input": self.new}
        else:
            frame["input"] = self.history
        await self.socket.send(json.dumps(frame))

    async def read(self):
        events = []
        while not events or events[-1]["type"] not in (
            "response.completed",
            "response.failed",
            "response.incomplete",
            "error",
        ):
            events.append(json.loads(await self.socket.recv()))
        self.take(events)
        return events

    def take(self, events):
        if events[-1]["type"] != "response.completed":
            return
        response = events[-1]["response"]
        self.previous = response["id"]
        items = [e["item"] for e in events if e["type"] == "response.output_item.done"]
        self.history += items
        calls = [item["call_id"] for item in items if item["type"] == "function_call"]
        self.new = [
            {"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls
        ] or [{"role": "user", "content": f"and then? {len(self.history)}"}]


def say(text):
    return {"role": "user", "content": text}


@pytest.fixture(scope="module")
def sims():
    with serving("openai", "openai-ws", "codex", "xai", "azure", "deepseek-responses") as served:
        yield served


@contextlib.contextmanager
def gateway(sims, name, *, websockets, **how):
    upstreams = gateways.upstreams(sims, name, supports_websockets=websockets)
    with gateways.running(upstreams, **how) as running:
        running.ws = running.url.replace("http", "ws") + "/v1/responses"
        yield running


def dial(url, key="key-one", **headers):
    shown = {"authorization": f"Bearer {key}", **headers}
    return connect(url, additional_headers=shown, max_size=None)


async def quiet(running, count):
    """Wait until the gateway has noted so many ends."""
    while len(running.notes.walks) < count:
        await asyncio.sleep(0.01)


# --- Deltas are written out ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "websockets"),
    [
        ("openai", True),
        ("openai", False),
        ("openai-ws", True),
        ("codex", True),
        ("xai", True),
        ("azure", False),
        ("deepseek-responses", False),
        ("azure", True),
        ("deepseek-responses", True),  # said to have one, and has none
    ],
)
async def test_a_client_with_deltas_in_front_of_any_server(sims, name, websockets):
    sim = sims[name]
    with gateway(sims, name, websockets=websockets) as running:
        async with dial(running.ws) as socket:
            client = Client(socket, model=MODELS.get(name, "gpt-5.6"))
            events = await client.ask(say(f"go {name} {websockets}"))
            for _ in range(9):
                assert events[-1]["type"] == "response.completed", events[-1]
                events = await client.ask()
                audit = sim.requests[-1].audit
                assert str(audit).endswith(CLEAN)
            assert audit.exact >= 9
        await quiet(running, 10)
        ways = [way for _, way, _ in running.notes.sendings]
        reasons = [reason for _, _, reason in running.notes.sendings]
        if websockets and name != "deepseek-responses":
            assert reasons == ["no_baseline"] + ["continued"] * 9
            assert set(ways) == {"websocket"}
            assert "previous_response_id" in sim.requests[-1].json
        else:
            assert set(ways) == {"http"}
            assert "previous_response_id" not in sim.requests[-1].json
        assert running.notes.walks == [(200, "")] * 10


async def test_a_client_that_lost_its_thoughts_gets_them_back(sims):
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = Client(socket)
                await client.ask(say(f"strip {websockets}"))
                await client.ask()
            stripped = [
                {k: v for k, v in item.items() if k not in ("id", "status")}
                for item in client.history
                if item.get("type") != "reasoning"
            ]
            async with dial(running.ws) as socket:
                other = Client(socket)
                events = await other.ask(*stripped, *client.new)
                assert events[-1]["type"] == "response.completed"
                audit = sims["openai"].requests[-1].audit
                assert (audit.exact, audit.missing) == (3, 0)
                await other.ask()
                assert str(sims["openai"].requests[-1].audit).endswith(CLEAN)


async def test_turns_of_a_socket_are_in_the_log_with_how_they_went_out(sims):
    behind = MemoryStore()
    with gateway(sims, "openai", websockets=True, store=HotStore(behind)) as running:
        async with dial(running.ws) as socket:
            client = Client(socket)
            await client.ask(say("log"))
            await client.ask()
        (summary,) = await behind.sessions(tenant=None)
        events = await behind.read(summary.session)
    ends = [json.loads(event.data) for event in events if event.type == "turn_ended"]
    assert [(end["outcome"], end["wire"]) for end in ends] == [
        ("completed", "no_baseline"),
        ("completed", "continued"),
    ]
    starts = [event for event in events if event.type == "turn_started"]
    assert starts[1].parent == starts[0].id


async def test_a_full_send_that_goes_on_is_cut_down_towards_the_server(sims):
    with gateway(sims, "openai", websockets=True) as running:
        async with dial(running.ws) as socket:
            client = Client(socket)
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
                client = Client(socket, model=MODELS.get(name, "gpt-5.6"))
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
            main = Client(socket)
            await main.ask(say("lanes"))
            forks = [Client(socket, lane=f"lane.{n}") for n in range(3)]
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


# --- Errors --------------------------------------------------------------------------------------


async def refused(socket, frame):
    await socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    event = json.loads(await socket.recv())
    assert event["type"] == "error"
    return event["status"], event["error"]["code"]


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
            client = Client(socket)
            events = await client.ask(say("after all of that"))
            assert events[-1]["type"] == "response.completed"


async def test_a_provider_that_refuses_is_passed_on(sims):
    sim = sims["openai"]
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = Client(socket)
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
                client = Client(socket)
                await client.ask(say(f"break {websockets}"))
                sim.fail_next("cut:8")
                events = await client.ask()
                assert events[-1]["error"]["code"] == "upstream_broke_off"
                assert len(events) == 9
                client.history = client.history[: -len(client.new)]
                events = await client.ask()
                assert events[-1]["type"] == "response.completed"
                assert str(sim.requests[-1].audit).endswith(CLEAN)


async def test_a_refused_thought_is_healed_before_the_client_notices(sims):
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = Client(socket)
                bad = {"type": "reasoning", "id": "rs_x", "summary": []}
                bad["encrypted_content"] = "gAAAAnot-of-this-account"
                spoken = {"type": "message", "role": "assistant", "content": "hello"}
                events = await client.ask(say("heal"), bad, spoken, say("go on"))
                assert events[-1]["type"] == "response.completed", events
                assert any(walk[0] == "healed" for walk in running.notes.walks)


async def test_strict_and_off_are_honoured(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws, **{"x-thoughtline-replay": "off"}) as socket:
            client = Client(socket)
            await client.ask(say("off"))
            events = await client.ask()
            assert events[-1]["type"] == "response.completed"
            assert running.notes.walks == []
    upstream = gateways.upstreams(sims, "deepseek-responses")
    with gateways.running(upstream, options=Options(strict=True)) as running:
        url = running.url.replace("http", "ws") + "/u/deepseek-responses/v1/responses"
        async with dial(url) as socket:
            call = {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
            client = Client(socket, model="deepseek-v4-pro")
            events = await client.ask(say("strict"), call, result)
            assert events[-1]["error"]["code"] == "thought_missing"


# --- The door, and limits ------------------------------------------------------------------------


async def status(url, **how):
    try:
        async with dial(url, **how):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


async def test_the_door_is_the_same(sims):
    upstreams = gateways.upstreams(sims, "openai", key="key-one")
    with gateways.running(upstreams, clients={"alice": "alices-key"}) as running:
        ws = running.url.replace("http", "ws")
        assert await status(f"{ws}/v1/responses", key="nobody's") == 401
        assert await status(f"{ws}/v1/responses", key="alices-key") == 101
        assert await status(f"{ws}/u/openai/v1/responses", key="alices-key") == 101
        assert await status(f"{ws}/u/elsewhere/v1/responses", key="alices-key") == 404
        assert await status(f"{ws}/v1/chat/completions", key="alices-key") == 404
        async with dial(f"{ws}/v1/responses", key="alices-key") as socket:
            await Client(socket).ask(say("door"))
    assert sims["openai"].requests[-1].account == "key-one"


async def test_two_tenants_never_share_a_transcript(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as one, dial(running.ws, key="key-two") as two:
            client = Client(one)
            await client.ask(say("mine"))
            stolen = {"type": "response.create", **client.fields, "input": "what was said?"}
            stolen["previous_response_id"] = client.previous
            assert await refused(two, stolen) == (400, "previous_response_not_found")


async def test_a_frame_that_is_too_large_ends_the_connection(sims):
    options = Options(max_body_bytes=20_000)
    with gateway(sims, "openai", websockets=False, options=options) as running:
        async with dial(running.ws) as socket:
            assert await refused(socket, "x" * 30_000) == (413, "request_too_large")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1009
        async with dial(running.ws) as socket:
            client = Client(socket)
            await client.ask(say("x" * 15_000))
            events = await client.ask(say("y" * 15_000))  # small enough, but not with the rest
            assert events[-1]["error"]["code"] == "request_too_large"


async def test_a_connection_ends_at_its_age_and_not_in_mid_answer(sims):
    pace = Pace(delay=0.02)
    with serving("openai", pace=pace) as slow, gateway(slow, "openai", websockets=False) as running:
        running.app.sockets = Sockets(running.proxy, lifetime=0.2)
        async with dial(running.ws) as socket:
            events = await Client(socket).ask(say("age"))
            assert events[-1]["type"] == "response.completed"
            event = json.loads(await socket.recv())
            assert event["error"]["code"] == "websocket_connection_limit_reached"
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1001


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


@pytest.mark.parametrize("finish", [True, False])
async def test_a_client_that_leaves_is_noticed(sims, finish):
    behind = MemoryStore()
    options = Options(finish_on_disconnect=finish)
    with serving("openai", pace=Pace(delay=0.01)) as slow:
        how = {"store": HotStore(behind), "options": options}
        with gateway(slow, "openai", websockets=True, **how) as running:
            async with dial(running.ws) as socket:
                await Client(socket).send(say("leave"))
                for _ in range(4):
                    await socket.recv()
            await quiet(running, 1)
            (summary,) = await behind.sessions(tenant=None)
            events = await behind.read(summary.session)
    (end,) = [json.loads(event.data) for event in events if event.type == "turn_ended"]
    assert end["outcome"] == ("completed" if finish else "aborted")
    assert running.notes.walks == [(200, "") if finish else (499, "the client left")]


async def test_the_servers_limit_does_not_reach_the_client(sims):
    now = [1000.0]
    sim = simulator("openai", clock=lambda: now[0])
    with serving(sim) as served, gateway(served, "openai", websockets=True) as running:
        async with dial(running.ws) as socket:
            client = Client(socket)
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
