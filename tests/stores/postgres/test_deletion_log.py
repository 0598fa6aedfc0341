"""Deletions that nodes tell one another are noted in the database, and not for ever."""

from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.postgres import deletion_log


async def test_deletions_are_remembered_for_a_while(store, db, clock):
    await store.forget(ALL_ENTRIES)
    assert await db.fetchval("SELECT count(*) FROM gone") == 1
    clock.now += deletion_log.KEPT + 1
    await store.summarise()
    assert await db.fetchval("SELECT count(*) FROM gone") == 0
