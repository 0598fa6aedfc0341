"""The inspector's API: what it shows, to whom, and what it keeps to itself."""

import asyncio

import pytest

from inspector.sample_sessions import HOSTILE, Session, fill
from support.built_gateway import TOKEN, BuiltGateway, converse, with_token
from thoughtline.errors import Unavailable
from thoughtline.log.durations import duration_text
from thoughtline.log.events import EndpointLearned
from thoughtline.stores.memory import MemoryStore

BEARER = {"authorization": f"Bearer {TOKEN}"}


def ids(page):
    return [session["id"] for session in page["sessions"]]


def thoughts(turn):
    return [part for part in turn["output"] if part["type"] == "thought"]


# -- the listing ---------------------------------------------------------------------------------


def test_a_session_in_the_listing(get):
    page = get("sessions")
    agent = next(s for s in page["sessions"] if s["id"] == "agent")
    assert agent["title"] == "Mend a.txt, please."
    assert (agent["turns"], agent["status"], agent["tenant"]) == (3, "completed", "tenant-a")
    assert (agent["providers"], agent["models"]) == (["deepseek"], ["deepseek-v4-pro"])
    counts = [agent[name] for name in ("restored", "replaced", "exact", "missed", "tied")]
    assert (counts, agent["placeholder"], agent["thoughts"]) == ([1, 0, 1, 1, 1], 1, 3)
    assert agent["dropped"] == 1
    assert page["now"] > agent["touched"] >= agent["created"]


def test_who_goes_on_hears_of_earlier_turns_that_were_carried_back(get):
    first, second, third = (turn["id"] for turn in get("sessions/agent")["turns"])
    assert get("sessions/agent")["replayed"] == {}
    assert get("sessions/agent", after=first)["replayed"] == {first: 2, second: 1}
    assert get("sessions/agent", after=third)["replayed"] == {}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"status": "aborted"}, {"aborted"}),
        ({"status": "failed"}, {"failed"}),
        ({"status": "capped"}, {"capped"}),
        ({"status": "running"}, {"unfinished"}),
        ({"provider": "anthropic"}, {"thoughts", "aborted"}),
        ({"model": "gpt-5.2"}, {"thoughts"}),
        ({"tenant": "tenant-b"}, {"thoughts"}),
        ({"tenant": "nobody"}, set()),
        ({"q": "TEH END"}, {"agent"}),
        ({"q": "onerror="}, {"hostile"}),
        ({"q": "read_file"}, {"agent"}),
        ({"q": "I must read it first"}, set()),  # that was only thought
        ({"q": "please", "status": "completed", "provider": "deepseek"}, {"agent", "thoughts"}),
    ],
)
def test_filters(get, asked, found):
    assert set(ids(get("sessions", **asked))) == found


def test_pages(get):
    seen, cursor = [], {}
    while True:
        page = get("sessions", limit=2, **cursor)
        assert len(page["sessions"]) <= 2
        seen += ids(page)
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == ids(get("sessions"))
    assert len(seen) == len(set(seen)) == 9


@pytest.mark.parametrize(
    ("path", "asked", "code"),
    [
        ("sessions", {"colour": "red"}, "unknown_parameter"),
        ("sessions", {"status": "happy"}, "invalid_request"),
        ("sessions", {"cursor": "x"}, "invalid_request"),
        ("sessions", {"limit": "many"}, "invalid_request"),
        ("sessions", {"q": "x" * 201}, "invalid_request"),
        ("sessions", {"provider": ""}, "invalid_request"),
        ("sessions/agent", {"thoughts": "yes"}, "invalid_request"),
        ("sessions/agent", {"after": "nothing"}, "invalid_request"),
        ("sessions/agent", {"q": "x"}, "unknown_parameter"),
        ("sessions/agent/turns/agent-t1", {"limit": "1"}, "unknown_parameter"),
        ("feed", {"since": "1"}, "unknown_parameter"),
        ("feed", {"after": "-2"}, "invalid_request"),
        ("continuity", {"hours": "0"}, "invalid_request"),
        ("continuity", {"hours": "999999"}, "invalid_request"),
        ("continuity", {"day": "1"}, "unknown_parameter"),
    ],
)
def test_what_cannot_be_asked(get, path, asked, code):
    problem = get(path, answers=400, **asked)["error"]
    assert problem["code"] == code
    assert "expected" in problem["message"] or "empty" in problem["message"]


@pytest.mark.parametrize("path", ["sessions/no", "sessions/no/turns/x", "sessions/agent/turns/no"])
def test_what_is_not_there(get, path):
    assert get(path, answers=404)["error"]["code"] == "not_found"


def test_sessions_of_the_gateway_itself_are_not_listed():
    built = BuiltGateway()
    quirk = EndpointLearned(endpoint="e", dialect="chat", model="*")
    own = Session(built.inner, "thoughtline:learned")
    with built.client() as client:
        client.portal.call(own.note, quirk)
        converse(client, 1)
        assert len(ids(client.get("/api/sessions").json())) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "sessions"),
        ("GET", "sessions/agent"),
        ("DELETE", "sessions/agent"),
        ("GET", "sessions/agent/turns/agent-t1"),
        ("GET", "feed"),
        ("GET", "continuity"),
    ],
)
def test_only_for_the_administrator(method, path):
    with BuiltGateway(with_token()).client() as client:
        answer = client.request(method, f"/api/{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "admin_token_needed")
    with BuiltGateway().client(peer="203.0.113.9", host="gateway.test") as client:
        assert client.request(method, f"/api/{path}").status_code == 403


def test_a_store_that_is_down_says_so():
    class Down(MemoryStore):
        async def search(self, which, **more):
            raise Unavailable("the disk is gone")

        async def history(self, types, **more):
            raise Unavailable("the disk is gone")

        async def turn_counts(self, **asked):
            raise Unavailable("the disk is gone")

    with BuiltGateway(store=Down()).client() as client:
        for path in ("sessions", "feed", "continuity"):
            assert client.get(f"/api/{path}").status_code == 503


# -- one session ---------------------------------------------------------------------------------


def test_turns_with_their_parts_and_durations(get):
    turns = get("sessions/agent")["turns"]
    first, second, _ = turns
    kinds = [[part["type"] for part in turn["output"]] for turn in turns]
    assert kinds == [["thought", "call"], ["thought", "text"], ["thought", "text"]]
    assert [part["type"] for part in second["input"]] == ["decision", "result"]
    assert first["reasoningDurations"] == {"part-0": 23}
    assert first["thinking"] == {"seconds": 23, "label": "Thought for 23 seconds"}
    (made,) = thoughts(first)
    assert made["duration"]["label"] == duration_text(23)
    assert (made["duration"]["state"], made["replayed"], made["text"]) == ("complete", 2, None)
    assert [t["thinking"]["label"] for t in turns[1:]] == [
        "Thought for 5 seconds",
        "Thought for 1m 5s",
    ]


def test_the_tree(get):
    page = get("sessions/branches")
    assert page["branches"] == {"branches-t1": ["branches-t2", "branches-t3"]}
    assert page["heads"] == ["branches-t2", "branches-t4"]
    assert page["turns"][0]["parent"] is None
    fork = get("sessions/fork")
    assert fork["forkedFrom"] == {"session": "agent", "turn": "agent-t2"}
    assert fork["turns"][0]["parent"] == "agent-t2"


def test_every_kind_of_time(get):
    two, sealed, whole, at_once = get("sessions/thoughts")["turns"]
    assert two["reasoningDurations"] == {"part-0": 5, "part-2": 9}
    assert two["thinking"]["label"] == "Thought for 14 seconds"
    (rs,) = thoughts(sealed)
    assert (rs["key"], rs["sealed"], rs["bytes"], rs["quarantined"]) == ("rs_1", True, 3102, True)
    assert sealed["reasoningDurations"] == {"rs_1": 12}
    (with_all,) = thoughts(whole)
    assert with_all["duration"] == {
        "state": "complete",
        "seconds": 1,
        "label": "Thought for 1 second (since the request)",
        "startedAt": None,
        "buffered": True,
    }
    assert whole["timeline"] == []
    (buffered,) = thoughts(at_once)
    assert buffered["duration"]["buffered"] is True
    assert buffered["duration"]["label"] == "Thought for 9 seconds (since the request)"
    aborted = get("sessions/aborted")["turns"][0]
    assert (aborted["outcome"], aborted["reason"]) == ("aborted", "the client left")
    assert thoughts(aborted)[0]["duration"]["state"] == "aborted"
    assert aborted["thinking"]["label"] == "Stopped thinking after 5 seconds"


def test_a_turn_that_runs_in_another_process(get):
    (turn,) = get("sessions/unfinished")["turns"]
    assert (turn["running"], turn["outcome"], turn["ended"]) == (True, None, None)
    assert turn["elsewhere"] is True


def test_what_is_shown_is_kept_nowhere():
    with BuiltGateway().client() as client:
        headers = client.get("/api/sessions").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_hostile_text_is_only_text(get):
    first, second = get("sessions/hostile", thoughts=1)["turns"]
    assert first["input"] == [{"type": "text", "text": HOSTILE}]
    assert first["output"][0]["text"] == HOSTILE
    assert first["output"][2] == {
        "type": "call",
        "id": "c",
        "name": HOSTILE,
        "arguments": HOSTILE,
    }
    assert second["input"][0]["content"] == HOSTILE


# -- thoughts ------------------------------------------------------------------------------------


def test_thoughts_are_shown_when_asked_for_and_each_look_is_logged():
    store = MemoryStore()
    asyncio.run(fill(store))
    built = BuiltGateway(store=store)
    with built.client() as client:
        for path in ("sessions", "sessions/agent", "sessions/agent/turns/agent-t2", "continuity"):
            assert "I must read it first" not in client.get(f"/api/{path}").text
        assert built.events("thoughts_shown") == []
        page = client.get("/api/sessions/agent?thoughts=1").json()
        assert thoughts(page["turns"][0])[0]["text"] == "I must read it first."
        turn = client.get("/api/sessions/agent/turns/agent-t2?thoughts=1").json()
        assert turn["request"]["messages"][0]["added"][0]["text"] == "I must read it first."
    looks = built.events("thoughts_shown")
    assert [(look["peer"], look["session"]) for look in looks] == [("127.0.0.1", "agent")] * 2
    assert looks[0]["turns"] == ["agent-t1", "agent-t2", "agent-t3"]
    assert looks[1]["turns"] == ["agent-t1", "agent-t2"]


# -- deleting ------------------------------------------------------------------------------------


def test_deleting_a_session():
    store = MemoryStore()
    asyncio.run(fill(store))
    built = BuiltGateway(store=store)
    with built.client() as client:
        refused = client.delete("/api/sessions/agent")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_in_use")
        assert client.delete("/api/sessions/fork").json() == {"deleted": 1}
        assert client.delete("/api/sessions/agent").json() == {"deleted": 1}
        assert client.get("/api/sessions/agent").status_code == 404
        assert client.delete("/api/sessions/agent").status_code == 404
        assert client.delete("/api/sessions/failed?force=1").status_code == 400
        left = set(ids(client.get("/api/sessions").json()))
    assert {"agent", "fork"} & left == set()
    assert "failed" in left
    assert [line["session"] for line in built.events("purged")] == ["fork", "agent"]


# -- much of it ----------------------------------------------------------------------------------


def test_decisions_are_cut_short_in_a_session_and_complete_in_a_turn():
    from inspector.sample_sessions import decision
    from thoughtline.log.decisions import Action

    built = BuiltGateway()
    with built.client() as client:
        session = Session(built.inner, "s")
        decisions = [decision(n, Action.EXACT, entry=f"m{n}", thoughts=1) for n in range(50)]

        async def write():
            await session.turn("Hello", "Hi", decisions=decisions)

        client.portal.call(write)
        replay = client.get("/api/sessions/s").json()["turns"][0]["replay"]
        assert (len(replay["rulings"]), replay["more"], replay["exact"]) == (20, 30, 50)
        assert replay["rulings"][-1]["position"] == 49
        whole = client.get("/api/sessions/s/turns/s-t1").json()["turn"]["replay"]
        assert (len(whole["rulings"]), whole["more"]) == (50, 0)
