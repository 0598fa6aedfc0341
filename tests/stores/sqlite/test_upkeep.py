"""Long work is done in slices, and others get their turn in between."""

import asyncio

from stores.samples import notes, turn
from support.sqlite_files import look
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.sqlite import SqliteStore, purge


async def test_appends_are_written_between_two_slices(store):
    for number in range(600):
        await store.append(turn(f"s{number}", f"t{number}", '"hm"'))
    order, appending = [], []

    async def append():
        await store.append(notes("new"))
        order.append("appended")

    def told(done, _):
        if not order:
            appending.append(asyncio.ensure_future(append()))
        order.append(done)

    await store.forget(ALL_ENTRIES, progress=told)
    await appending[0]
    assert "appended" in order[1:-1]


async def test_a_long_session_is_gone_at_once_and_taken_apart_later(store, tmp_path, monkeypatch):
    monkeypatch.setattr(purge, "MAX_EVENTS", 10)
    await store.append(notes("long", 95))
    await store.append(turn("long", "t1", '"hm"', keys=[b"n" * 16]))
    await store.append(notes("short", 3))
    removed = await store._writer.run(
        lambda db: purge.remove(
            db,
            purge.list_sessions(db, CONDITIONS),
            CONDITIONS,
        )
    )
    assert len(removed) == 1
    assert await store.read("long") == []  # and now the process ends
    await store.append(notes("long", 2))  # its id is free
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    assert await again.purge(session="nobody") == 0
    assert look(tmp_path / "store.db", "SELECT sum(count) FROM batches") == [(5,)]
    assert look(tmp_path / "store.db", "SELECT count(*) FROM lookup_keys") == [(0,)]
    assert {s.session for s in await again.sessions()} == {"long", "short"}
    await again.close()


CONDITIONS = purge.PurgeFilter(session="long", tenant=None, untouched_since=None)
