"""The index of a session, and names that lead nowhere."""

from msgspec.structs import replace

from stores.samples import turn
from stores.sealed_samples import ONE, keychain
from thoughtline.stores.sealing.administration import re_encrypt
from thoughtline.stores.sealing.ring import KeyRing

A, B = b"a" * 16, b"b" * 16


async def test_names_that_lead_nowhere_are_pruned(store, db):
    await store.append(turn("s", "t1", '"a"', keys=[A, B]))
    await db.execute("DELETE FROM entries")
    assert await store.find("T", [A]) == {}
    assert await store.prune_index(dry_run=True) == 2
    assert await store.prune_index() == 2
    assert await store.prune_index() == 0


async def test_filing_again_leaves_no_old_names(store, db):
    await store.append(turn("s", "t1", '"a"', keys=[A]))
    whole = turn("s", "t1", keys=[B])
    await store.append(replace(whole, drafts=()))
    assert await store.prune_index() == 0
    assert await db.fetchval("SELECT count(*) FROM names") == 1


async def test_a_name_that_is_gone_is_told(store, db):
    await store.append(turn("s", "t1", '"a"', keys=[A, B]))
    await db.execute("DELETE FROM names WHERE substr(name, 9) = $1", A)
    [filed] = await store.index("s")
    assert filed.unfiled == {A}


async def test_the_index_of_a_session_is_read_while_its_keys_are_replaced(nodes, monkeypatch):
    store, admin = nodes(keychain()), nodes(keychain())
    await store.append(turn("s", "t1", '"a"', keys=[A]))
    opened = store._seals.opened

    async def then_replaced(rows, **options):
        found = await opened(rows, **options)
        await re_encrypt(admin.vault, KeyRing([ONE]))
        return found

    monkeypatch.setattr(store._seals, "opened", then_replaced)
    assert [filed.entry.turn for filed in await store.index("s")] == ["t1"]
