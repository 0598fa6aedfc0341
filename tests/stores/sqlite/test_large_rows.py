"""Large turns: packed beside the event loop, and written slice by slice without copies."""

import asyncio
import gc
import threading
import tracemalloc

import pytest
from msgspec.structs import replace

from stores.samples import notes
from stores.sealed_samples import keychain
from support.waiting import eventually
from thoughtline.stores.sqlite import SqliteStore, inserts, rows, writer

SIZE = 6 << 20


def large(session, kind="reasoning", letters="a"):
    """A heavy batch, whose last event has much to say."""
    batch = notes(session, 2)
    said = '{"text":"' + letters * (SIZE // len(letters.encode())) + '"}'
    drafts = (*batch.drafts[:-1], replace(batch.drafts[-1], type=kind, data=said))
    return replace(batch, drafts=drafts, heavy=True)


@pytest.mark.parametrize("kind", ["reasoning", "note"])
@pytest.mark.parametrize("sealed", [False, True])
async def test_what_is_written_in_slices_is_read_as_it_was(tmp_path, kind, sealed):
    keys = keychain() if sealed else None
    store = SqliteStore(tmp_path / "t.db", keychain=keys)
    batch = large("s", kind, "aä😀")
    await asyncio.gather(store.append(notes("a")), store.append(batch), store.append(notes("z")))
    await store.close()
    again = SqliteStore(tmp_path / "t.db", keychain=keys)
    read = [event.data for event in await again.read("s")]
    assert read == [draft.data for draft in batch.drafts]
    assert (await again.stats()).sessions == 3
    await again.close()


async def test_it_is_packed_in_the_writers_thread(tmp_path, monkeypatch):
    seen, pack = [], inserts.pack

    def noted(batch):
        seen.append((batch.session, threading.current_thread().name))
        return pack(batch)

    monkeypatch.setattr(inserts, "pack", noted)
    store = SqliteStore(tmp_path / "t.db")
    await store.append(notes("small"))
    await store.append(large("s"))
    await store.close()
    assert [name == "thoughtline-writer" for _, name in seen] == [False, True]


async def test_what_cannot_be_packed_fails_alone(tmp_path, monkeypatch):
    def broken(batch):
        raise ValueError("no such value")

    monkeypatch.setattr(writer, "pack_batch", broken)
    store = SqliteStore(tmp_path / "t.db")
    one, other = await asyncio.gather(
        store.append(large("s")), store.append(notes("z")), return_exceptions=True
    )
    assert isinstance(one, Exception)
    assert other == 0
    await store.close()


async def test_it_is_packed_once_and_not_copied_to_be_written(tmp_path):
    store = SqliteStore(tmp_path / "t.db")
    await store.append(notes("first"))
    batch = large("s")
    tracemalloc.start()
    await store.append(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await store.close()
    assert peak < 2 * SIZE  # the encoder takes half as much again as it needs


async def test_nobody_holds_what_is_written(tmp_path):
    store = SqliteStore(tmp_path / "t.db")
    await store.append(large("held"))

    def held():
        made = [one for one in gc.get_objects() if isinstance(one, inserts.InsertBatch)]
        return [one.batch.session for one in made if one.batch.heavy]

    await eventually(lambda: "held" not in held())
    await store.close()


async def test_the_cache_of_the_file_stays_as_it_is(tmp_path):
    store = SqliteStore(tmp_path / "t.db")
    await store.append(notes("first"))
    before = await store._writer.run(lambda db: db.execute(rows._CACHE).fetchone())
    await store.append(large("s"))
    assert await store._writer.run(lambda db: db.execute(rows._CACHE).fetchone()) == before
    await store.close()
