"""Groups of batches in the tables."""

import asyncio
import threading

from stores.samples import notes, plain, turn
from support.sqlite_files import NAME, look
from thoughtline.errors import Conflict, StoreError
from thoughtline.stores.base import Batch


async def test_a_group_with_a_bad_batch_is_written_without_it(store, monkeypatch):
    await store.append(notes("s"))
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(20)))
    batches = [
        notes("s", 2),
        Batch(session="\ud800", tenant="T", drafts=(plain(),)),  # no text for a database
        notes("s", expect=2),
        notes("s", expect=99),
        turn("s", "t1", keys=[NAME]),
    ]
    waiting = [asyncio.ensure_future(store.append(batch)) for batch in batches]
    await asyncio.sleep(0)
    gate.set()
    await blocked
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(o) for o in outcomes] == [list, StoreError, list, Conflict, list]
    events = await store.read("s")
    assert [e.seq for e in events] == list(range(6))
    assert outcomes[0] + outcomes[2] + outcomes[4] == events[1:]
    assert set(await store.find("T", [NAME])) == {NAME}


async def test_positions_are_never_used_twice(store, tmp_path):
    await store.append(notes("a", 3))
    await store.purge(session="a")
    await store.append(notes("b"))
    await store.close()
    assert look(tmp_path / "store.db", "SELECT position FROM batches") == [(4,)]
