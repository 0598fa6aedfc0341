"""Sessions are read in outline and turn by turn; outlines are cached, and what was said is not."""

import asyncio

import pytest

from inspector.sample_sessions import Session, long, thought
from support.built_gateway import BuiltGateway, converse
from thoughtline.inspector import sessions
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore


def test_erased_thoughts_are_not_shown_from_memory():
    built = BuiltGateway()
    with built.client() as client:
        converse(client, 2)
        (session,) = client.get("/api/sessions").json()["sessions"]
        path = f"/api/sessions/{session['id']}?thoughts=1"
        assert all(first_thought(t)["text"] for t in client.get(path).json()["turns"])
        client.delete("/api/cache/reasoning")
        assert all(first_thought(t)["text"] for t in client.get(path).json()["turns"])
        client.delete("/api/log/reasoning?confirm=erase")
        assert not any(first_thought(t)["text"] for t in client.get(path).json()["turns"])


def first_thought(turn):
    return next(part for part in turn["output"] if part["type"] == "thought")


def test_an_id_that_is_used_again_is_another_session():
    built = BuiltGateway()
    with built.client() as client:
        first = Session(built.inner, "s")
        client.portal.call(first.turn, "Hello", thought(), "Hi")
        assert client.get("/api/sessions/s").json()["session"]["title"] == "Hello"
        client.delete("/api/sessions/s")
        again = Session(built.inner, "s")
        client.portal.call(again.turn, "Goodbye", thought(), "Bye")
        page = client.get("/api/sessions/s").json()
        assert (page["session"]["title"], len(page["turns"])) == ("Goodbye", 1)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_long_session_in_pages(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(sessions, "PAGE", 70)

    async def written(store):
        await long(store, 450)
        if kind == "sqlite":
            await store.close()

    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db")
    asyncio.run(written(store))
    store = store if kind == "memory" else SqliteStore(tmp_path / "a.db")
    seen, after = [], {}
    with BuiltGateway(store=store).client() as client:
        while True:
            page = client.get("/api/sessions/long", params={"limit": 200, **after}).json()
            assert page["session"]["turns"] == 450
            seen += [(turn["id"], turn["input"][0]["text"]) for turn in page["turns"]]
            if page["nextAfter"] is None:
                break
            after = {"after": page["nextAfter"]}
        assert seen == [(f"long-t{n + 1}", f"Step {n}") for n in range(450)]
        assert page["heads"] == ["long-t450"]
        last = client.get("/api/sessions/long/turns/long-t450").json()
    assert [m["turn"] for m in last["request"]["messages"][:-1]] == [
        "long-t447",
        "long-t448",
        "long-t449",
    ]
