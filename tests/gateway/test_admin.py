"""The cache API: who may use it, what it shows, and what it forgets."""

import re

import pytest

from built import KEY, TOKEN, TOOLS, Built, configured, converse, with_token
from thoughtline.errors import Unavailable
from thoughtline.gateway.access import Door
from thoughtline.settings import Access, Client, Secret, Store
from thoughtline.stores.memory import MemoryStore

CACHE = "/api/cache/reasoning"
BEARER = {"authorization": f"Bearer {TOKEN}"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def entries(client, **asked):
    return client.get(CACHE, params=asked).json()["entries"]


def stats(client):
    return client.get(CACHE).json()["stats"]


# -- access --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", CACHE), ("DELETE", CACHE), ("DELETE", "/api/tenants/t"), ("GET", "/api/sessions")],
)
def test_with_a_token_only_the_token_opens(method, path):
    with Built(with_token()).client() as client:
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN + "x"}):
            answer = client.request(method, path, headers=wrong)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            problem = answer.json()["error"]
            assert problem["code"] == "admin_token_needed"
            assert "access.admin_token" in problem["message"]
            assert TOKEN not in answer.text
        assert client.request(method, path, headers=BEARER).status_code in (200, 404)


def test_the_token_opens_from_elsewhere():
    with Built(with_token()).client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.get(CACHE, headers=BEARER).status_code == 200
        assert client.get(CACHE).status_code == 401


@pytest.mark.parametrize(
    ("peer", "host", "headers"),
    [
        ("203.0.113.9", "127.0.0.1:7337", {}),  # another machine
        ("127.0.0.1", "evil.test", {}),  # a web page that points its own name here
        ("127.0.0.1", "evil.test:7337", {}),
        ("127.0.0.1", "127.0.0.1", {"origin": "https://evil.test"}),  # through somebody's browser
        ("127.0.0.1", "127.0.0.1", {"origin": "null"}),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-for": "203.0.113.9"}),  # through a proxy
        ("127.0.0.1", "127.0.0.1", {"forwarded": "for=203.0.113.9"}),
    ],
)
def test_without_a_token_it_opens_on_the_machine_itself_only(peer, host, headers):
    with Built().client(peer=peer, host=host) as client:
        for method in ("GET", "DELETE"):
            answer = client.request(method, CACHE, headers=headers)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "loopback_only"


@pytest.mark.parametrize("host", ["127.0.0.1:7337", "localhost:7337", "localhost", "[::1]:7337"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_on_the_machine_itself_no_token_is_needed(host, peer):
    with Built().client(peer=peer, host=host) as client:
        assert client.get(CACHE).status_code == 200
        assert client.delete(CACHE, headers={"origin": f"http://{host}"}).status_code == 200


def test_a_local_socket_is_the_machine_itself():
    assert Door(b"s" * 32).admits_admin([(b"host", b"localhost")], "")
    assert Door(b"s" * 32).admits_admin([], "127.0.0.1")


def test_a_clients_key_is_not_the_administrators():
    access = Access(admin_token=Secret(TOKEN), clients={"alice": Client(key=Secret("alice-key"))})
    with Built(configured(access=access)).client() as client:
        head = {"authorization": "Bearer alice-key"}
        assert client.get(CACHE, headers=head).status_code == 401
        assert client.get("/v1/models", headers=BEARER).status_code == 401


# -- showing -------------------------------------------------------------------------------------


def test_an_empty_cache():
    with Built().client() as client:
        assert client.get(CACHE).json() == {
            "stats": {
                "memoryEntries": 0,
                "dbEntries": 0,
                "totalEntries": 0,
                "totalChars": 0,
                "hits": 0,
                "misses": 0,
                "replays": 0,
                "replayRate": "0.0%",
                "byProvider": {},
                "byModel": {},
                "oldestEntry": None,
                "newestEntry": None,
            },
            "entries": [],
            "nextCursor": None,
        }


def test_statistics_and_entries_after_a_conversation():
    built = Built(configured(store=Store(url="memory://", retention=3600.0)))
    with built.client() as client:
        answers = converse(client, 4)
        page = client.get(CACHE).json()
        listed, counted = page["entries"], page["stats"]
    calls = [
        call["id"]
        for answer in answers
        for call in answer.json()["choices"][0]["message"].get("tool_calls") or [{"id": None}]
    ]
    assert sorted(str(e["toolCallId"]) for e in listed) == sorted(map(str, calls))
    assert counted["totalEntries"] == counted["dbEntries"] == len(listed)
    assert counted["totalChars"] == sum(e["charCount"] for e in listed)
    share = {"entries": len(listed), "chars": counted["totalChars"]}
    assert counted["byProvider"] == {"deepseek": share}
    assert counted["byModel"] == {"deepseek-v4-pro": share}
    assert (counted["hits"], counted["misses"], counted["replays"]) == (6, 0, 6)  # 1 + 2 + 3
    assert counted["replayRate"] == "100.0%"
    assert TIME.fullmatch(counted["oldestEntry"])
    assert counted["oldestEntry"] == listed[-1]["createdAt"]
    assert counted["newestEntry"] == listed[0]["createdAt"]
    for entry in listed:
        assert entry["reasoning"] is None
        assert (entry["provider"], entry["model"]) == ("deepseek", "deepseek-v4-pro")
        assert entry["outcome"] == "completed"
        assert TIME.fullmatch(entry["createdAt"])
        assert TIME.fullmatch(entry["expiresAt"])
        assert entry["expiresAt"] > entry["createdAt"]
        assert entry["session"] == answers[0].headers["x-thoughtline-session"]
        assert entry["tenant"] == built.proxy.door.fingerprint(KEY)
    assert {e["turn"] for e in listed} == {a.headers["x-thoughtline-turn"] for a in answers}


def test_what_never_expires_says_so():
    with Built(configured(store=Store(url="memory://", retention=0.0))).client() as client:
        converse(client, 1)
        assert {e["expiresAt"] for e in entries(client)} == {None}


def test_misses_lower_the_rate():
    with Built().client() as client:
        converse(client, 2)
        client.delete(CACHE)
        history = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        body = {"model": "deepseek-v4-pro", "messages": history, "tools": TOOLS}
        client.post("/v1/chat/completions", json=body)
        seen = stats(client)
    assert (seen["hits"], seen["misses"], seen["replays"], seen["replayRate"]) == (0, 1, 0, "0.0%")


def test_thoughts_are_shown_when_asked_for_and_the_look_is_logged():
    built = Built()
    with built.client() as client:
        answers = converse(client, 2)
        assert not built.events("thoughts_shown")
        shown = entries(client, include="reasoning")
    thoughts = {
        a.headers["x-thoughtline-turn"]: a.json()["choices"][0]["message"]["reasoning_content"]
        for a in answers
    }
    assert {e["turn"]: e["reasoning"] for e in shown} == thoughts
    assert all(len(e["reasoning"]) == e["charCount"] for e in shown)
    (look,) = built.events("thoughts_shown")
    assert look["peer"] == "127.0.0.1"
    assert set(look["turns"]) == set(thoughts)
    assert "Thought" not in built.lines.getvalue()


def test_filters_and_pages():
    with Built().client() as client:
        converse(client, 5, key="one", said="one")
        converse(client, 4, key="two", said="two")
        everything = entries(client)
        total = stats(client)["totalEntries"]
        assert len(everything) == total > 9
        call = next(e["toolCallId"] for e in everything if e["toolCallId"])
        assert [e["toolCallId"] for e in entries(client, toolCallId=call)] == [call]
        tenant = everything[0]["tenant"]
        assert {e["tenant"] for e in entries(client, tenant=tenant)} == {tenant}
        assert entries(client, provider="deepseek", model="deepseek-v4-pro") == everything
        assert entries(client, provider="nobody") == entries(client, model="no") == []
        seen, asked = [], {"limit": 4}
        while True:
            page = client.get(CACHE, params=asked).json()
            seen += page["entries"]
            if page["nextCursor"] is None:
                break
            assert len(page["entries"]) == 4
            asked["cursor"] = page["nextCursor"]
        assert seen == everything
        assert entries(client, limit=3, offset=2) == everything[2:5]


@pytest.mark.parametrize(("limit", "shown"), [("0", 1), ("-7", 1), ("1", 1), ("2", 2), ("999", 3)])
def test_the_limit_is_clamped(limit, shown):
    with Built().client() as client:
        for said in "abc":
            converse(client, 1, said=said)
        assert len({e["turn"] for e in entries(client)}) == 3
        assert len({e["turn"] for e in entries(client, limit=limit)}) <= shown
        assert len(entries(client, limit=limit)) >= min(shown, 3)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=many", "`limit` is 'many'; expected a whole number"),
        ("limit=1.5", "`limit`"),
        ("limit=", "`limit` is empty"),
        ("limit=1&limit=2", "`limit` is given twice"),
        ("offset=-1", "`offset` is -1"),
        ("cursor=abc", "`cursor` is 'abc'; expected the `nextCursor`"),
        ("include=everything", "`include` is 'everything'; expected reasoning"),
        ("provider=", "`provider` is empty"),
        ("providr=deepseek", "there is no parameter 'providr'"),
    ],
)
def test_bad_values_are_refused_with_words(query, said):
    with Built().client() as client:
        answer = client.get(f"{CACHE}?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"


# -- forgetting ----------------------------------------------------------------------------------


def test_a_misspelt_filter_does_not_clear_everything():
    with Built().client() as client:
        converse(client, 2)
        before = entries(client)
        for query in ("providr=x", "provider=", "limit=3", "toolcallid=x"):
            assert client.delete(f"{CACHE}?{query}").status_code == 400
        assert entries(client) == before


def test_clearing_everything_resets_the_counts():
    built = Built()
    with built.client() as client:
        converse(client, 3)
        total = stats(client)["totalEntries"]
        assert client.delete(CACHE).json() == {"cleared": total}
        seen = stats(client)
        assert (seen["totalEntries"], seen["memoryEntries"], seen["hits"], seen["replays"]) == (
            *(0, 0, 0, 0),
        )
    assert built.events("cleared")[0]["entries"] == total


def test_what_was_forgotten_is_not_replayed_and_not_in_the_log():
    built = Built()
    with built.client() as client:
        answers = converse(client, 3)
        session = answers[0].headers["x-thoughtline-session"]
        client.delete(CACHE)
        events = client.portal.call(built.inner.read, session)
        again = converse(client, 1, said="again")
        assert again[0].headers["x-thoughtline-replay"].startswith("restored=0")
    assert [e.seq for e in events] == list(range(len(events)))
    assert sum(e.type == "reasoning" for e in events) == 3
    assert not [e for e in events if e.type == "reasoning" and "Thought" in e.data]


def test_clearing_some():
    with Built().client() as client:
        converse(client, 4)
        before = entries(client)
        seen = stats(client)
        call = next(e for e in before if e["toolCallId"])
        siblings = [e for e in before if e["turn"] == call["turn"]]
        answer = client.delete(CACHE, params={"toolCallId": call["toolCallId"]})
        assert answer.json() == {"cleared": len(siblings)}
        assert entries(client) == [e for e in before if e["turn"] != call["turn"]]
        assert stats(client)["hits"] == seen["hits"]  # counts are reset with everything only
        for nothing in ({"provider": "kimi"}, {"model": "k3"}, {"tenant": "nobody"}):
            assert client.delete(CACHE, params=nothing).json() == {"cleared": 0}
        answer = client.delete(CACHE, params={"provider": "deepseek", "model": "deepseek-v4-pro"})
        assert answer.json()["cleared"] == len(before) - len(siblings)
        assert entries(client) == []


# -- tenants -------------------------------------------------------------------------------------


def test_a_tenant_can_be_purged():
    built = Built()
    with built.client() as client:
        converse(client, 2, key="one", said="one")
        converse(client, 2, key="two", said="two")
        tenant = built.proxy.door.fingerprint("one")
        assert client.delete(f"/api/tenants/{tenant}").json() == {"purged": 1}
        assert {e["tenant"] for e in entries(client)} == {built.proxy.door.fingerprint("two")}
        assert client.delete(f"/api/tenants/{tenant}").json() == {"purged": 0}
        assert client.delete("/api/tenants/x?y=z").status_code == 400
    assert built.events("purged")[0]["sessions"] == 1


def test_those_without_a_credential_are_one_tenant():
    with Built().client() as client:
        body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
        head = {"authorization": ""}
        client.post("/v1/chat/completions", json=body, headers=head)
        assert {e["tenant"] for e in entries(client, tenant="anonymous")} <= {"anonymous"}
        client.delete("/api/tenants/anonymous")
        assert entries(client) == []


# -- a store that is down ------------------------------------------------------------------------


class Down(MemoryStore):
    async def entries(self, *arguments, **more):
        raise Unavailable("the disk is gone; try again")

    async def forget(self, which):
        raise Unavailable("the disk is gone; try again")


def test_a_store_that_is_down_is_said_so():
    with Built(store=Down()).client() as client:
        for method in ("GET", "DELETE"):
            answer = client.request(method, CACHE)
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "store_unavailable"
            assert "the disk is gone" in answer.json()["error"]["message"]
