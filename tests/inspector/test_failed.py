"""The API answers for every id that a header or a log line names."""

from support.built_gateway import KEY, BuiltGateway
from support.gateway import Answer, ScriptedWire
from support.telemetry import chatty
from thoughtline.gateway.settings import AccessSettings, ClientSettings, Secret

PATH = "/v1/chat/completions"
ASKED = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
HEAD = {"authorization": f"Bearer {KEY}"}
REFUSAL = {"error": {"message": "You exceeded your current quota", "code": "quota"}}
SAID = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


def test_the_api_answers_for_every_id_in_the_log():
    refusal = Answer(400, REFUSAL)
    answers = [Answer(200, SAID), refusal, refusal]
    built = BuiltGateway(chatty(level="info"), wire=ScriptedWire(*answers))
    with built.client() as client:
        first = client.post(PATH, json=ASKED, headers=HEAD)
        assert first.status_code == 200
        refused = client.post(PATH, json=ASKED, headers=HEAD)
        passed = client.post("/u/up/v1/embeddings", json={}, headers=HEAD)
        unknown = client.post("/u/nobody/v1/embeddings", json={}, headers=HEAD)
        client.portal.call(built.proxy.failed.settled)
        lines = built.events("request")
        ids = [line.get("request") for line in lines]
        assert ids == [
            None,
            *[one.headers["x-thoughtline-request"] for one in (refused, passed, unknown)],
        ]
        for line in lines[1:]:
            shown = client.get(f"/api/requests/failed/{line['request']}").json()
            assert (shown["status"], shown["upstream"]) == (line["status"], line["upstream"])
            assert "turn" not in line and "session" not in line
        turn = f"/api/sessions/{lines[0]['session']}/turns/{lines[0]['turn']}"
        assert client.get(turn).status_code == 200
        page = client.get("/api/requests/failed?limit=2").json()
        assert [one["id"] for one in page["requests"]] == ids[:1:-1]
        assert page["more"]
        older = client.get(f"/api/requests/failed?before={ids[2]}").json()
        assert [one["id"] for one in older["requests"]] == [ids[1]]
        assert client.get("/api/requests/failed/nothing").status_code == 404
        sessions = client.get("/api/sessions").json()["sessions"]
        assert [one["id"] for one in sessions] == [lines[0]["session"]]
        client.delete(f"/api/tenants/{lines[0]['tenant']}")
        assert client.get("/api/requests/failed").json()["requests"] == []


def test_who_shows_no_key_writes_nothing():
    access = AccessSettings(clients={"me": ClientSettings(key=Secret("right"))})
    built = BuiltGateway(chatty(level="info", access=access))
    with built.client() as client:
        answer = client.post(PATH, json=ASKED, headers=HEAD)
        assert answer.status_code == 401
        assert answer.headers["x-thoughtline-replay"] == "refused=invalid_api_key"
        assert "x-thoughtline-request" not in answer.headers
        client.portal.call(built.proxy.failed.settled)
        assert client.get("/api/requests/failed").json()["requests"] == []
