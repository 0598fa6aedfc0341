"""A sealed database passes the contract, says nothing by itself, and keeps its tenants apart."""

import asyncio

import pytest

from stores.contract import A, B, KeepingContract
from stores.samples import notes, refusal, turn
from stores.sealed_samples import CANARY, ONE, TWO, canaries, keychain
from support.waiting import eventually
from thoughtline.errors import SealError
from thoughtline.log.events import DAMAGED
from thoughtline.stores.base import EntryFilter, SessionQuery
from thoughtline.stores.postgres import PostgresStore
from thoughtline.stores.sealing.administration import re_encrypt
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sealing.tenant_keys import new_row


class TestSealedPostgres(KeepingContract):
    @pytest.fixture(autouse=True)
    def place(self, database):
        self.url = database

    def open(self, place, clock):
        return PostgresStore(self.url, clock=clock, keychain=keychain())


async def content(db):
    """Everything that the database holds."""
    tables = await db.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        " AND relkind = 'r'"
    )
    rows = [await db.fetch(f"SELECT * FROM {table[0]}") for table in tables]
    return b"|".join(
        value if isinstance(value, bytes) else str(value).encode()
        for table in rows
        for row in table
        for value in row.values()
    )


async def test_no_word_and_no_key_is_in_the_database(nodes, db):
    plain = nodes(None)
    await plain.append(canaries())
    assert CANARY.encode() in await content(db) and A in await content(db)
    await plain.purge(tenant="T")
    await plain.prune_index()
    await plain.close()
    store = nodes(keychain())
    await store.append(canaries())
    await store.append(refusal("s", "t1", 0))
    assert (await store.find("T", [A]))[A][0].thoughts
    assert (await store.entries(EntryFilter(call=f"{CANARY}-call")))[0].turn == "t1"
    everything = await content(db)
    assert CANARY.encode() not in everything and A not in everything and b"1" * 32 not in everything
    assert b"t1" in everything  # ids are visible, so the canaries would be found


async def test_without_its_keys_a_database_is_refused_and_the_key_is_named(nodes):
    store = nodes(keychain())
    await store.append(canaries())
    for chain in (None, keychain(TWO), keychain(MasterKey("key-one", b"x" * 32))):
        other = nodes(chain)
        for work in (other.find("T", [A]), other.read("s"), other.append(canaries(name="t2"))):
            with pytest.raises(SealError, match="key-one"):
                await work


async def test_a_node_without_keys_notices_that_the_database_is_sealed_meanwhile(nodes):
    plain, sealing = nodes(None), nodes(keychain())
    await plain.append(canaries())
    assert await plain.find("T", [A])
    await sealing.append(canaries(name="t2", key=B))
    for work in (plain.find("T", [B]), plain.append(canaries("z", "t3", tenant="new"))):
        with pytest.raises(SealError, match="key-one"):
            await work
    found = await sealing.find("T", [A, B])
    assert [found[key][0].turn for key in (A, B)] == ["t1", "t2"]


async def test_a_tenant_that_is_deleted_is_unreadable_at_once(nodes, db, monkeypatch):
    store, other = nodes(keychain()), nodes(keychain())
    for n in range(3):
        await store.append(canaries(f"s{n}", f"t{n}"))
    await store.append(canaries("z", "other", tenant="U"))
    assert await other.read("s1") and await other.find("T", [A])
    await store._seals.delete(b"T")
    assert await other.read("s1") == [] and await other.find("T", [A]) == {}

    async def told():  # a feed waits for the transactions of other tests
        return (await other.history(None)).events

    assert {event.session for event in await eventually(told)} == {"z"}
    assert [s.session for s in (await other.search(SessionQuery(text=CANARY))).sessions] == ["z"]
    assert len(await other.entries()) == 1
    await other.append(canaries("new", "t9", key=B))  # the tenant comes back
    assert (await store.find("T", [B]))[B][0].thoughts
    assert await store.purge(tenant="T") == 4
    await store.prune_index()
    assert await db.fetchval("SELECT count(*) FROM names") == 2


async def test_what_is_plain_is_refused_where_all_must_be_sealed(nodes):
    plain = nodes(None)
    await plain.append(canaries())
    strict = nodes(keychain(requires=True))
    strict.damage.tell = (told := []).append
    assert {event.type for event in await strict.read("s")} == {DAMAGED}
    assert "is plain, and `store.require_sealed` is set" in told[0]


async def test_batches_are_sealed_again_where_a_key_was_replaced_meanwhile(nodes):
    one, two = nodes(keychain(ONE, TWO)), nodes(keychain(ONE, TWO))
    await asyncio.gather(*(one.append(notes(f"s{n}")) for n in range(5)))
    await two.append(canaries())
    await two._seals.delete(b"T")  # what `one` holds is void
    await asyncio.gather(*(one.append(canaries(f"z{n}", f"t{n}", key=B)) for n in range(5)))
    assert len((await two.find("T", [B]))[B]) == 5


async def test_a_dump_has_no_word_and_no_key(nodes, postgres, database, db):
    """What whoever has the database sees: `pg_dump` writes bytes as hexadecimal digits."""
    words = [CANARY.encode(), A, b"1" * 32, b"canary"]

    def dump():
        return postgres.run("pg_dump", "--inserts", "-d", database).encode()

    def found():
        text = dump()
        return [word for word in words if word in text or word.hex().encode() in text]

    plain = nodes(None)
    await plain.append(canaries())
    await plain.erase(EntryFilter(call=f"{CANARY}-other"))
    assert found() == [words[0], A, words[3]]
    await plain.purge(tenant="T")
    await plain.prune_index()
    await plain.close()
    await db.execute("TRUNCATE gone")
    store = nodes(keychain())
    await store.append(canaries())
    await store.append(refusal("s", "t1", 0))
    await store.look_at_running("other")
    assert await store.show_running("node", CANARY.encode())
    assert await store.erase(EntryFilter(call=f"{CANARY}-other")) == 0
    assert await store.forget(EntryFilter(call=f"{CANARY}-call")) == 1
    assert found() == []


async def test_a_long_look_up_while_keys_have_several_names(database):
    plain = PostgresStore(database)
    await plain.append(turn("p", "t0", '"x"', keys=[b"a" * 16], tenant="T"))
    await plain.close()
    chain = keychain()
    store = PostgresStore(database, keychain=chain)
    await store.vault.set_primary(chain.ring.newest.id)
    await store.append(turn("s", "t1", '"x"', keys=[b"b" * 16], tenant="T"))
    newest = max(row.version for row in await store.vault.key_rows())
    more = [new_row("T", v, chain.ring.newest) for v in (newest + 1, -(newest + 1))]
    assert await store.vault.add_keys(more) == 2  # look-up keys are being replaced
    keys = [number.to_bytes(16, "big") for number in range(12_000)]
    found = await store.find("T", [*keys, b"a" * 16, b"b" * 16])
    assert set(found) == {b"a" * 16, b"b" * 16}
    await store.close()


READS = {
    "read": lambda store: store.read("s"),
    "history": lambda store: store.history(None),
    "search": lambda store: store.search(SessionQuery(text="canary")),
    "entries": lambda store: store.entries(thoughts=True),
    "index": lambda store: store.index("s"),
    "forget": lambda store: store.forget(EntryFilter(session="s")),
    "erase": lambda store: store.erase(EntryFilter(session="s")),
}


@pytest.mark.parametrize("name", READS)
async def test_rows_that_are_sealed_anew_before_their_keys_are_read_are_there(nodes, name):
    store, admin = nodes(keychain(ONE, TWO)), nodes(keychain(ONE, TWO))
    await store.append(canaries("s", "t1"))
    expected = await READS[name](store)
    if name in {"forget", "erase"}:
        await store.append(canaries("s", "t2"))
    keys_of = store._seals.of
    replaced = []

    async def late(tenants):
        if not replaced:
            replaced.append(await re_encrypt(admin.vault, KeyRing([ONE, TWO])))
        return await keys_of(tenants)

    store._seals.of = late
    assert await READS[name](store) == expected
    assert replaced
