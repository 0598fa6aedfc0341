"""The vault of a file: it tells what is sealed, and refuses what its store was not opened for."""

import sqlite3
from contextlib import closing

import pytest

from stores import rekeying
from stores.contract import A, B
from stores.contract import turn as a_turn
from stores.sealed_samples import canaries, keychain, opened
from thoughtline.errors import SealError, Unavailable
from thoughtline.stores.base import ALL_ENTRIES
from thoughtline.stores.sealing.administration import re_encrypt
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def test_with_sealing_switched_off_what_is_sealed_stays_so(path):
    store = opened(path, keychain())
    await store.append(canaries())
    await store.close()
    opener = opened(path, keychain(seals=False))
    await opener.append(canaries("z", "t2", key=B))
    assert await opener.forget(ALL_ENTRIES) == 2
    assert (await opener.vault.value_counts()).plain == 1
    assert await opener.erase(ALL_ENTRIES) == 2
    assert (await opener.find("T", [A]))[A][0].thoughts[0].forgotten
    await opener.close()


async def test_a_store_is_sealed_or_opened_as_it_was_opened_for(path):
    for chain, plain in ((keychain(), True), (keychain(seals=False), False), (None, False)):
        store = opened(path, chain)
        with pytest.raises(SealError, match="otherwise than this asks for"):
            await store.vault.reseal(plain=plain)
        await store.close()


async def test_a_file_without_keys_says_so(path):
    store = opened(path)
    await store.append(canaries())
    assert (await store.vault.seal_state()).primary == ""
    assert await store.vault.key_rows() == []
    assert (await store.vault.value_counts()).plain == 1
    assert await store.vault.sample(3) == []
    await store.close()


class TestRekeying(rekeying.RekeyingContract):
    @pytest.fixture
    async def node(self, tmp_path):
        made = []

        def node(*keys, **options):
            made.append(opened(tmp_path / "store.db", rekeying.keychain(*keys, **options)))
            return made[-1]

        yield node
        for one in made:
            await one.close()

    @pytest.fixture
    def address(self, tmp_path):
        return f"sqlite:///{tmp_path}/store.db"

    @pytest.fixture
    def plain_node(self, tmp_path):
        return lambda: opened(tmp_path / "store.db")

    @pytest.fixture
    def filed_names(self, tmp_path):
        async def names():
            with closing(sqlite3.connect(tmp_path / "store.db")) as db:
                found = db.execute("SELECT name FROM lookup_keys")
                return {name for (name,) in found}

        return names

    @pytest.fixture
    def small_pages(self, monkeypatch):
        monkeypatch.setattr("thoughtline.stores.sqlite.resealing.PAGE", 5)


async def test_what_was_plain_is_not_said_to_be_gone_while_somebody_reads_it(path, tmp_path):
    plain = SqliteStore(path)
    await plain.append(a_turn("s", "t1", '"a secret thought"'))
    await plain.close()
    ring = KeyRing([new_key()])
    store = SqliteStore(path, keychain=Keychain(ring), timeout=0.05)
    await store.stats()
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM batches").fetchone()
        with pytest.raises(Unavailable, match="run this once more"):
            await re_encrypt(store.vault, ring)
        assert b"a secret thought" in path.read_bytes()
    await re_encrypt(store.vault, ring)
    wal = tmp_path / "store.db-wal"
    assert b"a secret thought" not in path.read_bytes() + wal.read_bytes()
    await store.close()
