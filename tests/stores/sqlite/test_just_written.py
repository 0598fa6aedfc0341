"""What was just written is found without the file, and never when something may have changed."""

import asyncio

import pytest
from msgspec.structs import replace

from stores.samples import notes, refusal, turn
from support.sqlite_files import edit
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import ALL_ENTRIES, Batch
from thoughtline.stores.sqlite import SqliteStore, just_written

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


@pytest.fixture
def asked(store, monkeypatch):
    """The look-ups that went to the file."""
    keys = []
    read = store._readers.run

    async def counted(work):
        keys.append(work.keywords.get("keys"))
        return await read(work)

    monkeypatch.setattr(store._readers, "run", counted)
    return keys


async def turns(store, *keys, tenant="T"):
    found = await store.find(tenant, keys)
    return {key: [entry.turn for entry in entries] for key, entries in found.items()}


async def test_the_turn_before_needs_no_look_up(store, asked):
    batch = replace(turn("s", "t1", '"one"', keys=[A, B]), id="t1")
    await store.append(batch)
    assert await store.find("T", [A, B]) == {A: list(batch.index), B: list(batch.index)}
    await store.append(turn("s", "t2", '"two"', keys=[A]))
    assert await turns(store, A, B) == {A: ["t2", "t1"], B: ["t1"]}
    assert asked == []
    assert await turns(store, C) == {}
    assert await turns(store, A, tenant="U") == {}
    assert asked == [[C], [A]]


async def test_what_was_filed_before_is_looked_up(store, tmp_path, asked):
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    store._writer.just_written.clear()
    await store.append(turn("z", "t2", '"two"', keys=[A, B]))
    assert await turns(store, A, B) == {A: ["t2", "t1"], B: ["t2"]}
    assert asked == [[A]]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.append(refusal("s", "t1", 0)),
        lambda store: store.append(
            Batch(session="s", tenant="T", drafts=(), index=(IndexEntry("s", "t1", keys=(C,)),))
        ),
        lambda store: store.purge(session="s"),
        lambda store: store.forget(ALL_ENTRIES),
        lambda store: store.erase(ALL_ENTRIES),
        lambda store: store.reindex("s", (), remove=["t1"]),
    ],
    ids=["quarantine", "filed again", "purge", "forget", "erase", "reindex"],
)
async def test_what_has_changed_is_looked_up(store, tmp_path, change):
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    assert set(await turns(store, A)) == {A}
    await change(store)
    fresh = SqliteStore(tmp_path / "store.db")
    assert await store.find("T", [A, C]) == await fresh.find("T", [A, C])
    await fresh.close()


async def test_what_another_process_writes_ends_it(store, tmp_path, asked):
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    edit(tmp_path / "store.db", "UPDATE batches SET memo = x''")
    assert await turns(store, A) == {}
    assert asked == [[A]]


async def test_what_another_process_writes_right_after_the_commit_ends_it(
    store, tmp_path, monkeypatch
):
    await store.append(notes("s"))
    count_change = store._writer._count_change

    def after_the_other():
        if not store._writer._db.in_transaction:
            monkeypatch.undo()
            edit(tmp_path / "store.db", "UPDATE batches SET memo = x''")
        return count_change()

    monkeypatch.setattr(store._writer, "_count_change", after_the_other)
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    assert await turns(store, A) == {}


async def test_a_refused_turn_is_looked_up(store, asked):
    await store.append(refusal("z", "t1", 0))
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    [entry] = (await store.find("T", [A]))[A]
    assert entry.quarantined == {0}


async def test_it_is_bounded(store, asked, monkeypatch):
    monkeypatch.setattr(just_written, "MAX_TURNS", 2)
    for number in range(4):
        await store.append(turn("s", f"t{number}", '"x"', keys=[bytes([number]) * 16]))
    await store.append(notes("s"))
    assert set(await turns(store, bytes([3]) * 16)) == {bytes([3]) * 16}
    assert asked == []
    assert set(await turns(store, bytes([0]) * 16)) == {bytes([0]) * 16}
    assert asked == [[bytes([0]) * 16]]


async def test_of_two_in_one_transaction_the_first_is_not_overlooked(store, tmp_path):
    """The start of the first turn is in an earlier batch: only the file puts it together."""
    whole = turn("s", "t1", '"one"', keys=[A])
    await store.append(replace(whole, drafts=whole.drafts[:1], index=()))
    rest = replace(whole, drafts=whole.drafts[1:])
    await asyncio.gather(store.append(rest), store.append(turn("z", "t2", '"two"', keys=[A])))
    fresh = SqliteStore(tmp_path / "store.db")
    assert await turns(store, A) == await turns(fresh, A) == {A: ["t2", "t1"]}
    await fresh.close()


async def test_what_nobody_looks_for_does_not_pile_up(store, monkeypatch, asked):
    monkeypatch.setattr(just_written, "MAX_BYTES", 20_000)
    await store.append(turn("s", "t0", '"one"', keys=[A]))
    assert await turns(store, A) == {A: ["t0"]}
    for n in range(1, 40):
        await store.append(turn("s", f"t{n}", '"one"', keys=[A]))
    assert store._writer.just_written._added_size <= 20_000
    assert asked == []
    newest = [f"t{n}" for n in range(39, 39 - just_written.MAX_CANDIDATES, -1)]
    assert await turns(store, A) == {A: newest}  # from the file
    assert asked == [[A]]
