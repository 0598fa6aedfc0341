"""What was used since a time."""

import asyncio
import time

from inspector.sample_sessions import fill
from support.built_gateway import BuiltGateway
from thoughtline.stores.memory import MemoryStore


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
