"""The store in a SQLite file passes the contract, and serves one event loop after another."""

import asyncio
import threading

from stores.contract import KeepingContract
from stores.samples import notes
from thoughtline.stores.sqlite import SqliteStore


class TestSqliteStore(KeepingContract):
    def open(self, place, clock):
        return SqliteStore(place, clock=clock, poll=0.02)


def test_a_store_serves_one_event_loop_after_another(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    for n in range(3):
        assert asyncio.run(store.append(notes("s"))) == n
    asyncio.run(store.close())


async def test_closing_leaves_one_file_and_no_thread(store, tmp_path):
    before = set(threading.enumerate())
    await store.append(notes("s"))
    await store.read("s")
    await store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
    new = set(threading.enumerate()) - before
    assert not [thread for thread in new if thread.name.startswith("thoughtline")]
