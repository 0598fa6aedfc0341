"""The vault of a database: rows are sealed and opened, and keys change, while nodes use it."""

import asyncio

import pytest
from msgspec.structs import replace

from stores import rekeying
from stores.contract import A, B
from stores.samples import turn
from stores.sealed_samples import CANARY, ONE, TWO, canaries, keychain
from thoughtline.errors import SealError
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.sealing.administration import (
    check_keys,
    list_keys,
    re_encrypt,
    refuse_use,
    rotate,
)
from thoughtline.stores.sealing.ring import KeyRing
from thoughtline.stores.sealing.tenant_keys import rewrap


async def test_a_database_is_sealed_and_opened_while_it_is_used(nodes):
    plain = nodes(None)
    for n in range(40):
        await plain.append(canaries(f"s{n}", f"t{n}"))
    await plain.forget(EntryFilter(turn="t3"))
    expected = [await plain.read(f"s{n}") for n in range(40)]
    stats = await plain.stats()
    await plain.close()
    store = nodes(keychain())
    await store.vault.set_primary("key-one")
    assert len((await store.find("T", [A]))[A]) == 32
    assert await store.vault.reseal() == 40
    assert (await store.vault.value_counts()).plain == 0
    assert not (await store.vault.seal_state()).plain
    assert [await store.read(f"s{n}") for n in range(40)] == expected
    assert await store.stats() == stats
    assert len(await store.entries(EntryFilter(call=f"{CANARY}-call"), limit=100)) == 39
    assert len((await store.find("T", [A]))[A]) == 32
    assert await store.prune_index() == 0
    back = nodes(keychain(seals=False))
    await back.append(canaries("s40", "t40"))
    assert (await back.vault.seal_state()).plain
    assert await back.vault.reseal(plain=True) == 40
    assert (await back.vault.seal_state()).primary == ""
    plain = nodes(None)
    assert [await plain.read(f"s{n}") for n in range(40)] == expected
    assert await plain.prune_index() == 0
    assert len((await plain.find("T", [A]))[A]) == 32


async def test_with_sealing_switched_off_what_is_sealed_stays_so(nodes):
    store = nodes(keychain())
    await store.append(canaries())
    opener = nodes(keychain(seals=False))
    await opener.append(canaries("z", "t2", key=B))
    assert await opener.forget(ALL_ENTRIES) == 2
    assert (await opener.vault.value_counts()).plain == 1
    assert await opener.erase(ALL_ENTRIES) == 2
    assert (await opener.find("T", [A]))[A][0].thoughts[0].forgotten


async def test_a_store_is_sealed_or_opened_as_it_was_opened_for(nodes):
    for chain, plain in ((keychain(), True), (keychain(seals=False), False), (None, False)):
        with pytest.raises(SealError, match="otherwise than this asks for"):
            await nodes(chain).vault.reseal(plain=plain)


async def test_keys_change_while_nodes_read_and_write(nodes):
    ring = KeyRing([ONE, TWO])
    first, second = nodes(keychain(ONE, TWO)), nodes(keychain(ONE, TWO))
    for n in range(6):
        await first.append(canaries(f"s{n}", f"t{n}", tenant=f"T{n % 2}"))
    stop, count = asyncio.Event(), 0

    async def talk(node):
        nonlocal count
        while not stop.is_set():
            count += 1
            name, key = f"more{count}", f"more{count}".encode().ljust(16)
            await node.append(turn(f"s-{name}", name, '"y"', keys=(key,)))
            for other in (first, second):  # a turn that was acknowledged is found by everybody
                assert (await other.find("T", [key]))[key][0].thoughts, name
                assert [event.id for event in await other.read(f"s-{name}")][:1] == [name]

    talking = [asyncio.ensure_future(talk(node)) for node in (first, second)]
    admin = nodes(keychain(ONE, TWO))
    for id in ("key-one", "key-two"):
        await rotate(admin.vault, ring, id)
        await re_encrypt(admin.vault, ring)
    stop.set()
    await asyncio.gather(*talking)
    await re_encrypt(admin.vault, ring)
    assert count > 0 and await check_keys(admin.vault, ring) == []
    report = await list_keys(admin.vault, ring)
    assert [(key.id, key.primary, key.tenants) for key in report.keys] == [
        ("key-one", False, 0),
        ("key-two", True, 3),
    ]
    assert report.plain == 0 and report.keys[1].rows == 6 + count


class TestRekeying(rekeying.RekeyingContract):
    @pytest.fixture
    def node(self, nodes):
        return lambda *keys, **options: nodes(rekeying.keychain(*keys, **options))

    @pytest.fixture
    def address(self, database):
        return database

    @pytest.fixture
    def plain_node(self, nodes):
        return lambda: nodes(None)

    @pytest.fixture
    def filed_names(self, db):
        async def names():
            return {row[0] for row in await db.fetch("SELECT name FROM names")}

        return names

    @pytest.fixture
    def small_pages(self, monkeypatch):
        monkeypatch.setattr("thoughtline.stores.postgres.vault.PAGE", 10)


async def test_notes_between_nodes_are_sealed_with_a_key_that_all_have(nodes, db):
    """While a new key is brought into the rings, one after the other, nothing is sealed with it."""
    early, late = nodes(keychain(ONE, TWO)), nodes(keychain(ONE))
    await late.append(canaries())
    await early.append(canaries("z", "t2", key=B))
    await early.purge(session="z")
    waited = replace(canaries("z", "t3", key=B), held=1.0)
    await late.look_at_running("late")
    assert await early.show_running("early", b"what runs")
    assert await late.look_at_running("late") == {"early": b"what runs"}
    assert await late.append(waited) is not None  # it can read what was deleted
    ring = KeyRing([ONE, TWO])
    with pytest.raises(SealError, match="wraps what is new"):
        await refuse_use(early.vault, "key-one")
    await early.vault.set_primary("key-two")
    rows = await early.vault.key_rows()
    await early.vault.replace_keys([(row, rewrap(row, ring, TWO)) for row in rows])
    with pytest.raises(SealError, match="notes of what was deleted are sealed with key-one"):
        await refuse_use(early.vault, "key-one")
    await rotate(early.vault, ring, "key-two")
    await refuse_use(early.vault, "key-one")
    assert await early.show_running("early", b"what runs now")
    assert await late.look_at_running("late") == {}  # it has not got the key, and goes on
    only_new = nodes(keychain(TWO))
    await only_new.append(replace(canaries("z", "t4", key=B), held=1.0))


@pytest.mark.parametrize("change", ["_reseal_entry", "_reseal_row"])
async def test_what_changes_while_it_is_sealed_again_is_sealed_again_too(nodes, change):
    """Or it stays sealed with a key that is deleted in the end."""
    store, other = nodes(keychain()), nodes(keychain())
    await store.append(canaries())
    vault = store.vault
    acts = [other.forget, other.erase] if change == "_reseal_entry" else [other.erase]
    reseal, calls = getattr(vault, change), iter(acts)

    async def overtaken(row, seal):
        if act := next(calls, None):
            await act(ALL_ENTRIES)
        return await reseal(row, seal)

    setattr(vault, change, overtaken)
    await re_encrypt(vault, KeyRing([ONE]), names=True)
    [entry] = (await nodes(keychain()).find("T", [A]))[A]
    assert entry.thoughts[0].forgotten
    assert len(await other.read("s")) == 4
    assert await check_keys(store.vault, KeyRing([ONE])) == []


async def test_an_entry_that_does_not_open_is_said(nodes, db):
    store = nodes(keychain())
    await store.append(canaries())
    await db.execute("UPDATE entries SET memo = substr(memo, 1, 40)")
    [problem] = await check_keys(store.vault, KeyRing([ONE]))
    assert "was altered" in problem


async def test_nobody_opens_what_somebody_else_is_sealing(nodes):
    nodes_of = {plain: nodes(keychain(ONE, seals=not plain)) for plain in (True, False)}
    await nodes(None).append(canaries("s", "t1"))
    sealing, opening = nodes_of[False].vault, nodes_of[True].vault
    seals_of = sealing._seals_of
    refused = []

    async def while_it_seals(rows):
        found = await seals_of(rows)
        with pytest.raises(SealError, match="seals what this one would open"):
            await opening.reseal(plain=True)
        refused.append(rows)
        return found

    sealing._seals_of = while_it_seals
    assert await re_encrypt(sealing, KeyRing([ONE])) == 1
    assert refused and await check_keys(sealing, KeyRing([ONE])) == []
    assert await opening.reseal(plain=True) == 1
    assert len(await nodes(None).read("s")) == 4
