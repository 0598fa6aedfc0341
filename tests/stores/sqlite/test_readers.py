"""Readers notice that the file is another one."""

import asyncio

import pytest

from stores.samples import appended, notes
from support.waiting import patiently
from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.sqlite import SqliteStore


async def test_a_file_that_was_removed_is_noticed_by_readers(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.append(notes("s", 3))
    await store.read("s")
    for file in tmp_path.iterdir():
        file.unlink()
    for _ in range(3):
        with pytest.raises(Unavailable, match="removed or replaced"):
            await store.read("s")
    assert not path.exists()  # only who writes begins a new one
    written = await patiently(lambda: appended(store, notes("z")))
    assert await store.read("z") == written
    await store.close()


async def test_a_reader_that_runs_out_of_rows_is_an_error_and_no_hang(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    await store.append(notes("s", 1))
    with pytest.raises(StoreError):
        await asyncio.wait_for(store._read(lambda db: next(db.execute("SELECT 1 WHERE 0"))), 60)
    assert len(await store.read("s")) == 1
    await store.close()
