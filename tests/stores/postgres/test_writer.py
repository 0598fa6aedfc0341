"""Groups of batches: one call, no deadlock, and nothing twice when an answer is lost."""

import asyncio
import random

import pytest
from msgspec.structs import replace

from stores.postgres.conftest import waiting
from stores.samples import appended, notes, turn
from support.waiting import eventually, patiently
from thoughtline.errors import Conflict, StoreError, Unavailable
from thoughtline.stores.postgres import PostgresStore, writer
from thoughtline.stores.postgres.rows import pack

A = b"a" * 16
_KILL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def count_calls(store):
    calls = []
    write = store._connections.write

    async def counted(statement, *args, **options):
        calls.append(statement)
        return await write(statement, *args, **options)

    store._connections.write = counted
    return calls


async def test_what_waits_is_written_in_one_call(store):
    await store.append(notes("s"))
    calls = count_calls(store)
    await asyncio.gather(
        *(store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[A])) for n in range(50))
    )
    assert len(calls) <= 2
    assert len((await store.find("T", [A]))[A]) == 32


async def test_a_group_is_limited(store, monkeypatch):
    monkeypatch.setattr(writer, "MAX_BATCHES", 4)
    await store.append(notes("s"))
    calls = count_calls(store)
    await asyncio.gather(*(store.append(notes(f"s{n}")) for n in range(12)))
    assert len(calls) == 3


async def test_one_that_conflicts_does_not_hold_up_the_others(store):
    await store.append(notes("taken", tenant="B"))
    outcomes = await asyncio.gather(
        store.append(notes("a")),
        store.append(notes("taken")),
        store.append(notes("b", expect=7)),
        store.append(notes("c", 2)),
        return_exceptions=True,
    )
    assert [isinstance(o, Conflict) for o in outcomes] == [False, True, True, False]


async def test_one_that_the_database_does_not_take_does_not_hold_up_the_others(store):
    big = replace(notes("big"), drafts=tuple(replace(d, version=1) for d in notes("big").drafts))
    bad = pack(big)
    bad.rows[0] = (*bad.rows[0][:2], 1 << 40, *bad.rows[0][3:])  # no int4
    outcomes = await asyncio.gather(
        store.append(notes("a")),
        store._writer.append(bad),
        store.append(notes("b")),
        return_exceptions=True,
    )
    assert [isinstance(o, StoreError) for o in outcomes] == [False, True, False]


async def test_who_stops_waiting_has_its_batch_written_all_the_same(store, db):
    await store.append(notes("s"))
    async with db.transaction():
        await db.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
        first = asyncio.create_task(store._writer.append(pack(notes("a"))))
        await waiting(db, 1)  # it is being written
        others = [asyncio.create_task(store._writer.append(pack(notes(s)))) for s in "bcd"]
        await asyncio.sleep(0)  # they wait
        first.cancel()
        others[1].cancel()
        flushing = asyncio.create_task(store._writer.flush())
    assert await others[0] == await others[2] == -1
    await flushing
    assert [len(await store.read(session)) for session in "abcd"] == [1, 1, 1, 1]


_TURN = turn("s", "t1", '"x"', keys=[A])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (notes("s"), notes("s"), False),
        (_TURN, turn("s", "t2", '"x"', keys=[A]), False),
        (notes("s", id="i"), notes("s", id="i"), True),
        (notes("s"), notes("s", tenant="U"), True),
        (notes("s", expect=0), notes("s"), True),
        (notes("s"), notes("s", expect=0), True),
        (replace(_TURN, drafts=()), replace(_TURN, drafts=()), True),
        (replace(_TURN, index=()), replace(_TURN, drafts=()), True),  # thoughts change an entry
    ],
)
def test_which_batches_of_a_session_cannot_be_judged_together(one, other, expected):
    assert writer.depends(pack(other), [pack(notes("s")), pack(one)]) is expected


async def test_batches_that_depend_on_one_another_are_judged_one_after_the_other(store):
    await store.find("T", [A])  # its epoch is known: they come together
    outcomes = await asyncio.gather(
        *(store.append(notes("s", id="i")) for _ in range(2)),
        *(store.append(notes("s", expect=0)) for _ in range(2)),
        *(store.append(replace(_TURN, session="s")) for _ in range(2)),
        return_exceptions=True,
    )
    assert [isinstance(o, Conflict) for o in outcomes] == [False, False, False, True, False, False]
    assert [e.seq for e in await store.read("s")] == list(range(8))
    assert [entry.turn for entry in (await store.find("T", [A]))[A]] == ["t1"]


async def test_groups_in_opposite_order_do_not_deadlock(database):
    stores = [PostgresStore(database) for _ in range(4)]
    rng = random.Random(7)
    sessions = [f"s{n}" for n in range(12)]

    async def work(store):
        for _ in range(10):
            some = rng.sample(sessions, 8)
            await asyncio.gather(*(store.append(notes(session)) for session in some))

    await asyncio.gather(*map(work, stores))
    assert (await stores[0].stats()).events == 4 * 10 * 8
    for session in sessions:
        seqs = [event.seq for event in await stores[1].read(session)]
        assert seqs == list(range(len(seqs)))
    for store in stores:
        await store.close()


async def test_a_batch_whose_answer_was_lost_is_written_once(store, db):
    """The connection is cut between the commit and its answer."""
    await store.append(notes("s"))
    run = store._connections._run
    lost = []

    async def swallow(slot, statement, args, limit):
        answer = await run(slot, statement, args, limit)
        if statement == writer.APPEND and len(lost) < 2:
            lost.append(answer)
            store._connections._drop(slot)
            raise Unavailable("the answer is lost")
        return answer

    store._connections._run = swallow
    batch = replace(turn("s", "t1", '"one"', keys=[A]), id="t1")
    assert [e.seq for e in await appended(store, batch)] == [1, 2, 3]
    assert len(lost) == 2 and len(await store.read("s")) == 4
    assert len((await store.find("T", [A]))[A]) == 1


async def test_backends_that_are_killed_lose_and_double_nothing(database, db):
    stores = [PostgresStore(database) for _ in range(2)]
    written = []

    async def work(store, name):
        for n in range(40):
            batch = replace(
                turn(f"{name}{n % 5}", f"{name}.t{n}", '"x"', keys=[A]), id=f"{name}.t{n}"
            )
            await patiently(lambda batch=batch: store.append(batch))
            written.append(batch.id)

    async def kill():
        for count in range(10, 70, 10):
            await eventually(lambda count=count: len(written) >= count)
            await db.fetch(_KILL)

    await asyncio.gather(*(work(s, name) for s, name in zip(stores, "ab", strict=True)), kill())
    ids = [row[0].decode() for row in await db.fetch("SELECT id FROM batches")]
    assert sorted(ids) == sorted(written)
    for session in [f"{name}{n}" for name in "ab" for n in range(5)]:
        rows = await db.fetch(
            "SELECT first, count FROM batches WHERE session = $1 ORDER BY first", session.encode()
        )
        assert [row["first"] for row in rows] == [3 * n for n in range(8)]
    for store in stores:
        await store.close()
