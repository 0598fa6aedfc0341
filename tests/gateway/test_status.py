"""The pages that anybody may see."""

import msgspec
import pytest

import thoughtline
from built import Built, configured, converse, metrics, with_token
from thoughtline.errors import Unavailable
from thoughtline.gateway import openapi
from thoughtline.gateway.upstreams import Upstream
from thoughtline.settings import Access, Client, Secret
from thoughtline.settings import Upstream as Configured
from thoughtline.stores.memory import MemoryStore


class Fragile(MemoryStore):
    down = ""

    async def read(self, session, *, after=-1, limit=None):
        if self.down:
            raise Unavailable(self.down)
        return await super().read(session, after=after, limit=limit)


def test_pages():
    with Built().client() as client:
        assert client.get("/").text == "Thoughtline is running\n"
        for path in ("/health", "/health/liveness"):
            assert client.get(path).json() == {"status": "ok"}
        for path in ("/ready", "/health/readiness"):
            assert client.get(path).json() == {"status": "ready", "reasons": []}
        assert client.get("/version").json() == {
            "name": "thoughtline",
            "version": thoughtline.__version__,
        }
        assert client.head("/health").status_code == 200


def test_a_page_that_is_not_there_says_so():
    with Built().client() as client:
        for path in ("/docs", "/api/nothing", "/healthy"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not_found"
        answer = client.post("/health")
        assert answer.status_code == 405
        assert "GET" in answer.headers["allow"]


# -- readiness -----------------------------------------------------------------------------------


def test_not_ready_while_the_store_is_down():
    store = Fragile()
    built = Built(store=store)
    with built.client() as client:
        store.down = "/secret/place is gone"
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert answer.json() == {"status": "not ready", "reasons": ["/secret/place is gone"]}
        assert client.get("/health").status_code == 200
        store.down = ""
        assert client.get("/ready").status_code == 200


def test_strangers_are_not_told_where_files_are():
    store = Fragile()
    store.down = "/secret/place is gone"
    with Built(store=store).client(peer="203.0.113.9", host="gateway.test") as client:
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert "/secret" not in answer.text


def test_not_ready_while_turns_wait_to_be_written():
    built = Built()
    built.store._backlog.append(None)
    built.store.trouble = "the disk is full"
    with built.client() as client:
        assert client.get("/ready").json()["reasons"] == [
            "1 turns wait for the store: the disk is full"
        ]
        built.store._backlog.clear()


def test_not_ready_while_going_down():
    built = Built()
    with built.client() as client:
        built.proxy.draining = True
        answer = client.get("/ready")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the gateway is shutting down"])


def test_closing_lets_go_of_everything():
    built = Built()
    with built.client() as client:
        converse(client, 1)
        assert not built.proxy.draining
    assert built.proxy.draining
    assert built.inner._closed


# -- models --------------------------------------------------------------------------------------


def catalogue(**more):
    known = Configured(name="known", base_url="https://k", models=("k-*",), standing="known")
    found = Configured(
        name="found",
        base_url="https://f",
        models=("f-1", "deepseek-*"),
        standing="environment",
        key=Secret("key-canary"),
    )
    settings = configured()
    upstreams = settings.upstreams | {"known": known, "found": found}
    return Built(
        msgspec.structs.replace(settings, upstreams=upstreams, **more),
        simulated=lambda model: Upstream(name="sim", base_url="sim://x"),
        models=["sim/x/y"],
    )


def test_models_of_upstreams_in_use_and_simulated_ones():
    with catalogue().client() as client:
        listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [(m["id"], m["owned_by"]) for m in listed["data"]] == [
        ("deepseek-*", "up"),
        ("f-1", "found"),
        ("sim/x/y", "sim"),
    ]
    assert set(listed["data"][0]) == {"id", "object", "created", "owned_by"}


def test_anthropics_clients_get_their_shape():
    with catalogue().client(headers={"anthropic-version": "2023-06-01"}) as client:
        listed = client.get("/v1/models").json()
        assert (listed["first_id"], listed["last_id"]) == ("deepseek-*", "sim/x/y")
        assert listed["has_more"] is False
        assert listed["data"][1] == {
            "type": "model",
            "id": "f-1",
            "display_name": "f-1",
            "created_at": "1970-01-01T00:00:00Z",
        }
        assert client.get("/v1/models/f-1").json()["type"] == "model"
    nothing = Built(configured(upstreams={}))
    with nothing.client(headers={"anthropic-version": "2023-06-01"}) as client:
        assert client.get("/v1/models").json()["first_id"] is None
        answer = client.get("/v1/models/x")
        assert (answer.status_code, answer.json()["type"]) == (404, "error")


def test_one_model():
    with catalogue().client() as client:
        assert client.get("/v1/models/deepseek-v4-pro").json()["owned_by"] == "up"
        assert client.get("/v1/models/sim/x/y").json()["id"] == "sim/x/y"
        assert client.get("/v1/models/k-1").json()["owned_by"] == "known"
    with Built(configured(upstreams={})).client() as client:
        answer = client.get("/v1/models/what")
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "model_not_found"


def test_with_client_keys_only_clients_see_models():
    settings = configured(access=Access(clients={"alice": Client(key=Secret("alice-key"))}))
    with Built(settings).client() as client:
        for path in ("/v1/models", "/v1/models/deepseek-x"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
            head = {"authorization": "Bearer alice-key"}
            assert client.get(path, headers=head).status_code == 200
        head = {"anthropic-version": "1", "x-api-key": "wrong"}
        assert client.get("/v1/models", headers=head).json()["type"] == "error"


# -- metrics -------------------------------------------------------------------------------------


def test_metrics():
    with Built().client() as client:
        converse(client, 3)
        page = client.get("/metrics")
        assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "_created" not in page.text
        seen = metrics(client)
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        assert client.get("/metrics", headers=accept).text.endswith("# EOF\n")
    labels = '{dialect="chat",outcome="completed",status="200",upstream="up"}'
    assert seen[f"thoughtline_requests_total{labels}"] == 3
    labels = '{action="restored",provider="deepseek",rung="chain"}'
    assert seen[f"thoughtline_outputs_total{labels}"] == 3
    assert seen["thoughtline_added_seconds_count"] == 3
    assert seen["thoughtline_commit_seconds_count"] == 3
    assert seen["thoughtline_streams_open"] == 0
    assert seen["thoughtline_store_trouble"] == 0
    assert seen["thoughtline_store_backlog"] == 0
    assert seen["thoughtline_memory_entries"] == 2
    assert seen[f'thoughtline_info{{version="{thoughtline.__version__}"}}'] == 1


# -- the document --------------------------------------------------------------------------------


def test_the_document_names_every_page_of_ours():
    built = Built()
    with built.client() as client:
        document = client.get("/openapi.json").json()
    pages = built.app._pages._app.routes
    ours = {
        (route.path.replace(":path", ""), method)
        for route in pages
        for method in route.methods - {"HEAD"}
        if not route.path.startswith("/inspect")  # files for a browser
    }
    written = {
        (path, method.upper()) for path, item in document["paths"].items() for method in item
    }
    assert ours <= written


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent",
        "/u/{upstream}/{path}",
    ],
)
def test_the_document_names_what_goes_to_providers(path):
    assert "post" in openapi.document()["paths"][path]


def test_references_in_the_document_lead_somewhere():
    document = openapi.document()
    text = msgspec.json.encode(document).decode()
    wanted = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert wanted
    assert wanted <= set(document["components"]["schemas"])


def test_status_pages_need_no_token():
    with Built(with_token()).client(peer="203.0.113.9", host="gateway.test") as client:
        for path in ("/", "/health", "/ready", "/metrics", "/version", "/openapi.json"):
            assert client.get(path).status_code == 200
