"""Several nodes on one database: secrets, leases, turns under way."""

import pytest

from stores.samples import notes
from thoughtline.errors import SecretMismatch
from thoughtline.stores.postgres import PostgresStore


async def test_a_node_with_another_secret_is_refused(database):
    one, same, another = (PostgresStore(database, fingerprint=mark) for mark in (b"1", b"1", b"2"))
    await one.append(notes("s"))
    assert len(await same.read("s")) == 1
    with pytest.raises(SecretMismatch, match=r"store\.secret"):
        await another.append(notes("s"))
    assert len(await one.read("s")) == 1
    for store in (one, same, another):
        await store.close()


async def test_a_job_is_done_by_one_node_until_it_is_gone(store, other):
    assert await store.lease("sweep", 3600)
    assert not await other.lease("sweep", 3600)
    assert await other.lease("another job", 3600)
    assert await store.lease("sweep", 0.0)  # and it renews its own
    assert await other.lease("sweep", 3600)
    assert not await store.lease("sweep", 3600)


async def test_turns_under_way_are_shown_while_somebody_looks(store, other, db):
    assert not await store.show_running("a", b"turns of a")
    assert await other.look_at_running("b") == {}
    assert await store.show_running("a", b"turns of a")
    assert await other.look_at_running("b") == {"a": b"turns of a"}
    assert await store.look_at_running("a") == {}
    await db.execute("UPDATE running SET seen = seen - interval '1 hour'")
    assert await other.look_at_running("b") == {}
    assert await db.fetchval("SELECT count(*) FROM running") == 0
