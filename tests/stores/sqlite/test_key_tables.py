"""Keys in the file: who has none is refused, and what is rolled back seals nothing."""

import asyncio

import pytest

from stores.contract import A, B
from stores.sealed_samples import TWO, canaries, keychain, opened
from thoughtline.errors import SealError
from thoughtline.stores.sealing.ring import MasterKey
from thoughtline.stores.sqlite import rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def test_without_its_keys_a_file_is_refused_and_the_key_is_named(path):
    store = opened(path, keychain())
    await store.append(canaries())
    await store.close()
    for chain in (None, keychain(TWO), keychain(MasterKey("key-one", b"x" * 32))):
        other = opened(path, chain)
        for work in (other.find("T", [A]), other.read("s"), other.append(canaries(name="t2"))):
            with pytest.raises(SealError, match="key-one"):
                await work
        await other.close()


async def test_a_process_without_keys_notices_that_the_file_is_sealed_meanwhile(path):
    plain, sealing = opened(path), opened(path, keychain())
    await plain.append(canaries())
    assert await plain.find("T", [A])
    await sealing.append(canaries(name="t2", key=B))
    for work in (plain.find("T", [B]), plain.append(canaries(name="t3"))):
        with pytest.raises(SealError, match="key-one"):
            await work
    found = await sealing.find("T", [A, B])
    assert [found[key][0].turn for key in (A, B)] == ["t1", "t2"]
    await plain.close()
    await sealing.close()


@pytest.mark.parametrize("how", ["transaction", "savepoint"])
async def test_keys_that_were_rolled_back_seal_nothing(path, how, monkeypatch):
    store = opened(path, keychain())
    add, fail = rows._add, [True, how == "savepoint"]

    def unsure(*arguments):
        add(*arguments)
        if fail and fail.pop():
            raise ValueError("after the tenant's keys were made")

    monkeypatch.setattr(rows, "_add", unsure)
    results = await asyncio.gather(
        store.append(canaries("s1", "t1")),
        store.append(canaries("s2", "t2", key=B)),
        return_exceptions=True,
    )
    assert [isinstance(one, Exception) for one in results] == [how == "savepoint", False]
    await store.close()
    again = opened(path, keychain())
    assert (await again.find("T", [B]))[B][0].thoughts and len(await again.read("s2")) == 4
    assert len(await again.vault.key_rows()) == 2
    await again.close()
