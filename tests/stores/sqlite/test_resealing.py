"""Rows are sealed, and opened again, while a file is in use."""

import pytest
from msgspec.structs import replace

from stores.contract import A, B
from stores.sealed_samples import CANARY, canaries, keychain, opened, raw
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.sqlite import resealing


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


async def test_a_file_is_sealed_and_opened_while_it_is_used(path):
    plain = opened(path)
    for n in range(40):
        await plain.append(canaries(f"s{n}", f"t{n}"))
    await plain.forget(EntryFilter(turn="t3"))
    expected = [await plain.read(f"s{n}") for n in range(40)]
    listed = [replace(one, touched=0.0) for one in await plain.entries(limit=100, thoughts=True)]
    stats = await plain.stats()
    await plain.close()
    store = opened(path, keychain())
    await store.vault.set_primary("key-one")
    assert len((await store.find("T", [A]))[A]) == 32
    steps = []
    assert await store.vault.reseal(progress=lambda *step: steps.append(step)) == 40
    assert CANARY.encode() not in raw(path) and A not in raw(path)  # and others have it open
    assert steps[-1][0] == steps[-1][1] > 0
    assert (await store.vault.value_counts()).plain == 0
    assert not (await store.vault.seal_state()).plain
    assert [await store.read(f"s{n}") for n in range(40)] == expected
    entries = await store.entries(limit=100, thoughts=True)
    assert [replace(one, touched=0.0) for one in entries] == listed
    assert await store.stats() == stats
    assert len(await store.entries(EntryFilter(call=f"{CANARY}-call"), limit=100)) == 39
    assert len((await store.find("T", [A]))[A]) == 32
    assert await store.prune_index() == 0
    await store.close()
    assert CANARY.encode() not in raw(path) and A not in raw(path)
    back = opened(path, keychain(seals=False))
    await back.append(canaries("s40", "t40"))
    assert (await back.vault.seal_state()).plain
    assert await back.vault.reseal(plain=True) == 40
    assert (await back.vault.seal_state()).primary == ""
    await back.close()
    plain = opened(path)
    assert [await plain.read(f"s{n}") for n in range(40)] == expected
    assert await plain.prune_index() == 0
    assert len((await plain.find("T", [A]))[A]) == 32
    await plain.close()


async def test_rows_that_are_as_they_should_be_are_passed_over(path):
    store = opened(path, keychain())
    for n in range(3):
        await store.append(canaries(f"s{n}", f"t{n}", key=B))
    assert await store.vault.reseal() == 0
    await store.append(canaries("z", "t9", tenant="U"))
    assert await store.vault.reseal(tenant="U", rate=1e6) == 0
    await store.close()


async def test_what_is_sealed_while_all_is_opened_keeps_its_keys(path):
    sealing, opening = opened(path, keychain()), opened(path, keychain(seals=False))
    await sealing.append(canaries("s", "t1"))
    expected = await sealing.read("s")
    write = opening.vault._write
    vault = opening.vault
    sealed_again = []

    async def before_it_ends(work):
        if work.func is resealing.finish and not sealed_again:
            sealed_again.append(await sealing.vault.reseal())
        return await write(work)

    vault._write = before_it_ends
    assert await vault.reseal(plain=True) == 2
    assert sealed_again == [1]
    assert await opening.read("s") == expected
    assert not (await vault.seal_state()).primary
    await opening.close()
    await sealing.close()
