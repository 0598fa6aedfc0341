"""The cache API: who may use it, what it shows, and what it forgets."""

import asyncio
import json
import re

import pytest

from support.built_gateway import KEY, TOOLS, BuiltGateway, configured, converse
from thoughtline.clock import SystemClock
from thoughtline.errors import Unavailable
from thoughtline.gateway.settings import Secret, StoreSettings, UpstreamSettings
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Carrier, Thought
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore

CACHE = "/api/cache/reasoning"
LOG = "/api/log/reasoning"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def entries(client, **asked):
    return client.get(CACHE, params=asked).json()["entries"]


def stats(client):
    return client.get(CACHE).json()["stats"]


# -- showing -------------------------------------------------------------------------------------


def test_an_empty_cache():
    with BuiltGateway().client() as client:
        assert client.get(CACHE).json() == {
            "stats": {
                "memoryEntries": 0,
                "dbEntries": 0,
                "totalEntries": 0,
                "listedEntries": 0,
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
    built = BuiltGateway(configured(store=StoreSettings(url="memory://", retention=3600.0)))
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
    turns = {e["turn"]: e["charCount"] for e in listed}
    assert len(turns) < len(listed)  # one of them has two calls: one thought all the same
    assert counted["totalEntries"] == counted["dbEntries"] == len(turns)
    assert counted["listedEntries"] == len(listed)
    assert counted["memoryEntries"] == len(turns)
    assert counted["totalChars"] == sum(turns.values())
    share = {"entries": len(turns), "chars": counted["totalChars"]}
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
        assert entry["tenant"] == built.proxy.auth.fingerprint(KEY)
    assert {e["turn"] for e in listed} == {a.headers["x-thoughtline-turn"] for a in answers}


class LateClock(SystemClock):
    """A clock that is set forward."""

    late = 0.0

    def wall(self):
        return super().wall() + self.late


def test_what_is_expired_is_not_listed_also_before_it_is_swept_away():
    clock = LateClock()
    built = BuiltGateway(
        configured(store=StoreSettings(url="memory://", retention=3600.0)), clock=clock
    )
    with built.client() as client:
        converse(client, 3)
        listed = entries(client)
        clock.late = 3500.0
        assert entries(client) == listed != []
        clock.late = 3700.0
        page = client.get(CACHE, params={"limit": 2}).json()
        assert page["entries"] == []
        assert page["nextCursor"] is not None  # the sweep has them still


def test_what_never_expires_says_so():
    with BuiltGateway(
        configured(store=StoreSettings(url="memory://", retention=0.0))
    ).client() as client:
        converse(client, 1)
        assert {e["expiresAt"] for e in entries(client)} == {None}


def test_misses_lower_the_rate():
    with BuiltGateway().client() as client:
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
    built = BuiltGateway()
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
    with BuiltGateway().client() as client:
        converse(client, 5, key="one", said="one")
        converse(client, 4, key="two", said="two")
        everything = entries(client)
        total = stats(client)["totalEntries"]
        assert len({e["turn"] for e in everything}) == total == 9
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


@pytest.mark.parametrize(
    ("limit", "shown"), [("1", 1), ("2", 2), ("999", 3), ("0", 1), ("-7", 1), ("", 3)]
)
def test_the_limit_is_reduced_to_what_is_allowed(limit, shown):
    with BuiltGateway().client() as client:
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
        ("limit=1&limit=2", "`limit` is given twice"),
        ("offset=-1", "`offset` is -1"),
        ("cursor=abc", "`cursor` is 'abc'; expected the `nextCursor`"),
        ("include=everything", "`include` is 'everything'; expected reasoning"),
        ("provider=", "`provider` is empty"),
        ("providr=deepseek", "there is no parameter 'providr'"),
    ],
)
def test_bad_values_are_refused_with_words(query, said):
    with BuiltGateway().client() as client:
        answer = client.get(f"{CACHE}?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"


# -- forgetting ----------------------------------------------------------------------------------


def test_a_misspelt_filter_does_not_clear_everything():
    with BuiltGateway().client() as client:
        converse(client, 2)
        before = entries(client)
        for query in ("providr=x", "provider=", "limit=3", "toolcallid=x"):
            assert client.delete(f"{CACHE}?{query}").status_code == 400
        assert entries(client) == before


def test_clearing_everything_resets_the_counts():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 3)
        total = len(entries(client))
        assert client.delete(CACHE).json() == {"cleared": total}
        seen = stats(client)
        assert (seen["totalEntries"], seen["memoryEntries"], seen["hits"], seen["replays"]) == (
            *(0, 0, 0, 0),
        )
    assert built.events("cleared")[0]["entries"] == total


def test_what_was_cleared_is_not_replayed_and_still_in_the_log():
    built = BuiltGateway()
    with built.client() as client:
        session = converse(client, 3)[0].headers["x-thoughtline-session"]
        history = json.loads(built.wire.sent[-1].body)["messages"]
        for message in history:
            message.pop("reasoning_content", None)
        body = {"model": "deepseek-v4-pro", "messages": history, "tools": TOOLS}
        said = {"headers": {"authorization": f"Bearer {KEY}"}, "json": body}
        told = client.post("/v1/chat/completions", **said).headers["x-thoughtline-replay"]
        assert "restored=2" in told
        before = client.portal.call(built.inner.read, session)
        client.delete(CACHE)
        assert client.portal.call(built.inner.read, session) == before
        told = client.post("/v1/chat/completions", **said).headers["x-thoughtline-replay"]
        assert "restored=0" in told
    assert sum(e.type == "reasoning" and "Thought" in e.data for e in before) == 4


def test_clearing_some():
    with BuiltGateway().client() as client:
        converse(client, 4)
        before = entries(client)
        seen = stats(client)
        turns = [e["turn"] for e in before]
        call = next(e for e in before if turns.count(e["turn"]) > 1)
        answer = client.delete(CACHE, params={"toolCallId": call["toolCallId"]})
        assert answer.json() == {"cleared": 1}  # not the call beside it
        left = [e for e in before if e["toolCallId"] != call["toolCallId"]]
        assert entries(client) == left
        assert stats(client)["hits"] == seen["hits"]  # counts are reset with everything only
        for nothing in ({"provider": "kimi"}, {"model": "k3"}, {"tenant": "nobody"}):
            assert client.delete(CACHE, params=nothing).json() == {"cleared": 0}
        one = {"session": left[0]["session"], "turn": left[0]["turn"]}
        cleared = client.delete(CACHE, params=one).json()["cleared"]
        assert cleared == [e["turn"] for e in left].count(left[0]["turn"])
        answer = client.delete(CACHE, params={"provider": "deepseek", "model": "deepseek-v4-pro"})
        assert answer.json()["cleared"] == len(left) - cleared
        assert entries(client) == []


def test_a_call_that_several_tenants_have():
    """Ids repeat: `functions.read_file:0` is in every conversation."""
    built = BuiltGateway()
    call = "functions.read_file:0"
    thought = Thought(carrier=Carrier.REASONING_CONTENT, raw='"hm"', text="hm")
    with built.client() as client:
        for tenant in ("one", "two"):
            entry = IndexEntry(
                tenant, f"turn-{tenant}", shape="tc", thoughts=(thought,), calls=(call,), chars=2
            )
            batch = Batch(session=tenant, tenant=tenant, drafts=(), index=(entry,))
            client.portal.call(built.inner.append, batch)
        refused = client.delete(CACHE, params={"toolCallId": call})
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "tenant_needed"
        assert "2 tenants have a tool call" in refused.json()["error"]["message"]
        wanted = {"toolCallId": call, "tenant": "one"}
        assert client.delete(CACHE, params=wanted).json() == {"cleared": 1}
        assert [e["tenant"] for e in entries(client)] == ["two"]
        assert client.delete(CACHE, params={"toolCallId": call}).json() == {"cleared": 1}


def test_a_provider_is_known_by_its_upstream_as_well():
    built = BuiltGateway()
    upstream = next(iter(built.proxy.directory))
    with built.client() as client:
        converse(client, 1)
        listed = entries(client)
        assert listed
        assert {e["upstream"] for e in listed} == {upstream.name}
        assert upstream.name != upstream.policy_name
        for name in (upstream.name, upstream.name.upper(), upstream.policy_name):
            assert entries(client, provider=name) == listed
        assert client.delete(CACHE, params={"provider": upstream.name}).json()["cleared"]
        assert entries(client) == []


def two_upstreams(*keys):
    """The settings of `work` and `home`, at one address, each with its key or with none."""
    made = {
        name: UpstreamSettings(name=name, base_url="http://sim", policy="deepseek", key=Secret(key))
        for name, key in zip(("work", "home"), keys, strict=True)
    }
    return configured(upstreams=made)


def ask_both(client):
    key = {"authorization": f"Bearer {KEY}"}
    for name in ("work", "home"):
        question = {"role": "user", "content": f"hi {name}"}
        body = {"model": "deepseek-v4-pro", "messages": [question]}
        assert client.post(f"/u/{name}/v1/chat/completions", json=body, headers=key).is_success


@pytest.mark.parametrize("keys", [("one", "two"), ("one", ""), ("", "two")])
def test_two_upstreams_at_one_address_are_told_apart_by_their_accounts(keys):
    with BuiltGateway(two_upstreams(*keys)).client() as client:
        ask_both(client)
        assert [one["upstream"] for one in entries(client)] == ["home", "work"]
        for name in ("work", "home"):
            assert [one["upstream"] for one in entries(client, provider=name)] == [name]
        assert client.delete(CACHE, params={"provider": "work"}).json() == {"cleared": 1}
        assert [one["upstream"] for one in entries(client)] == ["home"]
        erase = {"provider": "home", "confirm": "erase"}
        assert client.delete(LOG, params=erase).json() == {"erased": 1}
        assert entries(client) == []


@pytest.mark.parametrize("keys", [("same", "same"), ("", "")])
def test_where_they_cannot_be_told_apart_the_answer_says_so(keys):
    built = BuiltGateway(two_upstreams(*keys))
    with built.client() as client:
        ask_both(client)
        assert [one["upstream"] for one in entries(client)] == [None, None]
        said = {"cleared": 2, "upstreams": ["home", "work"]}
        assert client.delete(CACHE, params={"provider": "Work"}).json() == said
        assert built.events("cleared")[0]["upstreams"] == ["home", "work"]
        erase = {"provider": "work", "confirm": "erase"}
        said = {"erased": 2, "upstreams": ["home", "work"]}
        assert client.delete(LOG, params=erase).json() == said
        done = client.get("/api/deletions").json()["deletions"]
        assert [one["upstreams"] for one in done] == [["home", "work"]] * 2


# -- erasing the log -----------------------------------------------------------------------------


def test_erasing_wants_a_confirmation():
    with BuiltGateway().client() as client:
        converse(client, 1)
        refused = client.delete(LOG)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "parameter_needed"
        assert client.delete(f"{LOG}?confirm=yes").status_code == 400
        assert entries(client)


def test_what_is_erased_is_gone_from_cache_and_log():
    built = BuiltGateway()
    with built.client() as client:
        session = converse(client, 3)[0].headers["x-thoughtline-session"]
        assert client.delete(f"{LOG}?confirm=erase&model=k3").json() == {"erased": 0}
        assert client.delete(f"{LOG}?confirm=erase").json() == {"erased": 3}
        events = client.portal.call(built.inner.read, session)
        assert entries(client) == []
    assert [e.seq for e in events] == list(range(len(events)))
    assert sum(e.type == "reasoning" for e in events) == 3
    assert not [e for e in events if e.type == "reasoning" and "Thought" in e.data]
    assert [line["thoughts"] for line in built.events("erased")] == [0, 3]


# -- what takes long -----------------------------------------------------------------------------


class Slow(MemoryStore):
    """Clears when it is told to."""

    def __init__(self):
        super().__init__()
        self.told = asyncio.Event()
        self.fails = False

    async def forget(self, which, *, progress=None):
        progress(3, 10)
        await self.told.wait()
        if self.fails:
            raise Unavailable("the disk is gone; try again")
        return await super().forget(which, progress=progress)


@pytest.mark.parametrize("fails", [False, True])
def test_a_long_deletion_goes_on_in_the_background(fails, monkeypatch):
    monkeypatch.setattr("thoughtline.gateway.build.WAIT", 0.0)
    store = Slow()
    store.fails = fails
    with BuiltGateway(store=store).client() as client:
        converse(client, 2)
        answer = client.delete(CACHE)
        said = answer.json()
        assert (answer.status_code, said["status"]) == (202, "running")
        place = answer.headers["location"]
        assert place == f"/api/deletions/{said['deletion']}"
        while not client.get(place).json()["total"]:
            pass
        said = client.get(place).json()
        assert (said["done"], said["total"], said["deleted"]) == (3, 10, None)
        converse(client, 1, said="meanwhile")  # requests go on
        client.portal.call(store.told.set)
        while (said := client.get(place).json())["status"] == "running":
            pass
        assert (said["status"], said["error"]) == (
            ("failed", "the disk is gone; try again") if fails else ("done", None)
        )
        assert client.get("/api/deletions").json()["deletions"] == [said]
        assert client.get("/api/deletions/nobody").status_code == 404


# -- tenants -------------------------------------------------------------------------------------


def test_a_tenant_can_be_purged():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 2, key="one", said="one")
        converse(client, 2, key="two", said="two")
        tenant = built.proxy.auth.fingerprint("one")
        assert client.delete(f"/api/tenants/{tenant}").json() == {"purged": 1}
        assert {e["tenant"] for e in entries(client)} == {built.proxy.auth.fingerprint("two")}
        assert client.delete(f"/api/tenants/{tenant}").json() == {"purged": 0}
        assert client.delete("/api/tenants/x?y=z").status_code == 400
    assert built.events("purged")[0]["sessions"] == 1


def test_those_without_a_credential_are_one_tenant():
    with BuiltGateway().client() as client:
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

    async def forget(self, which, *, progress=None):
        raise Unavailable("the disk is gone; try again")


def test_a_store_that_is_down_is_said_so():
    with BuiltGateway(store=Down()).client() as client:
        for method in ("GET", "DELETE"):
            answer = client.request(method, CACHE)
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "store_unavailable"
            assert "the disk is gone" in answer.json()["error"]["message"]
