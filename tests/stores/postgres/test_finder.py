"""Look-ups: what they tell beside the entries, and after a deletion or a failover."""

from msgspec.structs import replace

from stores.samples import notes, turn
from support.waiting import eventually
from thoughtline.engine.quirks import SESSION
from thoughtline.stores.postgres import finder

A = b"a" * 16


async def test_a_look_up_says_whether_an_endpoint_taught_something(store, other):
    await store.find("T", [A])
    assert store.learned == -1
    await other.append(notes(SESSION, 2, tenant=""))
    await store.find("T", [A])
    assert store.learned == 1


async def test_a_deletion_elsewhere_is_a_change(store, other):
    await store.append(turn("s", "t1", '"x"', keys=[A]))
    await store.find("T", [A])
    before, certain = store.changes()
    assert not certain  # an answer is never kept: somebody may just have written
    await other.purge(session="s")
    await store.find("T", [A])
    assert store.changes()[0] > before
    assert len(store._finder._bodies) == 0


async def test_what_a_failover_lost_is_said_again(store, db, monkeypatch):
    """A standby that was a little behind takes over: the last turns are not in it."""
    monkeypatch.setattr(finder, "SETTLING", 0.05)
    for n in range(3):
        await store.append(replace(turn("s", f"t{n}", '"x"', keys=[A]), id=f"t{n}"))
    await store.find("T", [A])
    await db.execute("DELETE FROM batches WHERE id <> 't0'")
    await db.execute("DELETE FROM names WHERE entry IN (SELECT id FROM entries WHERE turn <> 't0')")
    await db.execute("DELETE FROM entries WHERE turn <> 't0'")
    await db.execute("UPDATE sessions SET last = 2, turns = 1")
    await db.execute("UPDATE home SET timeline = timeline - 1")  # as if it had been another
    store._connections._drop(store._connections._writer)
    for slot in store._connections._slots:
        store._connections._drop(slot)
    assert [e.turn for e in (await store.find("T", [A]))[A]] != []  # it has seen the new era

    async def all_of_it():
        return len(await store.read("s")) == 9

    await eventually(all_of_it)
    assert [e.turn for e in (await store.find("T", [A]))[A]] == ["t2", "t1", "t0"]
    assert [e.seq for e in await store.read("s")] == list(range(9))
    assert store._finder.era == 2
