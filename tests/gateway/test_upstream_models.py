"""An upstream's own list of models, asked for by clients of every API."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, SimWire
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.testing import simulator

CLIENTS = {
    "openai": ("/v1/models", {"authorization": "Bearer own-key"}),
    "anthropic": ("/v1/models", {"x-api-key": "own-key", "anthropic-version": "2023-06-01"}),
    "google": ("/v1beta/models", {"x-goog-api-key": "own-key"}),
}
SIMS = {"deepseek": "deepseek", "openai": "openai", "claude": "anthropic", "gemini": "gemini"}


def gateway(wire, policy, **more):
    made = InProcessGateway(wire)
    made.proxy.directory = Directory(
        [Upstream(name="up", base_url="https://up.example", policy=policy, **more)]
    )
    return made


def ids(client, body):
    """The ids in a list, which has to be in the client's shape."""
    if client == "google":
        return [one["name"].removeprefix("models/") for one in body["models"]]
    assert all(
        one["type" if client == "anthropic" else "object"] == "model" for one in body["data"]
    )
    assert ("has_more" in body) is (client == "anthropic")
    return [one["id"] for one in body["data"]]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("bare", [False, True])
async def test_every_client_gets_the_list_in_its_own_shape(client, sim, bare):
    provider = simulator(sim)
    made = gateway(SimWire(provider), SIMS[sim])
    path, head = CLIENTS[client]
    if bare and client == "google":
        return  # its clients always say a version
    reply = await made.get(f"/u/up{path.removeprefix('/v1') if bare else path}", head)
    assert reply.status == 200, reply.body
    assert ids(client, reply.json) == [*provider.models()]


ONE = {
    "deepseek": "https://up.example/v1/models/m-1",
    "anthropic": "https://up.example/v1/models/m-1",
    "gemini": "https://up.example/v1beta/models/m-1",
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("policy", ONE)
async def test_so_is_one_model(client, policy):
    made = gateway(ScriptedWire(Answer(200, {"id": "m-1", "name": "models/m-1"})), policy)
    path, head = CLIENTS[client]
    one = (await made.get(f"/u/up{path}/m-1", head)).json
    assert one["name"] == "models/m-1" if client == "google" else one["id"] == "m-1"
    assert [sent.url for sent in made.wire.sent] == [ONE[policy]]
    assert "own-key" in str(made.wire.sent[0].headers)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_refusal_comes_in_the_clients_words(client):
    path, head = CLIENTS[client]
    refused = Answer(401, {"error": {"type": "authentication_error", "message": "no such key"}})
    policy = "anthropic" if client != "anthropic" else "gemini"
    reply = await gateway(ScriptedWire(refused), policy).get(f"/u/up{path}", head)
    assert reply.status == 401
    assert "no such key" in reply.json["error"]["message"]
    assert ("type" in reply.json) is (client == "anthropic")


async def test_the_upstreams_key_goes_in_place_of_the_clients():
    made = gateway(ScriptedWire(Answer(200, {"data": []})), "anthropic", key="its-key")
    await made.get("/u/up/v1/models", CLIENTS["openai"][1])
    (sent,) = made.wire.sent
    assert dict(sent.headers)["x-api-key"] == "its-key"
    assert "own-key" not in str(sent.headers)


async def test_a_list_that_is_none_is_an_error():
    made = gateway(ScriptedWire(Answer(200, b"<html>")), "anthropic")
    reply = await made.get("/u/up/v1/models", CLIENTS["openai"][1])
    assert (reply.status, "up" in reply.json["error"]["message"]) == (502, True)


async def test_a_client_that_wants_it_untouched_gets_it_untouched():
    made = gateway(ScriptedWire(Answer(200, {"data": [{"id": "x", "type": "model"}]})), "anthropic")
    head = {**CLIENTS["openai"][1], "x-thoughtline-replay": "off"}
    reply = await made.get("/u/up/v1/models", head)
    assert reply.json == json.loads(made.wire.answers[0].body)
