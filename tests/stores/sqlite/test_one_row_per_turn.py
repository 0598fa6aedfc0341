"""A file with a row per event becomes one with a row per turn: the same events, the same entries."""

import shutil
import sqlite3
from unittest.mock import Mock

import msgspec
import pytest

from stores.samples import fork, notes, refusal, turn
from support.sqlite_files import edit, held, look
from thoughtline.errors import Unavailable
from thoughtline.log.events import Outcome
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch, EntryFilter
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore, migrations
from thoughtline.stores.sqlite import file as files

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
WHOLE = turn("s", "t1", '"one"', '"two"', keys=[A, B], calls=("call",))
BATCHES = [
    notes("s", 2),
    WHOLE,
    Batch(session="agent", tenant="T", drafts=turn("agent", "t2", '"x"').drafts[:2], kept=True),
    turn("other", "t3", '"theirs"', keys=[A], tenant="U", outcome=Outcome.FAILED),
    Batch(
        session="agent",
        tenant="T",
        drafts=turn("agent", "t2").drafts[1:],
        index=turn("agent", "t2", '"x"', keys=[C]).index,
    ),
    refusal("other", "t1", 0, tenant="U"),
    refusal("s", "t1", 1),
    fork("fork", "s"),
    Batch(session="s", tenant="T", drafts=(), index=(IndexEntry("s", "gone", keys=(C,)),)),
    Batch(session="fork", tenant="T", drafts=turn("fork", "t4", '"y"').drafts[:-1]),
    Batch(session="fork", tenant="T", drafts=(), index=turn("fork", "t4", '"y"', keys=[B]).index),
]
TOLD = ("s", "agent", "other", "fork")


def write_layout_3(path):
    """What version 257a34e would have written of these batches."""
    db = sqlite3.connect(path, isolation_level=None)
    for step, name in list(migrations.steps().items())[:3]:
        db.executescript(migrations.load(name))
        db.execute(f"PRAGMA user_version = {step}")
    db.execute("PRAGMA journal_mode = WAL")
    tenants, sessions, memories = {}, {}, 0
    for batch in BATCHES:
        owner = tenants.setdefault(batch.tenant, len(tenants) + 1)
        number, last = sessions.setdefault(batch.session, (len(sessions) + 1, -1))
        db.execute("INSERT OR IGNORE INTO tenants VALUES (?, ?)", (owner, batch.tenant))
        turns = sum(draft.type == "turn_started" for draft in batch.drafts)
        for draft in batch.drafts:
            last += 1
            fields = msgspec.structs.astuple(draft)
            row = (number, last, *fields[:2], repr(fields[2]), *fields[3:5], None, fields[5])
            db.execute("INSERT INTO events VALUES (NULL,?,?,?,?,?,?,?,?,?)", row)
        sessions[batch.session] = (number, last)
        db.execute(
            "INSERT INTO sessions VALUES (?,?,?,1.0,1.0,?,?,1.5,2.0,?) "
            "ON CONFLICT DO UPDATE SET last = excluded.last, turns = turns + excluded.turns",
            (number, batch.session, owner, last, turns, batch.kept),
        )
        for entry in batch.index:
            memories += 1
            memo = msgspec.json.encode(msgspec.structs.replace(entry, thoughts=())).decode()
            row = (memories, number, entry.turn, "", "", 1, 1, entry.at, memo)
            db.execute("INSERT INTO memories VALUES (?,?,?,?,?,?,?,?,?)", row)
            for key in entry.keys:
                db.execute("INSERT INTO names VALUES (?,?,?)", (owner, key, memories))
    db.execute("DELETE FROM events WHERE position = (SELECT max(position) FROM events)")
    db.execute("UPDATE sessions SET last = last - 1 WHERE session = 'fork'")
    db.close()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "store.db"
    write_layout_3(path)
    return path


@pytest.fixture
async def same():
    """The reference, with the same batches; the last event was deleted."""
    store = MemoryStore()
    for batch in BATCHES:
        if batch.session == "fork" and len(batch.drafts) > 1:
            batch = msgspec.structs.replace(batch, drafts=batch.drafts[:-1])  # noqa: PLW2901
        await store.append(batch)
    return store


async def test_everything_is_as_it_was(path, same):
    store = SqliteStore(path)
    for session in TOLD:
        assert await store.read(session) == await same.read(session)
        assert await store.index(session) == await same.index(session)
    for tenant in ("T", "U"):
        assert await store.find(tenant, [A, B, C]) == await same.find(tenant, [A, B, C])
    for wanted in (EntryFilter(), EntryFilter(call="call"), EntryFilter(provider="deepseek")):
        for _ in range(2):
            rows = [(e.turn, e.call) for e in await store.entries(wanted)]
            assert rows == [(e.turn, e.call) for e in await same.entries(wanted)]
            await store.summarise()
    assert (await store.stats()).events == (await same.stats()).events
    assert (await store.stats()).entries == (await same.stats()).entries
    assert (await store.history(None)).events == (await same.history(None)).events
    assert await store.purge(session="s") == 0  # a fork goes on from it
    await store.close()
    assert look(path, "PRAGMA user_version") == [(max(migrations.steps()),)]
    assert look(path, "PRAGMA journal_mode") == [("wal",)]


async def test_positions_go_on_where_they_were(path):
    (newest,) = look(path, "SELECT seq FROM sqlite_sequence WHERE name = 'events'")
    store = SqliteStore(path)
    before = (await store.history(())).position
    assert before >= newest[0]
    await store.append(notes("s"))
    page = await store.history(None, after=before)
    assert (len(page.events), page.position) == (1, before + 1)
    await store.close()


async def test_nothing_of_the_old_tables_is_left(path):
    store = SqliteStore(path)
    await store.read("s")
    await store.erase(EntryFilter())
    await store.close()
    assert b"theirs" not in path.read_bytes()
    assert not look(path, "SELECT 1 FROM sqlite_schema WHERE name IN ('events', 'names')")


async def test_it_waits_until_nobody_else_has_the_file_open(path):
    store = SqliteStore(path, timeout=0.1)
    with held(path, "SELECT 1 FROM events"):
        with pytest.raises(Unavailable, match="locked by another process"):
            await store.append(notes("s"))
        assert look(path, "PRAGMA user_version") == [(3,)]
    await store.append(notes("s"))
    await store.close()


async def test_a_disk_without_room_leaves_the_file_as_it_was(path, monkeypatch):
    before = path.read_bytes()
    store = SqliteStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(files.shutil, "disk_usage", lambda _: Mock(free=path.stat().st_size))
        with pytest.raises(Unavailable, match=r"earlier version.*free some space"):
            await store.append(notes("s"))
    assert path.read_bytes() == before
    await store.append(notes("s"))
    await store.close()


async def test_damage_leaves_the_file_as_it_was(path, tmp_path):
    edit(path, "UPDATE events SET data = CAST(x'ff' AS TEXT) WHERE position = 4")
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    store = SqliteStore(path)
    with pytest.raises(Exception, match="damaged"):
        await store.append(notes("s"))
    await store.close()
    everything = "SELECT * FROM events WHERE position <> 4"
    assert look(path, everything) == look(copy, everything)
    assert look(path, "PRAGMA user_version") == [(3,)]


async def test_how_far_it_is_is_told(path):
    store, told = SqliteStore(path), []
    store._file.progress = lambda done, total: told.append((done, total))
    await store.read("s")
    await store.close()
    assert told
    assert told[-1][0] <= told[-1][1]
