"""The pages that anybody may see."""

import asyncio
import contextlib

import thoughtline
from stores.samples import turn
from support.built_gateway import TOKEN, BuiltGateway, configured, converse, metrics
from thoughtline.errors import Corrupt, Damaged, Unavailable
from thoughtline.gateway.settings import AccessSettings, Secret, StoreSettings
from thoughtline.stores.memory import MemoryStore

NAMED = configured(access=AccessSettings(admin_token=Secret(TOKEN), hosts=("gateway.test",)))


class Fragile(MemoryStore):
    down = ""

    async def read(self, session, *, after=-1, limit=None):
        if self.down:
            raise Unavailable(self.down)
        return await super().read(session, after=after, limit=limit)


def test_pages():
    with BuiltGateway().client() as client:
        assert client.get("/").text == "Thoughtline is running\n"
        for path in ("/health", "/health/liveness"):
            assert client.get(path).json() == {"status": "ok"}
        for path in ("/ready", "/health/readiness"):
            assert client.get(path).json() == {"status": "ready", "reasons": [], "lost": 0}
        assert client.get("/version").json() == {
            "name": "thoughtline",
            "version": thoughtline.__version__,
        }
        assert client.head("/health").status_code == 200


def test_a_page_that_is_not_there_says_so():
    with BuiltGateway().client() as client:
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
    built = BuiltGateway(store=store)
    with built.client() as client:
        store.down = "/secret/place is gone"
        answer = client.get("/ready")
        assert answer.status_code == 503
        reasons = ["/secret/place is gone"]
        assert answer.json() == {"status": "not ready", "reasons": reasons, "lost": 0}
        assert client.get("/health").status_code == 200
        store.down = ""
        assert client.get("/ready").status_code == 200


def test_the_trouble_of_a_shared_store_takes_no_node_out_of_the_balancer():
    store = Fragile()
    store.shared = True
    with BuiltGateway(store=store).client() as client:
        store.down = "the database restarts"
        answer = client.get("/ready")
        assert answer.status_code == 200
        assert answer.json() == {
            "status": "degraded",
            "reasons": ["the database restarts"],
            "lost": 0,
        }
        store.down = ""
        assert client.get("/ready").json()["status"] == "ready"


def test_clients_are_not_told_where_files_are():
    store = Fragile()
    store.down = "/secret/place is gone"
    with BuiltGateway(NAMED, store=store).client(peer="203.0.113.9", host="gateway.test") as client:
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert "/secret" not in answer.text


async def test_not_ready_while_turns_wait_to_be_written():
    class Full(MemoryStore):
        full = True

        async def append(self, batch):
            if self.full:
                raise Unavailable("the disk is full")
            return await super().append(batch)

    store = Full()
    built = BuiltGateway(configured(store=StoreSettings(memory_bytes=40_000)), store=store)
    with built.client() as client:
        for _ in range(9):
            with contextlib.suppress(Unavailable):
                await built.store.append(turn("s", "t1", f'"{"x" * 1_000}"'))
        answer = client.get("/ready")
        assert answer.status_code == 503
        lost = built.store.lost
        assert 0 < lost < 9
        assert answer.json()["lost"] == lost
        [reason] = answer.json()["reasons"]
        assert reason.startswith(f"{9 - lost} turns wait for the store: the disk is full; they ")
        assert reason.endswith(f"because there is no file to keep them in; {lost} are lost")
        assert metrics(client)["thoughtline_store_trouble"] == 1
        await asyncio.sleep(0)  # lines are written when the loop has time
        lines = built.events("write_failed")
        assert [(line["level"], line["fate"]) for line in lines] == [("error", "lost")] * lost


def test_not_ready_while_the_file_is_damaged():
    built = BuiltGateway()
    built.store._note_trouble(Corrupt("it is damaged: salvage it"))
    with built.client() as client:
        assert client.get("/ready").json()["reasons"] == ["it is damaged: salvage it"]
        assert metrics(client)["thoughtline_store_trouble"] == 1
    (line,) = built.events("store_damaged")
    assert line["level"] == "error"


def test_degraded_while_a_value_is_known_to_be_damaged():
    built = BuiltGateway()
    built.store.damage.note("s1", Damaged("it does not open"))
    with built.client() as client:
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert ready.json()["reasons"][0].startswith("values of 1 session(s) are damaged (s1)")
        assert "s1" not in client.get("/ready", headers={"host": "elsewhere.test"}).text
    (line,) = built.events("store_damaged")
    assert line["reason"] == "session 's1': it does not open"


# -- metrics -------------------------------------------------------------------------------------


def test_metrics():
    with BuiltGateway().client() as client:
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
    assert seen["thoughtline_memory_entries"] == 3
    assert seen[f'thoughtline_info{{version="{thoughtline.__version__}"}}'] == 1


# -- the document --------------------------------------------------------------------------------


def test_status_pages_need_no_token():
    with BuiltGateway(NAMED).client(peer="203.0.113.9", host="gateway.test") as client:
        for path in ("/", "/health", "/ready", "/metrics", "/version", "/openapi.json"):
            assert client.get(path).status_code == 200
