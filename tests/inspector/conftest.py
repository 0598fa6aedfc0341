"""A client of the inspector's API over a store that is filled with sample sessions."""

import asyncio

import pytest

from inspector.sample_sessions import fill
from support.built_gateway import BuiltGateway
from thoughtline.stores.memory import MemoryStore


@pytest.fixture(scope="module")
def get():
    store = MemoryStore()
    asyncio.run(fill(store))
    with BuiltGateway(store=store).client() as client:

        def ask(path, answers=200, **asked):
            answer = client.get(f"/api/{path}", params=asked)
            assert answer.status_code == answers, answer.text
            return answer.json()

        yield ask
