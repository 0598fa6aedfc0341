"""The writer outlives every error."""

import asyncio

import pytest

from stores.samples import StillClock, notes, plain, turn
from support.sqlite_files import NAME, check, held
from thoughtline.errors import Corrupt, StoreError, Unavailable
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import SqliteStore


async def test_the_writer_outlives_every_error(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    bad = [
        Batch(session="s", tenant="T", drafts=(plain(version=2**70),)),
        Batch(session="s", tenant="T", drafts=(plain(id="\ud800"),)),
        Batch(session="s", tenant="T", drafts=(plain(type=None),)),
        Batch(session=None, tenant="T", drafts=(plain(),)),
        Batch(session="s", tenant="T", drafts=(None,)),
    ]
    good = [notes(f"good{n}", 2) for n in range(5)]
    mixed = [batch for pair in zip(bad, good, strict=True) for batch in pair]
    outcomes = await asyncio.gather(*map(store.append, mixed), return_exceptions=True)
    assert [isinstance(o, StoreError) for o in outcomes] == [True, False] * 5
    assert not any(isinstance(o, Unavailable | Corrupt) for o in outcomes)
    for batch in bad:
        with pytest.raises(StoreError):
            await store.append(batch)
    with pytest.raises(StoreError):
        await store._writer.run(lambda db: 1 / 0)
    await check(store, [])
    await store.close()


async def test_hits_that_cannot_be_written_wait(tmp_path):
    path = tmp_path / "store.db"
    clock = StillClock()
    store = SqliteStore(path, timeout=0.05, clock=clock)
    await store.append(turn("s", "t1", keys=[NAME]))
    clock.now += 9
    store.touch(["s"])
    with held(path):
        assert [s.touched for s in await store.sessions()] == [1000.0]
    assert [s.touched for s in await store.sessions()] == [1009.0]
    await store.close()
