"""The list of all requests: answered, failed, refused at the door, passed through, running."""

import asyncio

import pytest

from inspector.sample_sessions import fill, many
from support.built_gateway import KEY, BuiltGateway
from support.gateway import Answer, ScriptedWire
from support.telemetry import chatty
from thoughtline.gateway.settings import AccessSettings, ClientSettings, PriceSettings, Secret
from thoughtline.stores.memory import MemoryStore

PATH = "/v1/chat/completions"
ASKED = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
HEAD = {"authorization": f"Bearer {KEY}"}
SAID = {
    "model": "deepseek-v4-pro",
    "choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000},
}
QUOTA = Answer(402, {"error": {"message": "Insufficient Balance"}})


def test_every_request_is_in_the_list():
    prices = {"deepseek-*": PriceSettings(input=1.0, output=2.0, cached=0.1)}
    wire = ScriptedWire(Answer(200, SAID), QUOTA, Answer(200, {"data": []}))
    built = BuiltGateway(chatty(prices=prices), wire=wire)
    with built.client() as client:
        client.post(PATH, json=ASKED, headers=HEAD)
        client.post(PATH, json=ASKED, headers=HEAD)
        client.post("/u/up/v1/embeddings", json={}, headers=HEAD)
        client.post("/u/nobody/v1/x", json={}, headers=HEAD)
        client.get("/v1/chat/completions", headers={"host": "evil.example"})
        client.portal.call(built.proxy.failed.settled)
        rows = client.get("/api/requests").json()["requests"]
        assert [(one["outcome"], one["status"], one["path"]) for one in rows] == [
            ("refused", 403, PATH),
            ("refused", 404, "/v1/x"),
            ("passed", 200, "/v1/embeddings"),
            ("refused", 402, PATH),
            ("completed", 200, ""),
        ]
        host, unknown, _, quota, answered = rows
        assert quota["reason"] == "Insufficient Balance"
        assert "billing" in quota["advice"]
        assert "base URL" in unknown["advice"]
        assert host["code"]
        assert answered["usage"]["input"] == 1_000_000
        assert answered["cost"] == 2.0
        assert answered["title"] == "hi"
        failed = client.get("/api/requests?has=failed").json()["requests"]
        assert failed == [host, unknown, quota]
        session = client.get("/api/sessions").json()["sessions"][0]
        assert session["spending"]["cost"] == 2.0
        turn = client.get(f"/api/sessions/{session['id']}").json()["turns"][0]
        assert turn["cost"] == 2.0
        used = client.get("/api/usage").json()
        assert (used["total"]["cost"], used["total"]["output"], used["failed"]) == (2.0, 500_000, 3)
        assert used["models"][0]["model"] == "deepseek-v4-pro"
        assert client.get("/api/continuity").json()["total"]["cost"] == 2.0


def test_who_shows_no_key_is_seen_and_writes_nothing():
    access = AccessSettings(clients={"me": ClientSettings(key=Secret("right"))})
    built = BuiltGateway(chatty(access=access))
    with built.client() as client:
        for _ in range(300):
            client.post(PATH, json=ASKED, headers=HEAD)
        page = client.get("/api/requests?limit=200").json()
        assert len(page["requests"]) == 200  # the last ones, in memory
        assert {one["code"] for one in page["requests"]} == {"invalid_api_key"}
        assert client.get("/api/requests/failed").json()["requests"] == []


@pytest.fixture(scope="module")
def client():
    store = MemoryStore()
    asyncio.run(fill(store))
    asyncio.run(many(store, 300))
    with BuiltGateway(store=store).client() as client:
        yield client


def test_pages_follow_one_another_without_a_gap(client):
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/api/requests?limit=90{cursor and f'&cursor={cursor}'}").json()
        seen += [(one["at"], one["id"]) for one in page["requests"]]
        cursor = page["nextCursor"]
        assert page["complete"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 300 + 18


@pytest.mark.parametrize(
    ("what", "sessions"),
    [("missed", {"agent"}), ("tied", {"agent"}), ("dropped", {"agent"}), ("failed", {"failed"})],
)
def test_people_find_what_they_look_for(client, what, sessions):
    found = client.get(f"/api/requests?has={what}").json()["requests"]
    assert {one["session"] for one in found} == sessions
    listed = client.get(f"/api/sessions?has={what}").json()["sessions"]
    assert {one["id"] for one in listed} == sessions


def test_a_filter_is_one_of_those_that_there_are(client):
    for path in ("requests", "sessions"):
        answer = client.get(f"/api/{path}?has=luck")
        assert answer.status_code == 400
        assert "expected one of failed" in answer.json()["error"]["message"]


def test_requests_of_one_provider_model_or_session(client):
    rows = client.get("/api/requests?provider=anthropic&limit=200").json()["requests"]
    assert {one["provider"] for one in rows} == {"anthropic"}
    rows = client.get("/api/requests?session=branches").json()["requests"]
    assert [one["turn"] for one in rows] == [f"branches-t{n}" for n in (4, 3, 2, 1)]


def test_a_search_shows_where(client):
    (found,) = client.get("/api/sessions?q=TYPO").json()["sessions"]
    assert found["snippet"] == {
        "turn": "agent-t2",
        "role": "assistant",
        "before": "I found a ",
        "match": "typo",
        "after": ".",
    }


def test_an_output_counts_once_however_often_it_is_sent(client):
    listed = client.get("/api/sessions?q=Mend a.txt").json()["sessions"]
    agent = next(one for one in listed if one["id"] == "agent")
    assert (agent["restored"], agent["missed"], agent["tied"]) == (1, 1, 1)
