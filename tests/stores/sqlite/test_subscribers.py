"""A live feed outlasts trouble with the file."""

import asyncio

from stores.samples import notes, watching
from support.waiting import patiently
from thoughtline.errors import Unavailable
from thoughtline.stores.sqlite import SqliteStore


async def test_a_live_feed_outlasts_a_lock_and_a_missing_file(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path, poll=0.01)
    failed, page = asyncio.Event(), store._read

    async def read(query):
        try:
            return await page(query)
        except Unavailable:
            failed.set()
            raise

    store._read = read
    await store.append(notes("s"))
    async with watching(store.watch("s")) as watcher:
        await watcher.has(1)
        aside = tmp_path / "aside"
        path.rename(aside)
        await failed.wait()
        aside.rename(path)
        await patiently(lambda: store.append(notes("s")))
        await watcher.has(2)
    await store.close()
