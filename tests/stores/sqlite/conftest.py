"""What these tests share."""

import pytest

from stores.samples import StillClock
from thoughtline.stores.sqlite import (
    SqliteStore,
)


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
async def store(tmp_path, clock):
    store = SqliteStore(tmp_path / "store.db", clock=clock)
    yield store
    await store.close()
