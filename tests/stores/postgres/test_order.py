"""Who looks waits for those who are about to commit, and nobody waits for each other."""

import asyncio
from contextlib import asynccontextmanager

import asyncpg
import pytest

from stores.contract import A, B
from stores.postgres.conftest import waiting
from stores.samples import turn
from stores.sealed_samples import ONE, canaries, keychain
from thoughtline.errors import StoreError
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.postgres.writer import APPEND
from thoughtline.stores.sealing.administration import re_encrypt
from thoughtline.stores.sealing.ring import KeyRing

RAISE = "SELECT raise_epoch(ARRAY[$1::bytea])"


@asynccontextmanager
async def connected(url, count):
    connections = [await asyncpg.connect(url) for _ in range(count)]
    yield connections
    for connection in connections:
        await connection.close()


async def test_of_those_who_wait_the_last_has_the_highest_epoch(database, db):
    async with connected(database, 4) as (first, *others):
        for _ in range(10):
            async with first.transaction():
                await first.execute(RAISE, b"T")
                raising = [asyncio.ensure_future(one.execute(RAISE, b"T")) for one in others]
                await waiting(db, 3)
            await asyncio.gather(*raising)
            epoch = await db.fetchval("SELECT epoch FROM tenants WHERE tenant = 'T'")
            assert epoch == await db.fetchval("SELECT last_value FROM filings")


@pytest.mark.parametrize(("one", "other"), [(b"T", b""), (b"", b"T")])
async def test_the_highest_epoch_is_not_seen_before_a_lower_one(database, db, one, other):
    async with connected(database, 2) as (first, second):
        async with first.transaction():
            await first.execute(RAISE, one)
            raising = asyncio.ensure_future(second.execute(RAISE, other))
            await waiting(db, 1)
        await raising
        epochs = {row["tenant"]: row["epoch"] for row in await db.fetch("SELECT * FROM tenants")}
        assert epochs[one] < epochs[other]


class SlowCommit:
    """The next append of a node is executed, and its commit waits."""

    def __init__(self, store, url):
        self.executed, self.committed = asyncio.Event(), asyncio.Event()
        write = store._connections.write

        async def slow(statement, *args, **options):
            if statement != APPEND or self.executed.is_set():
                return await write(statement, *args, **options)
            async with connected(url, 1) as (connection,), connection.transaction():
                found = await connection.fetch(statement, *args)
                if set(found[0]["verdicts"]) == {"n"}:
                    self.executed.set()
                    await self.committed.wait()
                return found

        store._connections.write = slow

    async def during(self, db, writing, work):
        """Do other work while the commit waits, and let it go on when the work waits, too."""
        writing = asyncio.ensure_future(writing)
        await self.executed.wait()
        working = asyncio.ensure_future(work)
        await waiting(db, 1)
        self.committed.set()
        await asyncio.gather(writing, working)


async def test_sealing_does_not_end_while_a_plain_turn_is_committed(nodes, database, db):
    plain, admin = nodes(keychain(seals=False)), nodes(keychain())
    await admin.append(canaries("a", "t0", key=B))
    await plain.append(canaries("b", "t1", key=B))
    late = canaries("s", "t2", key=A, tenant="U")
    ring = KeyRing([ONE])
    await SlowCommit(plain, database).during(db, plain.append(late), re_encrypt(admin.vault, ring))
    assert (await admin.vault.seal_state()).plain
    assert A in await nodes(keychain()).find("U", [A])


async def test_keys_are_not_deleted_while_a_sealed_turn_is_committed(nodes, database, db):
    sealing, admin = nodes(keychain()), nodes(keychain(seals=False))
    await sealing.append(canaries("a", "t0", key=B))
    late, opening = canaries("s", "t2", key=A), admin.vault.reseal(plain=True)
    await SlowCommit(sealing, database).during(db, sealing.append(late), opening)
    fresh = nodes(keychain())
    assert len(await fresh.read("s")) == 4
    assert A in await fresh.find("T", [A])


async def test_the_first_key_waits_for_a_node_without_keys(nodes, database, db):
    old, new = nodes(None), nodes(keychain())
    late, first = canaries("s", "t2", key=A), turn("o", "t9", '"x"', tenant="U", keys=(B,))
    await SlowCommit(old, database).during(db, old.append(late), new.append(first))
    assert (await new.vault.seal_state()).plain
    assert A in await nodes(keychain()).find("T", [A])


async def test_who_erases_and_who_deletes_do_not_wait_for_each_other(nodes, db):
    one, two = nodes(None), nodes(None)
    await one.append(turn("s", "t1", '"a"', keys=(A,)))
    await one.append(turn("s", "t2", '"b"', keys=(B,)))
    async with db.transaction():  # as whoever seals it again
        await db.execute(
            "SELECT FROM batches WHERE session = 's' ORDER BY first DESC LIMIT 1 FOR UPDATE"
        )
        erasing = asyncio.ensure_future(one.erase(EntryFilter(tenant="T")))
        await waiting(db, 1)
        deleting = asyncio.ensure_future(two.purge(session="s"))
        await waiting(db, 2)
    assert await asyncio.gather(erasing, deleting) == [2, 1]


async def test_a_database_in_which_nodes_would_not_see_each_other_is_refused(nodes, db):
    name = await db.fetchval("SELECT current_database()")
    await db.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    try:
        with pytest.raises(StoreError, match="set `default_transaction_isolation`"):
            await nodes(None).find("T", [A])
    finally:
        await db.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")
