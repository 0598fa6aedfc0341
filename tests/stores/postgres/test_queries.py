"""Feeds: in the order of writing, and nothing is skipped."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from stores.postgres.conftest import Connected
from stores.samples import notes
from support.waiting import eventually
from thoughtline.stores.postgres import queries
from thoughtline.stores.postgres.queries import LogPlace, place

numbers = st.integers(0, (1 << 63) - 1)


@given(st.integers(0, 1 << 31), numbers, numbers, st.integers(0, (1 << 24) - 1))
def test_a_position_is_one_number_and_keeps_its_order(era, xid, filed, events):
    here = LogPlace(era, xid, filed, events)
    assert place(here.number()) == here
    assert here.number() < here._replace(era=era + 1, xid=0, filed=0, events=0).number()
    assert here.number() < here._replace(xid=xid + 1, filed=0, events=0).number()


async def test_a_feed_waits_for_a_long_transaction_and_skips_nothing(
    store, other, database, monkeypatch
):
    await store.append(notes("before"))
    await eventually(lambda: history(store, 0))
    start = (await store.history(())).position
    monkeypatch.setattr(queries, "OWN_WAIT", 0.0)
    async with Connected(database) as slow:
        transaction = slow.transaction()
        await transaction.start()
        await slow.execute("SELECT pg_current_xact_id()")
        await other.append(notes("later"))
        assert await history(store, start) == []
        assert len(await store.read("later")) == 1  # it is there: only the feed waits
        await transaction.rollback()
    assert await eventually(lambda: history(store, start)) == ["later"]


async def history(store, after):
    return [event.session for event in (await store.history(None, after=after)).events]


async def test_a_watch_of_another_node_sees_everything_in_the_order_of_each_session(store, other):
    seen = []

    async def look():
        async for event in other.watch():
            seen.append((event.session, event.seq))  # noqa: PERF401 - while it runs

    looking = asyncio.create_task(look())

    async def looks():
        await other.append(notes("first"))
        return seen

    await eventually(looks)
    await asyncio.gather(
        *(s.append(notes(f"s{n % 5}", 2)) for n in range(30) for s in (store, other))
    )
    await eventually(lambda: sum(session != "first" for session, _ in seen) >= 120)
    for n in range(5):
        assert [seq for session, seq in seen if session == f"s{n}"] == list(range(24))
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_a_new_era_comes_after_all_of_the_old_one(store, db):
    await store.append(notes("old"))
    end = (await store.history(())).position
    await db.execute("UPDATE home SET era = era + 1")
    await db.execute(
        "UPDATE batches SET xid = '9223372036854775807'"
    )  # a far future that is no more
    await store.append(notes("new"))

    async def both():
        found = await history(store, end)
        return found if "new" in found else []

    assert await eventually(both) == ["old", "new"]
    assert (await store.history(())).position > end
