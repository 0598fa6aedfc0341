"""What a client of a WebSocket does not say again is known."""

import json

import pytest

from support.gateway_websocket import (
    CLEAN,
    MODELS,
    SocketClient,
    dial,
    gateway,
    quiet,
    refused,
    say,
)
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore


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
            client = SocketClient(socket, model=MODELS.get(name, "gpt-5.6"))
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
        assert running.notes.records == [(200, "")] * 10


async def test_a_client_that_lost_its_thoughts_gets_them_back(sims):
    for websockets in (True, False):
        with gateway(sims, "openai", websockets=websockets) as running:
            async with dial(running.ws) as socket:
                client = SocketClient(socket)
                await client.ask(say(f"strip {websockets}"))
                await client.ask()
            stripped = [
                {k: v for k, v in item.items() if k not in ("id", "status")}
                for item in client.history
                if item.get("type") != "reasoning"
            ]
            async with dial(running.ws) as socket:
                other = SocketClient(socket)
                events = await other.ask(*stripped, *client.new)
                assert events[-1]["type"] == "response.completed"
                audit = sims["openai"].requests[-1].audit
                assert (audit.exact, audit.missing) == (3, 0)
                await other.ask()
                assert str(sims["openai"].requests[-1].audit).endswith(CLEAN)


async def test_turns_of_a_socket_are_in_the_log_with_how_they_went_out(sims):
    behind = MemoryStore()
    with gateway(sims, "openai", websockets=True, store=CachedStore(behind)) as running:
        async with dial(running.ws) as socket:
            client = SocketClient(socket)
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


async def test_two_tenants_never_share_a_transcript(sims):
    with gateway(sims, "openai", websockets=False) as running:
        async with dial(running.ws) as one, dial(running.ws, key="key-two") as two:
            client = SocketClient(one)
            await client.ask(say("mine"))
            stolen = {"type": "response.create", **client.fields, "input": "what was said?"}
            stolen["previous_response_id"] = client.previous
            assert await refused(two, stolen) == (400, "previous_response_not_found")
