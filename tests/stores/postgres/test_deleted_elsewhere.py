"""What one node deletes holds on another one at once, also for what waits there to be written."""

import asyncio

import pytest
from msgspec.structs import replace

from stores.contract import sent_back
from stores.postgres.conftest import waiting
from stores.samples import notes, turn
from support.waiting import eventually
from thoughtline.errors import Unavailable
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.postgres import PostgresStore, finder
from thoughtline.stores.postgres import writer as writing

A, B = b"a" * 16, b"b" * 16
DELETIONS = {
    "forget": lambda store: store.forget(EntryFilter(tenant="T")),
    "forget all": lambda store: store.forget(ALL_ENTRIES),
    "erase": lambda store: store.erase(EntryFilter(tenant="T")),
    "purge the session": lambda store: store.purge(session="s"),
    "purge the tenant": lambda store: store.purge(tenant="T"),
}


class Gate:
    """Holds up a node's appends on their way to the database."""

    def __init__(self, store):
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self._write = store._connections.write
        store._connections.write = self.write

    async def write(self, statement, *args, **options):
        if statement == writing.APPEND:
            self.reached.set()
            await self.open.wait()
        return await self._write(statement, *args, **options)


class Node:
    """A store with its cache, on a node of its own."""

    def __init__(self, url, folder):
        self.behind = PostgresStore(url, patience=0.0)
        self.store = CachedStore(self.behind, spill=folder / "shared", retry=60.0, timeout=60.0)
        self._append = self.behind.append

    async def refuse(self, *_):
        raise Unavailable("it is cut off")

    def cut(self, *, finds=False):
        self.behind.append = self.refuse
        if finds:
            self.behind._connections.read = self.refuse

    async def catch_up(self):
        self.behind.append = self._append
        while self.store._backlog:
            await self.store._backlog._write_first()

    async def has(self, key=A):
        """The thoughts that would be sent."""
        entries = (await self.store.find("T", [key])).get(key, ())
        return [t.raw for entry in entries for t in entry.thoughts if not t.forgotten]


@pytest.fixture
async def machines(database, tmp_path):
    made = []
    for name in "ab":
        (tmp_path / name).mkdir()
        made.append(Node(database, tmp_path / name))
    yield made
    for node in made:
        node.behind.append = node._append
        await node.store.close()


def said(session="s", id="t1", key=A):
    return replace(turn(session, id, '"hm"', keys=[key]), id=id)


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)
@pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "in the file"])
async def test_what_waits_in_a_backlog_is_not_found_any_more(machines, delete, in_memory):
    one, other = machines
    if not in_memory:
        other.store._backlog._limit = 0
    other.cut()
    with pytest.raises(Unavailable):
        await other.store.append(said())
    assert await other.has() == ['"hm"']
    await delete(one.store)
    assert await other.has() == []
    await other.catch_up()
    assert await one.has() == await other.has() == []


async def test_what_waits_is_found_while_nothing_of_it_is_deleted(machines):
    one, other = machines
    other.cut()
    for id, key in (("t1", A), ("t2", B)):
        with pytest.raises(Unavailable):
            await other.store.append(said(id, id, key))
    await one.store.forget(EntryFilter(session="t2"))
    assert (await other.has(A), await other.has(B)) == (['"hm"'], [])
    await other.catch_up()
    assert (await one.has(A), await one.has(B)) == (['"hm"'], [])


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)
@pytest.mark.parametrize("known", [True, False], ids=["known tenant", "new tenant"])
async def test_what_is_on_its_way_is_not_written_as_it_was(machines, delete, known):
    """A turn is acknowledged after a while, and still on its way when another node deletes it."""
    one, other = machines
    if known:
        await other.has()
    other.store._late_after = 0.0
    gate = Gate(other.behind)
    writing = asyncio.create_task(other.store.append(said()))
    await gate.reached.wait()
    assert await other.has() == ['"hm"']
    await delete(one.store)
    assert await other.has() == []
    gate.open.set()
    await writing
    assert await one.has() == await other.has() == []


async def test_what_is_said_after_a_deletion_is_kept(machines):
    one, other = machines
    await other.has()
    await one.store.append(said())
    await one.store.purge(session="s")
    await other.store.append(said(id="t2"))
    assert await one.has() == await other.has() == ['"hm"']


async def test_a_deletion_waits_for_what_is_just_being_committed(machines, db, monkeypatch):
    one, other = machines
    await other.has()
    transaction = db.transaction()
    await transaction.start()
    batch = said()

    async def write(statement, *args, **_):
        return await db.fetch(statement, *args)

    with monkeypatch.context() as patch:
        patch.setattr(other.behind._connections, "write", write)
        await other.store.append(batch)  # but not committed
    forgetting = asyncio.create_task(one.store.forget(ALL_ENTRIES))
    await waiting(db, 1)
    await transaction.commit()
    assert await forgetting == 1
    assert await one.has() == []


async def test_a_node_that_cannot_ask_sends_nothing_of_what_it_wrote_before(machines):
    one, other = machines
    await other.store.append(said())
    assert await other.has() == ['"hm"']
    await one.store.forget(ALL_ENTRIES)
    other.cut(finds=True)
    with pytest.raises(Unavailable):
        await other.has()


async def test_a_turn_of_a_killed_process_is_looked_through_as_well(machines, database):
    one, other = machines
    other.store._save_after = 0.001
    gate = Gate(other.behind)
    writing = asyncio.create_task(other.store.append(said()))
    await gate.reached.wait()
    spill = other.store._backlog._saver.store
    await eventually(lambda: list(spill.parent.glob("*-spill-*")))
    await one.store.forget(ALL_ENTRIES)
    writing.cancel()
    other.store._backlog._saver.close()  # as the death of the process does
    heir = Node(database, spill.parent)
    await heir.store._backlog.adopt()
    await heir.catch_up()
    assert len(await one.store.read("s")) == 3
    assert await heir.has() == await one.has() == []
    gate.open.set()
    await heir.store.close()


async def test_what_is_said_again_after_a_failover_was_not_deleted_before(
    store, other, db, monkeypatch
):
    monkeypatch.setattr(finder, "SETTLING", 0.05)
    clock = store._clock
    for session in ("s", "z"):
        await store.append(said(session, f"{session}1"))
        clock.now += 1
    await other.purge(session="s")
    clock.now += 1
    await db.execute("UPDATE home SET timeline = timeline - 1")
    for slot in store._connections._slots:
        store._connections._drop(slot)
    await store.find("T", [A])
    await store._late.resending
    await store.append(notes("end"))
    assert await store.read("s") == []
    assert await sent_back(store, A) == {"z1": ['"hm"']}


@pytest.mark.parametrize("how", DELETIONS)
async def test_the_epoch_tells_with_the_next_look_up(machines, how):
    here, there = [node.store for node in machines]
    await here.append(turn("s", "t1", '"hm"', keys=[A]))
    await here.find("T", [A])
    before = here.epoch()
    await there.append(turn("z", "t2", '"hm"', keys=[B]))
    await here.find("T", [B])
    assert here.epoch() == before
    await DELETIONS[how](there)
    await here.find("T", [B])
    assert here.epoch() not in (None, before)
