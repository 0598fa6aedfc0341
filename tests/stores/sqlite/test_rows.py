"""Groups of batches in the tables."""

import asyncio
import threading

import pytest
from msgspec.structs import replace

from stores.samples import notes, plain, refusal, turn
from support.sqlite_files import NAME, look
from thoughtline.errors import Conflict, StoreError
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import rows
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.inserts import insert_batch

KEYS = [bytes([n]) * 16 for n in range(20)]


async def test_a_group_with_a_bad_batch_is_written_without_it(store, monkeypatch):
    await store.append(notes("s"))
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(60)))
    batches = [
        notes("s", 2),
        Batch(session="\ud800", tenant="T", drafts=(plain(),)),  # no text for a database
        notes("s", expect=2),
        notes("s", expect=99),
        turn("s", "t1", keys=[NAME]),
    ]
    waiting = [asyncio.ensure_future(store.append(batch)) for batch in batches]
    await asyncio.sleep(0)
    gate.set()
    await blocked
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(o) for o in outcomes] == [int, StoreError, int, Conflict, int]
    events = await store.read("s")
    assert [e.seq for e in events] == list(range(6))
    assert [outcomes[0], outcomes[2], outcomes[4]] == [1, 3, 4]
    assert set(await store.find("T", [NAME])) == {NAME}


async def test_positions_are_never_used_twice(store, tmp_path):
    await store.append(notes("a", 3))
    await store.purge(session="a")
    await store.append(notes("b"))
    await store.close()
    assert look(tmp_path / "store.db", "SELECT position FROM batches") == [(4,)]


@pytest.mark.parametrize(
    "batch",
    [
        replace(turn("s", "t1", '"x"', keys=KEYS[:3]), id="t1"),
        replace(turn("s", "t1", '"x"', keys=KEYS[:3]), id="another"),
        replace(turn("s", "new", '"x"', keys=KEYS[1:]), id="new"),
        replace(turn("s", "new", '"x"'), id="new"),
        replace(turn("s", "refused", '"x"', keys=KEYS[3:4]), id="b"),
        replace(turn("z", "t1", '"x"', tenant="U", keys=KEYS[:3]), id="t1"),
        replace(notes("s"), id="e0"),
        notes("s"),
    ],
    ids=["again", "filed again", "new", "no keys", "refused", "new session", "no turn", "no id"],
)
async def test_of_a_turn_alone_the_same_is_known_as_in_a_group(store, tmp_path, monkeypatch, batch):
    await store.append(replace(turn("s", "t1", '"x"', keys=KEYS[:2]), id="t1"))
    await store.append(refusal("s", "refused", 0))
    await store.close()
    db = DatabaseFile(tmp_path / "store.db", timeout=1, synchronous="normal").for_writing()
    alone = rows._look_up(db, [insert_batch(batch)])
    monkeypatch.setattr(rows, "MOST_KEYS", -1)
    assert alone == rows._look_up(db, [insert_batch(batch)])
    db.close()
