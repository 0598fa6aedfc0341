"""Look-ups that come together go in one statement, and each is answered as if it were alone."""

import asyncio
import random

import pytest

from stores.contract import KeepingContract
from stores.samples import refusal, turn
from stores.sealed_samples import keychain
from support.loop_clock import settled
from support.waiting import eventually
from thoughtline.errors import SealError, StoreError, Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.postgres import PostgresStore, lookups
from thoughtline.stores.postgres.lookups import LookUp

A, B = b"a" * 16, b"b" * 16


class Crowded(PostgresStore):
    """A store whose look-ups are all gathered, with one of another tenant."""

    async def find(self, tenant, keys):
        self._finder._look_ups._crowded = True
        found, others = await asyncio.gather(
            super().find(tenant, keys), super().find("somebody else", keys)
        )
        assert not others
        return found


class TestGatheredLookUps(KeepingContract):
    @pytest.fixture(autouse=True)
    def place(self, database):
        self.url = database

    def open(self, place, clock):
        return Crowded(self.url, clock=clock)


@pytest.fixture
def asked(store):
    """The statements of look-ups, each as the look-ups that it does."""
    made = []
    read = store._connections.read

    async def noted(statement, *args):
        if "find(" in statement:
            made.append(args[0])
        return await read(statement, *args)

    store._connections.read = noted
    return made


def turns(found):
    return {key: [entry.turn for entry in entries] for key, entries in found.items()}


class Locked:
    """Look-ups wait for the database, for the length of a block."""

    def __init__(self, db):
        self._transaction, self._db = db.transaction(), db

    async def __aenter__(self):
        await self._transaction.start()
        await self._db.execute("LOCK TABLE names IN ACCESS EXCLUSIVE MODE")

    async def __aexit__(self, *_):
        await self._transaction.rollback()


async def under_way(store, count=1):
    """Wait until so many statements of look-ups are being done."""
    await eventually(lambda: sum(bool(slot.began) for slot in store._connections._slots) >= count)


async def test_one_that_comes_alone_is_sent_at_once(store, asked):
    await store.find("T", [A])
    finding = asyncio.ensure_future(store.find("T", [A]))
    await asyncio.sleep(0)  # its first step
    assert len(asked) == 2
    await finding


async def test_those_that_come_together_go_together(store, asked):
    for n in range(9):
        await store.append(
            turn(f"s{n}", f"t{n}", '"x"', tenant=f"T{n % 3}", keys=[bytes([n]) * 16])
        )
    for _ in range(2):
        asked.clear()
        found = await asyncio.gather(
            *(store.find(f"T{n % 3}", [bytes([n]) * 16, A]) for n in range(9))
        )
        assert [turns(one) for one in found] == [{bytes([n]) * 16: [f"t{n}"]} for n in range(9)]
        assert sum(map(len, asked)) == 9
    assert len(asked) == 1  # they came together before: none goes ahead
    await store.find("T0", [A])
    await store.find("T0", [A])
    assert not store._finder._look_ups._crowded


async def test_two_tenants_with_equal_keys_see_their_own(store, asked):
    for tenant in "TUV":
        await store.append(turn(f"s{tenant}", f"t{tenant}", '"x"', tenant=tenant, keys=[A, B]))
        await store.append(refusal(f"s{tenant}", "tU", 0, tenant=tenant))
    store._finder._look_ups._crowded = True
    for _ in range(2):  # read before, too
        t, u, nobody, v = await asyncio.gather(*(store.find(tenant, [B, A]) for tenant in "TUWV"))
        assert [turns(one) for one in (t, u, nobody, v)] == [
            {B: ["tT"], A: ["tT"]},
            {B: ["tU"], A: ["tU"]},
            {},
            {B: ["tV"], A: ["tV"]},
        ]
        assert not t[A][0].quarantined and u[A][0].quarantined == {0} == u[B][0].quarantined
    assert [len(one) for one in asked] == [4, 4]


async def test_a_name_that_leads_to_another_tenant_finds_nothing(store, db):
    for tenant in "TU":
        await store.append(turn(f"s{tenant}", f"t{tenant}", '"x"', tenant=tenant, keys=[A]))
    await db.execute(
        "UPDATE names AS n SET entry = e.id, filed = e.filed FROM entries AS e"
        " WHERE e.tenant = 'T' AND n.entry = (SELECT id FROM entries WHERE tenant = 'U')"
    )
    assert await store.find("U", [A]) == {}
    store._finder._look_ups._crowded = True
    t, u = await asyncio.gather(*(store.find(tenant, [A]) for tenant in "TU"))
    assert turns(t) == {A: ["tT"]} and u == {}


async def test_a_group_finds_what_each_of_its_look_ups_finds_alone(store, other):
    rng = random.Random(3)
    keys = [bytes([n]) * 16 for n in range(12)]
    for n in range(40):
        tenant = rng.choice("TUV")
        some = rng.sample(keys, 3)
        await store.append(turn(f"{tenant}{n % 7}", f"t{n}", f'"{n}"', tenant=tenant, keys=some))
    look_ups = [(rng.choice("TUV"), rng.sample(keys, rng.randint(1, 5))) for _ in range(30)]
    alone = [await store.find(*one) for one in look_ups]
    for node in (store, other):  # one that has read it all, and one that has not
        node._finder._look_ups._crowded = True
        assert await asyncio.gather(*(node.find(*one) for one in look_ups)) == alone


async def test_what_one_of_a_group_knows_is_not_missing_for_another(store, monkeypatch):
    await store.append(turn("s", "t", '"x"', keys=[A]))
    await store.find("T", [A])
    known, store._finder._look_ups._crowded = store._finder._bodies.known, True
    before = [{}, {}]  # what was known when two of them began
    monkeypatch.setattr(
        store._finder._bodies, "known", lambda names: before.pop() if before else known(names)
    )
    found = await asyncio.gather(*(store.find("T", [A]) for _ in range(3)))
    assert [turns(one) for one in found] == [{A: ["t"]}] * 3


async def test_who_stops_waiting_takes_nobody_elses_answer_away(store, db, asked):
    await store.append(turn("s", "t", '"x"', keys=[A]))
    store._finder._look_ups._crowded = True
    async with Locked(db):
        waiting = [asyncio.create_task(store.find("T", [A])) for _ in range(4)]
        await under_way(store)
        for task in waiting[:3]:
            task.cancel()
        await asyncio.gather(*waiting[:3], return_exceptions=True)
    assert turns(await waiting[3]) == {A: ["t"]}
    assert [len(one) for one in asked] == [4]


async def test_what_nobody_waits_for_is_given_up(store, db, asked):
    await store.find("T", [A])
    store._finder._look_ups._crowded = True
    async with Locked(db):
        for _ in range(5):  # more than there are connections
            waiting = [asyncio.create_task(store.find("T", [A])) for _ in range(2)]
            await under_way(store)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await eventually(lambda: not store._finder._look_ups._running)
    assert await store.find("T", [A]) == {}


async def test_who_stops_waiting_before_it_was_sent_is_not_asked_for(store, db, asked):
    await store.find("T", [A])
    asked.clear()
    store._finder._look_ups._crowded = True
    async with Locked(db):
        first = []
        for n in range(1, 4):  # all connections are taken
            first.append(asyncio.create_task(store.find("T", [A])))
            await under_way(store, n)
        later = [asyncio.create_task(store.find("T", [B])) for _ in range(3)]
        await settled()  # they wait
        later[1].cancel()
    await asyncio.gather(*first, later[0], later[2])
    assert [len(one) for one in asked] == [1, 1, 1, 2]


async def test_an_outage_reaches_all_of_a_group(database, clock, db):
    store = PostgresStore(database, clock=clock, patience=0.0)
    await store.append(turn("s", "t", '"x"', keys=[A]))
    store._finder._look_ups._crowded = True
    async with Locked(db):
        waiting = [asyncio.create_task(store.find(tenant, [A])) for tenant in "TUT"]
        await under_way(store)
        for slot in store._connections._slots:
            store._connections._drop(slot)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in outcomes] == [Unavailable] * 3
    found = await asyncio.gather(*(store.find("T", [A]) for _ in range(3)))
    assert [turns(one) for one in found] == [{A: ["t"]}] * 3
    await store.close()


async def test_one_that_the_database_does_not_take_fails_alone(store):
    await store.append(turn("s", "t", '"x"', keys=[A]))
    store._finder._look_ups._crowded = True
    outcomes = await asyncio.gather(
        store.find("T", [A]),
        store._finder._look_ups.ask(LookUp("no bytes", [A], {})),
        store.find("T", [A]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], StoreError) and not isinstance(outcomes[1], Unavailable)
    assert turns(outcomes[0]) == turns(outcomes[2]) == {A: ["t"]}


async def test_the_keys_of_one_tenant_do_not_matter_to_another(nodes, db):
    writer, store = nodes(keychain()), nodes(keychain())
    for tenant in "TUV":
        await writer.append(turn(f"s{tenant}", f"t{tenant}", '"x"', tenant=tenant, keys=[A]))
        await store.find(tenant, [B])
    await db.execute("UPDATE tenant_keys SET wrapped = $1 WHERE tenant = 'U'", b"damaged")
    await db.execute("DELETE FROM tenant_keys WHERE tenant = 'V'")
    await db.execute("UPDATE tenants SET epoch = epoch + 1000")
    store._finder._look_ups._crowded = True
    t, u, v = await asyncio.gather(
        *(store.find(tenant, [A]) for tenant in "TUV"), return_exceptions=True
    )
    assert turns(t) == {A: ["tT"]}
    assert isinstance(u, SealError)
    assert v == {}


async def test_epochs_are_those_of_each_tenant(store, other):
    for tenant in "TU":
        await store.append(turn(f"s{tenant}", f"t{tenant}", '"x"', tenant=tenant, keys=[A]))
    store._finder._look_ups._crowded = True
    await asyncio.gather(*(store.find(tenant, [A]) for tenant in "TU"))
    before = dict(store._finder.epochs)
    await other.forget(EntryFilter(tenant="U"))
    t, u = await asyncio.gather(*(store.find(tenant, [A]) for tenant in "TU"))
    assert not t[A][0].thoughts[0].forgotten and u[A][0].thoughts[0].forgotten
    assert store._finder.epochs[b"T"] == before[b"T"] and store._finder.epochs[b"U"] > before[b"U"]


async def test_a_group_without_prepared_statements(database, db):
    store = PostgresStore(f"{database}?prepared=off")
    await store.append(turn("s", "t", '"x"', keys=[A]))
    for _ in range(2):
        store._finder._look_ups._crowded = True
        found = await asyncio.gather(*(store.find(tenant, [A]) for tenant in "TUT"))
        assert [turns(one) for one in found] == [{A: ["t"]}, {}, {A: ["t"]}]
    await store.close()


async def test_a_long_look_up_goes_alone(store, asked, monkeypatch):
    monkeypatch.setattr(lookups, "MAX_TOGETHER", 4)
    store._finder._look_ups._crowded = True
    sizes = [1, 2, 5, 1, 1, 3, 1]
    await asyncio.gather(
        *(store.find("T", [b"%d %d" % (n, m) for m in range(size)]) for n, size in enumerate(sizes))
    )
    assert [[len(names) // 24 for _, names in one] for one in asked] == [
        [1, 2],
        [5],
        [1, 1],
        [3, 1],
    ]
