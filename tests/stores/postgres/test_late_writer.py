"""What was deleted while a batch waited on some node is not written with it."""

import asyncio

from msgspec.structs import replace

from stores.contract import sent_back
from stores.samples import appended, notes, turn
from thoughtline.errors import Unavailable
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter

A = b"a" * 16


def late(session, id, clock, *, tenant="T"):
    """A turn that waits since now."""
    return replace(turn(session, id, '"x"', keys=[A], tenant=tenant), id=id, held=clock.now)


async def test_a_batch_that_waited_is_written(store, clock):
    await store.forget(ALL_ENTRIES)
    clock.now += 10
    batch = late("s", "t1", clock)
    clock.now += 100
    assert [e.seq for e in await appended(store, batch)] == [0, 1, 2]
    assert await sent_back(store, A) == {"t1": ['"x"']}


async def test_what_was_forgotten_or_erased_elsewhere_meanwhile(store, other, clock):
    batches = [late("s", "t1", clock), late("z", "t2", clock), late("y", "t3", clock, tenant="B")]
    clock.now += 5
    await other.forget(EntryFilter(session="s"))
    await other.erase(EntryFilter(tenant="T", session="z"))
    clock.now += 5
    for batch in batches:
        await store.append(batch)
    assert await sent_back(store, A) == {"t1": [], "t2": []}
    assert '"x"' not in str([e.data for e in await store.read("z")])
    assert await sent_back(store, A, "B") == {"t3": ['"x"']}


async def test_what_was_purged_elsewhere_meanwhile_does_not_come_back(store, other, clock):
    one, two = late("s", "t1", clock), late("z", "t2", clock)
    clock.now += 5
    await other.purge(session="s")
    for batch in (one, two):
        await store.append(batch)
    assert await store.read("s") == []
    assert await sent_back(store, A) == {"t2": ['"x"']}
    await store.append(notes("s", expect=-1))  # a new one of that name may come


async def test_a_deletion_between_the_look_and_the_writing(store, other, clock):
    batch = late("s", "t1", clock)
    since = store._deletions.since
    seen = []

    async def slow(*args):
        found = await since(*args)
        if not seen:
            await other.forget(EntryFilter(tenant="T"))
        seen.append(found)
        return found

    store._deletions.since = slow
    await store.append(batch)
    assert len(seen) == 2
    assert await sent_back(store, A) == {"t1": []}


async def test_a_tenant_that_cannot_be_asked_about_does_not_stop_the_others(store):
    """After a failover, what was written lately is said again, tenant by tenant."""
    for tenant in ("T", "U"):
        await store.append(turn(f"s{tenant}", f"t{tenant}", '"x"', keys=[A], tenant=tenant))
    since, said = store._deletions.since, []

    async def failing(tenant, began):
        if tenant == "T":
            raise Unavailable("the server does not answer")
        return await since(tenant, began)

    append = store._writer.append

    async def noting(packed):
        said.append(packed.batch.tenant)
        return await append(packed)

    store._deletions.since, store._writer.append = failing, noting
    store._late._patience = 0.05
    store._late.resend()
    await asyncio.wait({store._late.resending})
    assert said == ["U"]
    store._deletions.since = since
