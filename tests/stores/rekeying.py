"""What holds for every sealed store while its keys change: a class of tests, inherited per store.

`node(*keys, **options)` opens the store once more, `address` is its URL, and `filed_names()` returns
the names that it has.
"""

import asyncio
import signal
import sys

import pytest

from stores.contract import A, B
from stores.sealed_samples import CANARY, ONE, TWO, canaries
from thoughtline.errors import SealError
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.sealing.administration import check_keys, re_encrypt, rotate
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey

RING = KeyRing([ONE, TWO])
KEYS = [bytes([n]) * 16 for n in range(1, 41)]


class Interrupted(Exception):
    """Somebody pressed Ctrl-C."""


KILLED = """
import asyncio, os, signal, sys
from thoughtline.stores import open_store
from thoughtline.stores.postgres import vault
from thoughtline.stores.sealing.administration import re_encrypt
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing
from thoughtline.stores.sqlite import resealing

def stop(done, total):
    if done > 0.6 * total:
        os.kill(os.getpid(), signal.SIGKILL)

async def work():
    ring = KeyRing.parse(sys.argv[2])
    store = open_store(sys.argv[1], keychain=Keychain(ring))
    await re_encrypt(store.vault, ring, names=True, progress=stop)

resealing.PAGE, vault.PAGE = 5, 10
asyncio.run(work())
"""


class RekeyingContract:
    async def test_look_up_keys_get_a_new_key(self, node, filed_names):
        store, other = node(), node()
        for n, key in enumerate(KEYS):
            await store.append(canaries(f"s{n}", f"t{n}", key=key))
        await store.forget(EntryFilter(turn="t3"))
        assert len(await other.find("T", KEYS)) == 40
        before = await filed_names()
        lookups = {row.wrapped for row in await store.vault.key_rows() if row.version <= 0}
        assert await re_encrypt(store.vault, RING, names=True) == 40
        after = await filed_names()
        assert len(after) == len(before) > 40 and not after & before
        rows = await store.vault.key_rows()
        assert len(rows) == 2 and not lookups & {row.wrapped for row in rows}
        for one in (store, other, node()):
            assert len(await one.find("T", KEYS)) == 40
            found = await one.entries(EntryFilter(call=f"{CANARY}-call"), limit=100)
            assert len(found) == 39
        await other.append(canaries("new", "new", key=A))
        assert (await store.find("T", [A]))[A][0].turn == "new"
        # Without `names`, those of the last time stay.
        again = await filed_names()
        assert await re_encrypt(store.vault, RING) == 41
        assert await filed_names() == again
        assert await store.purge(session="s1") == 1
        assert await store.prune_index(dry_run=True) == 0
        assert (await check_keys(store.vault, RING)) == []

    async def test_new_names_go_on_where_they_were_interrupted(
        self, node, filed_names, small_pages
    ):
        store = node()
        for n, key in enumerate(KEYS):
            await store.append(canaries(f"s{n}", f"t{n}", key=key))
        before = await filed_names()

        def stop(done, total):
            if done > 0.6 * total:
                raise Interrupted

        with pytest.raises(Interrupted):
            await re_encrypt(store.vault, RING, names=True, progress=stop)
        mixed = await filed_names()
        assert mixed & before and mixed - before  # both names are asked for
        other = node()
        assert len(await other.find("T", KEYS)) == 40
        await other.append(canaries("new", "new", key=A))
        assert (await store.find("T", [A]))[A][0].turn == "new"
        # An entry that changes meanwhile is still found by its names, and deleted with them.
        assert await other.forget(EntryFilter(turn="t1")) == 1
        assert await other.forget(EntryFilter(turn="t38")) == 1
        assert await other.purge(session="s2") == await other.purge(session="s39") == 1
        assert await other.prune_index(dry_run=True) == 0
        assert await re_encrypt(store.vault, RING) < 40
        assert not await filed_names() & before
        assert len(await store.find("T", KEYS)) == 38
        assert len(await store.vault.key_rows()) == 2
        assert await store.prune_index(dry_run=True) == 0

    async def test_what_is_opened_is_found_before_all_of_it_is(self, node, small_pages):
        store = node()
        for n, key in enumerate(KEYS):
            await store.append(canaries(f"s{n}", f"t{n}", key=key))
        assert len(await store.find("T", KEYS)) == 40

        def stop(done, total):
            if done > 0.6 * total:
                raise Interrupted

        opener = node(seals=False)
        with pytest.raises(Interrupted):
            await opener.vault.reseal(plain=True, progress=stop)
        assert (await store.vault.seal_state()).plain
        for one in (opener, store, node(seals=False), node()):
            assert len(await one.find("T", KEYS)) == 40

    async def test_a_process_that_is_killed_leaves_everything_readable(
        self, node, address, filed_names
    ):
        store = node()
        for n, key in enumerate(KEYS):
            await store.append(canaries(f"s{n}", f"t{n}", key=key))
        before = await filed_names()
        ring = " ".join(key.line() for key in (ONE, TWO))
        killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, address, ring)
        assert await asyncio.wait_for(killed.wait(), 60) == -signal.SIGKILL
        mixed = await filed_names()
        assert mixed & before and mixed - before
        assert len(await store.find("T", KEYS)) == 40
        assert await check_keys(store.vault, RING) == []
        await re_encrypt(store.vault, RING)
        assert not await filed_names() & before
        assert len(await store.find("T", KEYS)) == 40
        assert len(await store.vault.key_rows()) == 2

    async def test_a_plain_entry_that_changes_is_sealed_and_filed_with_the_others(
        self, node, plain_node, filed_names
    ):
        plain = plain_node()
        await plain.append(canaries(key=A))
        await plain.append(canaries("z", "t2", key=B))
        plain_names = await filed_names()
        await plain.close()
        store = node()
        await store.append(canaries("y", "t3", key=b"C" * 16))
        assert await store.forget(EntryFilter(turn="t1")) == 1
        await re_encrypt(store.vault, RING)
        assert not (await store.vault.seal_state()).plain
        assert not await filed_names() & plain_names
        assert set(await store.find("T", [A, B])) == {A, B}

    async def test_a_run_that_ends_late_does_not_delete_keys_of_the_next(self, node):
        """Three runs overlap: the first is done, the third has begun, then the second ends."""
        store = node()
        await store.append(canaries())
        resealed, go_on = asyncio.Event(), asyncio.Event()
        late = store.vault
        reseal = late.reseal

        async def slow(**options):
            count = await reseal(**options)
            resealed.set()
            await go_on.wait()
            return count

        late.reseal = slow
        second = asyncio.ensure_future(re_encrypt(late, RING))
        await resealed.wait()
        await re_encrypt(store.vault, RING)
        third = store.vault

        async def nothing(**options):
            raise Interrupted

        third.reseal = nothing
        with pytest.raises(Interrupted):
            await re_encrypt(third, RING)
        go_on.set()
        await second
        assert (await node().find("T", [A]))[A][0].thoughts
        assert await check_keys(store.vault, RING) == []

    async def test_a_tenant_that_is_deleted_meanwhile_and_comes_back_keeps_its_new_keys(self, node):
        store, vault = node(), node().vault
        await store.append(canaries())
        reseal = vault.reseal

        async def then_deleted(**options):
            count = await reseal(**options)
            await store.purge(tenant="T")
            await store.append(canaries("new", "new", key=B))
            return count

        vault.reseal = then_deleted
        await re_encrypt(vault, RING, names=True)
        assert B in await node().find("T", [B])
        assert await check_keys(vault, RING) == []

    async def test_a_tenant_that_was_deleted_gets_no_keys(self, node):
        store, vault = node(), node().vault
        await store.append(canaries())
        add_keys = vault.add_keys

        async def deleted_before(rows):
            await store.purge(tenant="T")
            return await add_keys(rows)

        vault.add_keys = deleted_before
        await re_encrypt(vault, RING)
        assert await vault.key_rows() == []
        await store.append(canaries("new", "t2", key=B))
        assert B in await node().find("T", [B])

    async def test_old_keys_that_are_wrapped_again_meanwhile_are_deleted(self, node):
        store, vault = node(), node().vault
        await store.append(canaries())
        reseal = vault.reseal

        async def then_rotated(**options):
            count = await reseal(**options)
            await rotate(store.vault, RING, "key-one")
            return count

        vault.reseal = then_rotated
        await re_encrypt(vault, RING)
        assert len(await vault.key_rows()) == 2
        assert A in await node(ONE).find("T", [A])

    async def test_everything_is_found_while_keys_and_names_change(self, node):
        nodes = [node(), node()]
        for n, key in enumerate(KEYS):
            await nodes[0].append(canaries(f"s{n}", f"t{n}", key=key))
        stop, count = asyncio.Event(), 0

        async def talk(one):
            nonlocal count
            while not stop.is_set():
                count += 1
                turn, key = f"more{count}", f"more{count}".encode().ljust(16)
                await one.append(canaries(f"s-{turn}", turn, key=key))
                for other in nodes:  # what was acknowledged, and what was there before
                    found = await other.find("T", [key, *KEYS])
                    assert len(found) == 41, turn
                await one.forget(EntryFilter(turn=turn))
                await one.reindex(f"s-{turn}", [f.entry for f in await one.index(f"s-{turn}")])

        talking = [asyncio.ensure_future(talk(one)) for one in nodes]
        admin = node()
        for id in ("key-two", "key-one"):
            await rotate(admin.vault, RING, id)
            await re_encrypt(admin.vault, RING, names=True)
        stop.set()
        await asyncio.gather(*talking)
        assert count > 0 and await check_keys(admin.vault, RING) == []
        assert len(await admin.find("T", [f"more{n + 1}".encode().ljust(16) for n in range(count)]))
        assert await admin.prune_index(dry_run=True) == 0
        assert len(await admin.entries(limit=1000)) == 40

    async def test_a_wrong_key_under_the_id_in_use_changes_nothing(self, node):
        await node(ONE).append(canaries())
        other = MasterKey("key-one", b"?" * 32)
        wrong = node(other).vault
        before = await wrong.key_rows()
        with pytest.raises(SealError, match="is not the one that this store was sealed with"):
            await re_encrypt(wrong, KeyRing([other]))
        with pytest.raises(SealError, match="is not the one that this store was sealed with"):
            await re_encrypt(wrong, KeyRing([other]), tenant="another")
        assert await wrong.key_rows() == before
        assert A in await node(ONE).find("T", [A])

    async def test_a_wrong_key_under_the_id_in_use_makes_no_keys_for_a_new_tenant(self, node):
        await node(ONE).append(canaries())
        other = MasterKey("key-one", b"?" * 32)
        wrong = node(other)
        with pytest.raises(SealError, match="is not the one that this store was sealed with"):
            await wrong.append(canaries("new", "t2", tenant="another"))
        assert {row.tenant for row in await wrong.vault.key_rows()} == {"T"}

    async def test_a_ring_without_the_key_in_use_changes_nothing(self, node):
        store = node(ONE)
        await store.append(canaries())
        wrong, before = node(TWO).vault, await store.vault.key_rows()
        with pytest.raises(SealError, match="key-one is not in the ring"):
            await rotate(wrong, KeyRing([TWO]), "key-two")
        assert (await store.vault.seal_state()).primary == "key-one"
        with pytest.raises(SealError, match="key-one is not in the ring"):
            await re_encrypt(wrong, KeyRing([TWO]))
        assert await store.vault.key_rows() == before
        await store.append(canaries("new", "t2", tenant="another"))
        assert A in await node(ONE).find("another", [A])

    async def test_a_ring_that_opens_every_key_takes_over_from_one_that_does_not(self, node):
        store = node(ONE)
        await store.append(canaries())
        await node(TWO).vault.set_primary("key-two")
        await rotate(store.vault, KeyRing([ONE]), "key-one")
        await store.append(canaries("new", "t2", tenant="another"))
        assert A in await node(ONE).find("another", [A])

    async def test_a_node_that_files_entries_anew_uses_the_newest_key(self, node):
        store, other = node(), node()
        await store.append(canaries())
        entries = [filed.entry for filed in await other.index("s")]
        await other.append(canaries("z", "t2", key=B))  # it holds the keys of now
        await re_encrypt(store.vault, RING)
        await other.reindex("s", entries)
        assert (await node().find("T", [A]))[A][0].thoughts
        await re_encrypt(store.vault, RING, names=True)
        await other.reindex("s", entries)
        assert (await node().find("T", [A]))[A][0].thoughts


def keychain(*keys, **options):
    return Keychain(KeyRing(keys or [ONE, TWO]), **options)
