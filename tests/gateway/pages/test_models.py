"""The list of models, in the shape that each client expects."""

import msgspec
from starlette.testclient import TestClient

from support.built_gateway import BuiltGateway, configured
from thoughtline.cli.serve import with_simulators
from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.settings import (
    AccessSettings,
    ClientSettings,
    ModelSettings,
    Secret,
    UpstreamSettings,
    load,
)

SIMULATED = {"sim/x": "chat", "sim/y": "responses", "sim/z": "messages", "sim/g": "gemini"}


def catalogue(**more):
    known = UpstreamSettings(name="known", base_url="https://k", models=("k-*",), source="known")
    found = UpstreamSettings(
        name="found",
        base_url="https://f",
        models=("f-1", "f-[0-9]*"),
        source="environment",
        key=Secret("key-canary"),
    )
    settings = configured()
    up = msgspec.structs.replace(settings.upstreams["up"], key=Secret("any"))
    upstreams = {"up": up, "known": known, "found": found}
    return BuiltGateway(
        msgspec.structs.replace(settings, upstreams=upstreams, **more),
        simulated=lambda model: Upstream(name="sim", base_url="sim://x"),
        models=SIMULATED,
    )


def test_models_that_can_be_asked_for_and_no_patterns():
    with catalogue().client() as client:
        listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [(m["id"], m["owned_by"]) for m in listed["data"]] == [
        ("deepseek-v4-flash", "up"),  # the upstream says so, and the pattern leads there
        ("deepseek-v4-pro", "up"),
        ("f-1", "found"),
    ]
    assert set(listed["data"][0]) == {"id", "object", "created", "owned_by"}


def test_anthropics_clients_get_their_shape():
    with catalogue().client(headers={"anthropic-version": "2023-06-01"}) as client:
        listed = client.get("/v1/models").json()
        assert (listed["first_id"], listed["last_id"]) == ("deepseek-v4-flash", "f-1")
        assert listed["has_more"] is False
        assert listed["data"][2] == {
            "type": "model",
            "id": "f-1",
            "display_name": "f-1",
            "created_at": "1970-01-01T00:00:00Z",
        }
        assert client.get("/v1/models/f-1").json()["type"] == "model"
    nothing = BuiltGateway(configured(upstreams={}))
    with nothing.client(headers={"anthropic-version": "2023-06-01"}) as client:
        assert client.get("/v1/models").json()["first_id"] is None
        answer = client.get("/v1/models/x")
        assert (answer.status_code, answer.json()["type"]) == (404, "error")


def test_simulated_models_of_the_clients_api_where_there_are_no_others():
    unused = UpstreamSettings(name="known", base_url="https://k", models=("k-*",), source="known")
    built = BuiltGateway(configured(upstreams={"known": unused}), models=SIMULATED)
    with built.client() as client:
        listed = [model["id"] for model in client.get("/v1/models").json()["data"]]
        assert listed == ["sim/x", "sim/y"]
        head = {"anthropic-version": "2023-06-01"}
        listed = [model["id"] for model in client.get("/v1/models", headers=head).json()["data"]]
        assert listed == ["sim/z"]


def test_without_any_key_the_gateway_lists_only_what_answers(tmp_path):
    app = with_simulators(load({"store_url": "memory://"}, {"HOME": str(tmp_path)}, tmp_path))
    with TestClient(app, base_url="http://127.0.0.1:7337", client=("127.0.0.1", 1)) as client:
        listed = [model["id"] for model in client.get("/v1/models").json()["data"]]
        assert 0 < len(listed) < 40 and "sim/deepseek" in listed
        for model in listed:
            answers = [
                client.post(path, json={"model": model, **body}).status_code
                for path, body in (
                    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
                    ("/v1/responses", {"input": "hi"}),
                )
            ]
            assert set(answers) != {404}, model  # it is served there, whatever else it demands


def test_one_model():
    with catalogue().client() as client:
        assert client.get("/v1/models/deepseek-v4-pro").json()["owned_by"] == "up"
        assert client.get("/v1/models/sim/x/y").json()["id"] == "sim/x/y"
        assert client.get("/v1/models/k-1").json()["owned_by"] == "known"
    with BuiltGateway(configured(upstreams={})).client() as client:
        answer = client.get("/v1/models/what")
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "model_not_found"


def test_with_client_keys_only_clients_see_models():
    settings = configured(
        access=AccessSettings(clients={"alice": ClientSettings(key=Secret("alice-key"))})
    )
    with BuiltGateway(settings).client() as client:
        for path in ("/v1/models", "/v1/models/deepseek-x"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
            head = {"authorization": "Bearer alice-key"}
            assert client.get(path, headers=head).status_code == 200
        head = {"anthropic-version": "1", "x-api-key": "wrong"}
        assert client.get("/v1/models", headers=head).json()["type"] == "error"


def test_names_that_stand_for_other_models_are_listed():
    rows = {
        "claude-sonnet-5-5": ModelSettings(to="up/deepseek-v4-pro"),
        "claude-*": ModelSettings(to="up/deepseek-v4-pro"),
    }
    with catalogue(models=rows).client() as client:
        listed = {m["id"]: m["owned_by"] for m in client.get("/v1/models").json()["data"]}
        google = client.get("/v1beta/models").json()["models"]
        one = client.get("/v1/models/claude-haiku-4-5").json()
    assert listed["claude-sonnet-5-5"] == "up"
    assert "claude-*" not in listed
    assert {"models/claude-sonnet-5-5", "models/f-1"} <= {model["name"] for model in google}
    assert one["owned_by"] == "up"
