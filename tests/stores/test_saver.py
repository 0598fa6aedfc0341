"""Batches are saved and read in a thread, and their file goes when all are released."""

import pytest

from stores.samples import notes, turn
from thoughtline.stores.saver import Saver
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey


@pytest.fixture
async def saver(tmp_path):
    saver = Saver(tmp_path / "store.db")
    yield saver
    saver.close()


async def test_a_file_goes_with_its_last_batch(saver, tmp_path):
    batches = [notes("s"), turn("z", "t1", '"hm"')]
    saved = [await saver.save(batch) for batch in batches]
    assert [await saver.load(one) for one in saved] == batches
    await saver.release([saved[1]])
    assert len(list(tmp_path.iterdir())) == 1
    await saver.release([saved[0]])
    assert not list(tmp_path.iterdir())
    again = await saver.save(batches[0])  # a new file
    assert await saver.load(again) == batches[0]


async def test_what_is_left_is_adopted_with_a_description(saver, tmp_path):
    first = Saver(tmp_path / "store.db")
    for name in "ab":
        await first.save(notes(name))
    first.close()
    found, damaged = await saver.adopt(lambda batch: batch.session)
    assert [session for _, session in found] == ["a", "b"]
    assert damaged == 0
    for saved, _ in found:
        await saver.release([saved])
    assert not list(tmp_path.iterdir())


async def test_a_batch_is_replaced_where_it_is(saver):
    saved = await saver.save(notes("s", 3))
    other = await saver.replace(saved, notes("s"))
    assert await saver.load(other) == notes("s")


async def test_without_a_store_file_nothing_is_saved():
    saver = Saver(None)
    with pytest.raises(OSError, match="no file"):
        await saver.save(notes("s"))
    assert await saver.adopt(len) == ([], 0)
    saver.close()


async def test_a_file_whose_key_is_missing_stays_for_who_has_it(saver, tmp_path):
    keychain = Keychain(KeyRing([MasterKey("one", b"1" * 32)]))
    first = Saver(tmp_path / "store.db", keychain)
    await first.save(notes("a"))
    first.close()
    assert await saver.adopt(lambda batch: batch.session) == ([], 0)
    assert "the key one" in saver.unopened
    again = Saver(tmp_path / "store.db", keychain)
    found, _ = await again.adopt(lambda batch: batch.session)
    assert [session for _, session in found] == ["a"]
    again.close()
