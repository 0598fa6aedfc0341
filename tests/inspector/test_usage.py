"""What was used since a time."""

import asyncio
import time

import pytest

from inspector.sample_sessions import fill
from support.built_gateway import BuiltGateway, converse
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore


def test_since_a_time_and_by_model():
    store = MemoryStore()
    asyncio.run(fill(store, time.time() - 3600))
    with BuiltGateway(store=store).client() as client:
        used = client.get("/api/usage").json()
        assert used["total"]["turns"] == 18
        assert used["total"]["input"] == sum(one["input"] for one in used["models"])
        assert used["thoughts"]["missed"] == 1
        assert (used["failed"], used["running"]) == (1, 0)
        assert used["pricesDate"] and used["pricesSource"]
        assert client.get(f"/api/usage?since={int(time.time())}").json()["total"]["turns"] == 0
        early = client.get("/api/usage?since=0").json()
        assert early["total"]["turns"] == 18
        assert client.get("/api/usage?since=soon").status_code == 400


@pytest.mark.parametrize("exchanges", [2, 3, 12])
def test_a_thought_counts_once_however_many_requests_put_it_back(tmp_path, exchanges):
    built = BuiltGateway(store=SqliteStore(tmp_path / "store.db"))
    with built.client() as client:
        converse(client, exchanges)
        assert client.get("/api/usage").json()["thoughts"]["restored"] == exchanges - 1
        [session] = client.get("/api/sessions").json()["sessions"]
        assert (session["turns"], session["restored"]) == (exchanges, exchanges - 1)
        whole = client.get("/api/continuity").json()["total"]
        assert whole["new"]["restored"] == exchanges - 1
        assert whole["restored"] == exchanges * (exchanges - 1) // 2
