"""Keys are changed while a store is in use; each step may be interrupted and run again."""

import asyncio

import pytest

from stores.contract import A
from stores.samples import turn
from thoughtline.errors import SealError
from thoughtline.stores.sealing.administration import (
    check_keys,
    list_keys,
    lost_keys,
    re_encrypt,
    refuse_use,
    rotate,
)
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sqlite import SqliteStore

ONE, TWO = MasterKey("one", b"1" * 32), MasterKey("two", b"2" * 32)


@pytest.fixture
async def stores(tmp_path):
    """Opens the store of a test, with a ring of its own."""
    made = []

    def store(*keys, **options):
        ring = KeyRing(keys or [ONE, TWO])
        made.append(SqliteStore(tmp_path / "store.db", keychain=Keychain(ring, **options)))
        return made[-1]

    yield store
    for one in made:
        await one.close()


async def fill(store, tenants=3, turns=4):
    for tenant in range(tenants):
        for n in range(turns):
            name = f"t{tenant}.{n}"
            await store.append(turn(f"s{tenant}", name, '"x"', keys=(A,), tenant=f"T{tenant}"))


async def thoughts(store, tenants=3):
    return [len((await store.find(f"T{n}", [A])).get(A, ())) for n in range(tenants)]


async def test_a_new_key_takes_over_and_the_old_one_can_go(stores):
    store = stores(ONE)
    await fill(store)
    both = stores(ONE, TWO)
    ring = KeyRing([ONE, TWO])
    report = await list_keys(both.vault, ring)
    assert [(key.id, key.primary, key.tenants, key.rows) for key in report.keys] == [
        ("one", True, 3, 12),
        ("two", False, 0, 0),
    ]
    with pytest.raises(SealError, match="wraps what is new"):
        await refuse_use(both.vault, "one")
    assert await rotate(both.vault, ring, "two") == 6
    assert await rotate(both.vault, ring, "two") == 0
    await refuse_use(both.vault, "one")
    alone = stores(TWO)
    assert await thoughts(alone) == [4, 4, 4]
    assert await check_keys(alone.vault, KeyRing([TWO])) == []
    with pytest.raises(SealError, match="the key two is not in the ring"):
        await store.find("T1", [A])


async def test_a_key_that_still_wraps_something_is_not_retired(stores):
    store = stores()
    await fill(store)
    await store.vault.set_primary("one")
    with pytest.raises(SealError, match=r"the keys of 3 tenant\(s\) are wrapped with two"):
        await refuse_use(store.vault, "two")


async def test_every_row_gets_a_new_key_and_the_old_keys_are_gone(stores):
    store = stores()
    await fill(store)
    before = {(row.tenant, row.version) for row in await store.vault.key_rows()}
    steps = []
    ring = KeyRing([ONE, TWO])
    assert await re_encrypt(store.vault, ring, progress=lambda *s: steps.append(s)) == 12
    after = {(row.tenant, row.version) for row in await store.vault.key_rows()}
    assert len(after) == 6
    assert before & after == {(f"T{n}", 0) for n in range(3)}
    assert set((await store.vault.value_counts()).sealed) == after - before
    assert await thoughts(store) == [4, 4, 4]
    assert await re_encrypt(store.vault, ring, tenant="T1") == 4


async def test_re_encryption_goes_on_where_it_was_interrupted(stores, monkeypatch):
    store, ring = stores(), KeyRing([ONE, TWO])
    await fill(store, turns=40)
    monkeypatch.setattr("thoughtline.stores.sqlite.resealing.PAGE", 50)
    left = iter(range(1))

    def stop(done, total):
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await re_encrypt(store.vault, ring, progress=stop)
    counts = (await store.vault.value_counts()).sealed
    assert len(counts) > 3  # some rows have the new key, and some the old one
    assert await thoughts(store) == [32, 32, 32]
    rest = await re_encrypt(store.vault, ring)
    assert 0 < rest < 120
    assert len((await store.vault.value_counts()).sealed) == 3
    assert len(await store.vault.key_rows()) == 6


async def test_keys_change_while_others_read_and_write(stores):
    ring = KeyRing([ONE, TWO])
    nodes = [stores(), stores()]
    await fill(nodes[0])
    stop, count = asyncio.Event(), 0

    async def talk(node):
        nonlocal count
        while not stop.is_set():
            count += 1
            name = f"more{count}"
            await node.append(turn(f"s-{name}", name, '"y"', keys=(name.encode().ljust(16),)))
            for other in nodes:  # a turn that was acknowledged is found by everybody
                found = await other.find("T", [name.encode().ljust(16)])
                assert found, name
                assert next(e.id for e in await other.read(f"s-{name}")) == name

    talking = [asyncio.ensure_future(talk(node)) for node in nodes]
    admin = stores()
    for id in ("two", "one"):
        await rotate(admin.vault, ring, id)
        await re_encrypt(admin.vault, ring)
    stop.set()
    await asyncio.gather(*talking)
    await re_encrypt(admin.vault, ring)
    assert count > 0 and await check_keys(admin.vault, ring) == []
    assert sum((await admin.vault.value_counts()).sealed.values()) == 12 + count
    assert (await admin.vault.value_counts()).plain == 0


async def test_a_lost_key_is_named_with_what_it_wraps(stores):
    store = stores()
    await fill(store)
    assert (await store.vault.seal_state()).primary == "two"
    problems = await lost_keys(store.vault, KeyRing([ONE]))
    assert len(problems) == 1 and "the key two is not in the ring (it has one)" in problems[0]
    [other] = await lost_keys(store.vault, KeyRing([MasterKey("two", b"x" * 32)]))
    assert "the key two of the ring" in other
    report = await list_keys(store.vault, KeyRing([ONE]))
    assert [(key.id, key.in_ring) for key in report.keys] == [("one", True), ("two", False)]


async def test_a_sample_that_does_not_open_is_said(stores, tmp_path):
    store = stores()
    await fill(store, tenants=1, turns=1)
    await store._writer.run(lambda db: db.execute("UPDATE batches SET said = substr(said, 1, 40)"))
    [problem] = await check_keys(store.vault, KeyRing([ONE, TWO]))
    assert "was altered" in problem
