"""A sealed file passes the contract, says nothing to whoever has it alone, and keeps its tenants apart."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from stores.contract import A, B, KeepingContract
from stores.samples import notes, refusal
from stores.sealed_samples import CANARY, ONE, TWO, canaries, keychain, opened, raw
from thoughtline.errors import SealError
from thoughtline.log.events import DAMAGED
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter, SessionQuery
from thoughtline.stores.sealing.administration import check_keys, re_encrypt
from thoughtline.stores.sealing.envelope import is_sealed
from thoughtline.stores.sealing.ring import KeyRing
from thoughtline.stores.sqlite import SqliteStore, erasure


class TestSealedStore(KeepingContract):
    def open(self, place, clock):
        return SqliteStore(place, clock=clock, poll=0.02, keychain=keychain())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def test_no_word_and_no_key_is_in_the_files(path):
    store = opened(path, keychain())
    await store.append(canaries())
    await store.append(refusal("s", "t1", 0))
    while_open = raw(path)
    assert (await store.find("T", [A]))[A][0].thoughts
    assert (await store.entries(EntryFilter(call=f"{CANARY}-call")))[0].turn == "t1"
    await store.close()
    for content in (while_open, raw(path)):
        assert CANARY.encode() not in content
        assert A not in content
        assert b"1" * 32 not in content
        assert b"t1" in content  # ids are visible, so the canaries would be found
    plain = opened(path.with_name("plain.db"))
    await plain.append(canaries())
    assert CANARY.encode() in raw(path.with_name("plain.db")) and A in raw(
        path.with_name("plain.db")
    )
    await plain.close()


@pytest.mark.parametrize("column", ["memo", "thoughts", "said"])
@pytest.mark.parametrize("where", ["tenant", "session", "batch"])
async def test_a_value_that_was_moved_does_not_open(path, column, where):
    store = opened(path, keychain())
    await store.append(replace(canaries(), id="t1"))
    other = {"tenant": ("z", "U"), "session": ("z", "T"), "batch": ("s", "T")}[where]
    batch = canaries(other[0], "t1" if where != "batch" else "t2", key=B, tenant=other[1])
    await store.append(replace(batch, id=batch.drafts[0].id))
    await store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            f"UPDATE batches SET {column} = (SELECT {column} FROM batches ORDER BY position LIMIT 1)"
            " WHERE position = (SELECT max(position) FROM batches)"
        )
        db.commit()
    store = opened(path, keychain())
    asked = store.find(other[1], [B]) if column != "said" else store.read(other[0])
    if where == "tenant":  # sealed with a key that this tenant never had: as if it was deleted
        assert not await asked
    else:
        found = await asked
        left = [t.unreadable for e in found[B] for t in e.thoughts] if column != "said" else []
        assert set(left) <= {True} and other[0] in store.damage
        assert column != "said" or found[-1].type == DAMAGED
    await store.close()


async def test_equal_talk_of_two_tenants_has_different_names(path):
    store = opened(path, keychain())
    await store.append(canaries("s", tenant="T"))
    await store.append(canaries("z", tenant="U"))
    await store.close()
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM lookup_keys")]
    assert len(set(names)) == len(names) == 4 and A not in names  # a key and a call of each
    assert {len(name) for name in names} == {16}


async def test_a_tenant_that_is_deleted_is_unreadable_at_once(path, monkeypatch):
    store, other = opened(path, keychain()), opened(path, keychain())
    for n in range(3):
        await store.append(canaries(f"s{n}", f"t{n}"))
    await store.append(canaries("z", "other", tenant="U"))
    assert await other.read("s1")
    begun, go_on = asyncio.Event(), asyncio.Event()
    purge = store._upkeep.purge

    async def slow(*arguments):
        begun.set()
        await go_on.wait()
        return await purge(*arguments)

    monkeypatch.setattr(store._upkeep, "purge", slow)
    deleting = asyncio.ensure_future(store.purge(tenant="T"))
    await begun.wait()
    assert await other.read("s1") == [] and await other.find("T", [A]) == {}
    assert {event.session for event in (await other.history(None)).events} == {"z"}
    assert (await other.search(SessionQuery(text=CANARY))).sessions[0].session == "z"
    assert len(await other.entries()) == 1
    await other.append(canaries("new", "t9", key=B))  # the tenant comes back
    assert (await other.find("T", [B]))[B][0].thoughts
    go_on.set()
    assert await deleting == 4
    assert await other.read("s1") == await other.read("new") == []
    assert await store.prune_index() == 0
    await store.append(canaries("again", "t8"))
    assert [entry.turn for entry in (await other.find("T", [A]))[A]] == ["t8"]
    assert {event.session for event in (await other.history(None)).events} == {"z", "again"}
    await store.close()
    await other.close()


async def test_what_an_interrupted_deletion_leaves_goes_with_the_next(path):
    store = opened(path, keychain())
    await store.append(canaries("long", "t1"))
    for _ in range(3):
        await store.append(notes("long", 200))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM tenant_keys")
        db.commit()
    assert await store.read("long") == []
    assert await store.purge(tenant="T") == 1
    await store.close()
    with closing(sqlite3.connect(path)) as db:
        for table in ("batches", "lookup_keys", "tenants"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


async def test_a_long_session_is_deleted_in_parts(path):
    store = opened(path, keychain())
    await store.append(canaries("long", "t1"))
    for _ in range(3):
        await store.append(notes("long", 200))
    assert await store.purge(session="long") == 1
    assert await store.prune_index() == 0
    assert await store.stats() == await opened(path.with_name("empty.db")).stats()
    await store.close()


async def test_what_is_plain_is_refused_where_all_must_be_sealed(path):
    store = opened(path)
    await store.append(canaries())
    await store.close()
    strict, told = opened(path, keychain(requires=True)), []
    strict.damage.tell = told.append
    assert {event.type for event in await strict.read("s")} == {DAMAGED}
    assert "is plain, and `store.require_sealed` is set" in told[0]
    await strict.close()


async def test_an_entry_that_is_filed_plainly_is_found_by_everybody(path):
    store, opener = opened(path, keychain()), opened(path, keychain(seals=False))
    await store.append(canaries())
    assert A in await store.find("T", [A])
    await opener.reindex("s", [filed.entry for filed in await opener.index("s")])
    assert (await store.vault.seal_state()).plain
    fresh = opened(path, keychain())
    for one in (store, opener, fresh):
        assert A in await one.find("T", [A])
        await one.close()


async def test_a_process_without_keys_files_nothing_in_a_file_that_was_sealed(path):
    plain = opened(path)
    await plain.append(canaries())
    entries = [filed.entry for filed in await plain.index("s")]
    await plain.reindex("s", [], remove=["t1"])
    store = opened(path, keychain())
    await re_encrypt(store.vault, KeyRing([ONE]))
    with pytest.raises(SealError, match="was sealed with the key key-one meanwhile"):
        await plain.reindex("s", entries)
    assert (await store.vault.value_counts()).plain == 0
    assert f"{CANARY}-call".encode() not in raw(path)
    await plain.close()
    await store.close()


async def test_with_sealing_switched_off_what_is_sealed_stays_so(path):
    store, opener = opened(path, keychain()), opened(path, keychain(seals=False))
    await store.append(canaries())
    await opener.append(canaries("z", "t2", key=B))
    assert await opener.forget(ALL_ENTRIES) == await opener.erase(ALL_ENTRIES) == 2
    with closing(sqlite3.connect(path)) as db:
        values = db.execute("SELECT thoughts, memo, said FROM batches ORDER BY position").fetchall()
    assert [[is_sealed(value) for value in row] for row in values] == [[True] * 3, [False] * 3]
    assert (await opener.find("T", [A]))[A][0].thoughts[0].forgotten
    await store.close()
    await opener.close()


async def test_what_is_erased_is_sealed_with_the_key_that_the_row_has_by_then(path, monkeypatch):
    store, admin = opened(path, keychain()), opened(path, keychain())
    await store.append(canaries())
    erase = erasure.erase
    pages = []
    monkeypatch.setattr(erasure, "erase", lambda db, page: pages.append(page) or 0)
    await store.erase(ALL_ENTRIES)
    await re_encrypt(admin.vault, KeyRing([ONE]))
    assert await store._writer.run(lambda db: erase(db, pages[0])) == 1
    assert await check_keys(admin.vault, KeyRing([ONE])) == []
    assert (await admin.find("T", [A]))[A][0].thoughts[0].forgotten
    await store.close()
    await admin.close()


async def test_what_waits_is_sealed_with_the_key_that_wraps_what_is_new(path):
    """A key that was only just added to this ring may be in no other yet."""
    store = opened(path, keychain(ONE))
    await store.append(canaries())
    chain = keychain(ONE, TWO)
    assert chain.seal_line(b"a turn")[0] == "key-two"  # nothing is known of the store
    other = opened(path, chain)
    await other.find("T", [A])
    assert chain.seal_line(b"a turn")[0] == "key-one"
    await store.close()
    await other.close()
