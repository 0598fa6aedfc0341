"""Sessions that look-ups used."""

from stores.samples import turn
from thoughtline.stores.postgres import PostgresStore, hits

A = b"a" * 16


async def test_a_use_is_written_once_an_hour(database, db, monkeypatch):
    store = PostgresStore(database)
    await store.append(turn("s", "t1", keys=[A]))
    await db.execute("UPDATE sessions SET touched = touched - 4000")
    before = await db.fetchval("SELECT touched FROM sessions")
    store.touch(["s"])
    assert store._hits
    await store.sessions()
    assert await db.fetchval("SELECT touched FROM sessions") > before + 3600
    store.touch(["s"])
    assert not store._hits
    monkeypatch.setattr(hits, "MAX_NOTED", 1)
    store.touch(["z"])
    store.touch(["s"])  # it is not known any more that this was noted
    assert store._hits
    await store.close()


async def test_a_use_that_cannot_be_written_stops_nobody_who_reads(database, db, monkeypatch):
    """As on a disk that is full, or is only read."""
    monkeypatch.setattr(hits, "_TOUCH", "SELECT 1 / 0 FROM (SELECT $1::bytea[], $2::float8) AS x")
    store = PostgresStore(database)
    store.retention = 86_400.0
    await store.append(turn("s", "t1", '"hm"', keys=[A]))
    store.touch(["s"])
    for _ in range(3):
        assert A in await store.find("T", [A])
    assert store._hits
    assert len(await store.sessions()) == len((await store.search()).sessions) == 1
    assert len(await store.entries()) == 1
    await store.close()


async def test_time_is_the_databases(database, db):
    store = PostgresStore(database)
    await store.append(turn("s", "t1", keys=[A]))
    away = await db.fetchval("SELECT extract(epoch FROM now())::float8 - touched FROM sessions")
    assert abs(away) < 60
    await store.close()
