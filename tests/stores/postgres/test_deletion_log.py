"""Deletions that nodes tell one another are noted in the database, and not for ever."""

from stores.samples import turn
from stores.sealed_samples import ONE, TWO, canaries, keychain
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.postgres import deletion_log
from thoughtline.stores.sealing.administration import rotate
from thoughtline.stores.sealing.ring import KeyRing


async def test_deletions_are_remembered_for_a_while(store, db, clock):
    await store.forget(ALL_ENTRIES)
    assert await db.fetchval("SELECT count(*) FROM gone") == 1
    clock.now += deletion_log.KEPT + 1
    await store.forget(ALL_ENTRIES)
    assert await db.fetchval("SELECT count(*) FROM gone") == 1


async def test_a_note_is_sealed_with_the_key_that_is_the_newest_by_then(nodes):
    await nodes(keychain(ONE)).append(canaries())
    idle, admin = nodes(keychain(ONE, TWO)), nodes(keychain(ONE, TWO))
    await idle.append(canaries("z", "t2"))
    await rotate(admin.vault, KeyRing([ONE, TWO]), "key-two")
    await idle.purge(session="s")
    assert await admin.vault.note_keys() == {"key-two"}


async def test_a_turn_that_comes_right_after_a_deletion_is_kept(store, clock, monkeypatch):
    await store.append(turn("s", "t1", '"a"'))
    read = store._connections.read

    async def slow(statement, *args):
        found = await read(statement, *args)
        if statement == deletion_log._SINCE:
            clock.now += 0.5  # longer than the deletion is over
        return found

    monkeypatch.setattr(store._connections, "read", slow)
    await store.purge(session="s")
    clock.now += 0.001
    await store.append(turn("s", "t2", '"b"'))
    assert [event.id for event in await store.read("s")][:1] == ["t2"]
