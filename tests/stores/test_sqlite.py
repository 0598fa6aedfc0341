"""What is particular to the file: migrations, plans, groups, hits, threads."""

import asyncio
import re
import sqlite3
import threading

import pytest

from stores.samples import StillClock, notes, plain, turn
from thoughtline.errors import Conflict, StoreError
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import (
    SqliteStore,
    bulk,
    forgetting,
    migrations,
    purging,
    queries,
    rows,
    writer,
)
from thoughtline.stores.sqlite.files import File
from thoughtline.stores.sqlite.sheets import sheet

NAME = b"n" * 16


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "store.db", clock=StillClock())
    yield store
    await store.close()


def edit(path, *statements):
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def look(path, statement):
    db = sqlite3.connect(path)
    found = db.execute(statement).fetchall()
    db.close()
    return found


# -- migrations ------------------------------------------------------------------------------


def test_a_reader_beside_the_one_who_creates_the_file(tmp_path):
    """Between any two looks at a new file, its creator may commit."""
    path = tmp_path / "store.db"
    edit(path, "PRAGMA journal_mode = WAL")

    class Interrupted(sqlite3.Connection):
        looks = 0

        def execute(self, statement, *rest):
            found = super().execute(statement, *rest)
            if "application_id" in statement and not Interrupted.looks:
                Interrupted.looks += 1
                found = [found.fetchone()]
                File(path, timeout=1, synchronous="full").for_writing().close()
                return type("Found", (), {"fetchone": lambda _: found[0]})()
            return found

    db = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
    with pytest.raises(migrations.Absent):
        migrations.check(db, path, complete=True)
    assert migrations.check(db, path, complete=True) == max(migrations.steps())
    db.close()


async def test_a_new_file_has_todays_layout(store, tmp_path):
    await store.append(notes("s"))
    path = tmp_path / "store.db"
    assert look(path, "PRAGMA user_version") == [(max(migrations.steps()),)]
    assert look(path, "PRAGMA application_id") == [(migrations.APPLICATION,)]
    assert look(path, "PRAGMA journal_mode") == [("wal",)]
    assert (
        look(
            path,
            "SELECT name FROM pragma_table_list WHERE NOT strict AND schema = 'main' "
            "AND name NOT LIKE 'sqlite_%'",
        )
        == []
    )


def test_steps_are_numbered_without_gaps():
    assert list(migrations.steps()) == list(range(1, len(migrations.steps()) + 1))


@pytest.mark.parametrize("call", ["append", "read"])
async def test_a_newer_file_is_refused_and_not_touched(tmp_path, call):
    path = tmp_path / "store.db"
    first = SqliteStore(path)
    await first.append(notes("s"))
    await first.close()
    edit(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=r"newer Thoughtline \(layout 99.*upgrade"):
        await (store.append(notes("s")) if call == "append" else store.read("s"))
    await store.close()
    assert path.read_bytes() == before


async def test_the_file_of_another_program_is_refused_and_not_touched(tmp_path):
    path = tmp_path / "store.db"
    edit(path, "CREATE TABLE sessions (id)")
    before = path.read_bytes()
    store = SqliteStore(path)
    for call in (store.append(notes("s")), store.read("s")):
        with pytest.raises(StoreError, match="another program"):
            await call
    await store.close()
    assert path.read_bytes() == before


async def test_a_step_that_is_missing_is_run(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    first = SqliteStore(path)
    written = await first.append(notes("s"))
    await first.close()
    script = "CREATE TABLE more (a TEXT) STRICT; -- two\nINSERT INTO more\nVALUES (';');"
    texts = {"0002_more.sql": script}
    original = migrations.sql
    monkeypatch.setattr(migrations, "steps", lambda: {1: "0001_initial.sql", 2: "0002_more.sql"})
    monkeypatch.setattr(migrations, "sql", lambda name: texts.get(name) or original(name))
    store = SqliteStore(path)
    assert await store.read("s") == written
    await store.close()
    assert look(path, "SELECT a FROM more") == [(";",)]
    assert look(path, "PRAGMA user_version") == [(2,)]


async def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    first = SqliteStore(path)
    written = await first.append(notes("s"))
    await first.close()
    texts = {"0002_bad.sql": "CREATE TABLE more (a);\nINSERT INTO nowhere VALUES (1);"}
    original = migrations.sql
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda: {1: "0001_initial.sql", 2: "0002_bad.sql"})
        patch.setattr(migrations, "sql", lambda name: texts.get(name) or original(name))
        store = SqliteStore(path)
        with pytest.raises(StoreError, match="nowhere"):
            await store.append(notes("s"))
        await store.close()
    store = SqliteStore(path)
    assert await store.read("s") == written
    await store.close()


# -- plans -----------------------------------------------------------------------------------

BIG = ("events", "memories", "names", "sessions", "e", "m", "n", "s")


@pytest.mark.parametrize(
    ("statement", "row", "glue"),
    [
        (queries._find, "(?)", ", "),
        (queries._OF_SESSION, "", ""),
        (queries._OF_ALL, "", ""),
        (queries._SESSIONS.format(whose=""), "", ""),
        (queries._SESSIONS.format(whose=queries._WHOSE), "", ""),
        (bulk.widened(bulk.widened(rows._look, "?", 4), "?", 2), "(?, ?)", ", "),
        (rows._ABOUT, "", ""),
        (rows._FORGET, "?", ", "),
        (rows._FORGET_NAMES, "(tenant = ? AND name = ? AND memory = ?)", " OR "),
        (writer._TOUCH, "(?, ?)", ", "),
        (purging._LOOK, "", ""),
        (purging._REFERRED, "", ""),
        (purging._FILED, "", ""),
        ("DELETE FROM events WHERE session = ?", "", ""),
        (forgetting._FILED, "?", ", "),
        (forgetting._THOUGHTS, "?", ", "),
        (forgetting._BLANK, "(?, ?, ?)", ", "),
    ],
    ids=range(17),
)
def test_no_statement_of_the_hot_path_scans_a_table(tmp_path, statement, row, glue):
    db = File(tmp_path / "store.db", timeout=1, synchronous="normal").for_writing()
    text = bulk.widened(statement, row, 8, glue)
    named = dict.fromkeys(
        ("tenant", "before", "limit", "session", "untouched_since", "number", "internal")
    )
    values = named if re.search(r":\w", text) else [None] * text.count("?")
    plan = [line for *_, line in db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    db.close()
    assert plan
    assert not [line for line in plan if line.startswith("SCAN") and line.split()[1] in BIG]
    assert not [line for line in plan if "TEMP B-TREE" in line]


# -- groups ----------------------------------------------------------------------------------


def counted(store, monkeypatch):
    """Counts the writer's transactions."""
    seen = []
    transact = store._writer._transact
    monkeypatch.setattr(store._writer, "_transact", lambda work: seen.append(1) or transact(work))
    return seen


async def test_batches_that_wait_share_a_commit(store, monkeypatch):
    await store.append(notes("first"))
    seen = counted(store, monkeypatch)
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(20)))
    waiting = [asyncio.ensure_future(store.append(notes(f"s{n % 7}", 2))) for n in range(50)]
    await asyncio.sleep(0)
    gate.set()
    await blocked
    await asyncio.gather(*waiting)
    assert len(seen) == 2  # the one that blocked, and one for all fifty
    assert (await store.stats()).events == 101


async def test_the_thread_is_woken_once_for_what_a_loop_hands_over_at_once(store, monkeypatch):
    rung = []
    ring = store._writer._ring
    monkeypatch.setattr(store._writer, "_ring", lambda loop: rung.append(loop) or ring(loop))
    for count in (50, 1, 2):
        await asyncio.gather(*[store.append(notes(f"s{n % 7}", 2)) for n in range(count)])
    assert len(rung) == 3
    assert (await store.stats()).events == 106


async def test_a_loop_that_ends_at_once_keeps_nobody_waiting(store):
    def hand_over():
        store._writer.append(sheet(notes("s")))
        loop.stop()

    loop = asyncio.new_event_loop()
    loop.call_soon(hand_over)
    await asyncio.to_thread(loop.run_forever)
    loop.close()
    await store.append(notes("z"))
    assert len(await store.read("s")) == len(await store.read("z")) == 1


async def test_a_transaction_does_not_grow_without_end(store, monkeypatch):
    monkeypatch.setattr(writer, "GROUP", 10)
    await store.append(notes("first"))
    seen = counted(store, monkeypatch)
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(20)))
    waiting = [asyncio.ensure_future(store.append(notes("s"))) for _ in range(40)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(blocked, *waiting)
    assert len(seen) >= 5
    assert [e.seq for e in await store.read("s")] == list(range(40))


async def test_a_group_with_a_bad_batch_is_written_without_it(store, monkeypatch):
    await store.append(notes("s"))
    gate = threading.Event()
    blocked = asyncio.ensure_future(store._writer.run(lambda db: gate.wait(20)))
    batches = [
        notes("s", 2),
        Batch(session="s", tenant="T", drafts=(plain(), plain(version="not a number"))),
        notes("s", expect=2),
        notes("s", expect=99),
        turn("s", "t1", names=[NAME]),
    ]
    waiting = [asyncio.ensure_future(store.append(batch)) for batch in batches]
    await asyncio.sleep(0)
    gate.set()
    await blocked
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(o) for o in outcomes] == [list, StoreError, list, Conflict, list]
    events = await store.read("s")
    assert [e.seq for e in events] == list(range(6))
    assert outcomes[0] + outcomes[2] + outcomes[4] == events[1:]
    assert set(await store.find("T", [NAME])) == {NAME}


async def test_nothing_is_answered_before_the_commit(store, monkeypatch):
    await store.append(notes("s"))
    path = store._file.path
    held = []
    settle = writer._settle

    def spy(jobs):
        held.append(len(look(path, "SELECT 1 FROM events")))
        settle(jobs)

    monkeypatch.setattr(writer, "_settle", spy)
    await store.append(notes("s", 4))
    assert held == [5]


# -- hits ------------------------------------------------------------------------------------


async def test_hits_are_not_written_on_the_way(store, monkeypatch):
    await store.append(turn("s", "t1", names=[NAME]))
    seen = counted(store, monkeypatch)
    for _ in range(50):
        await store.find("T", [NAME])
    assert seen == []
    await store.sessions()
    assert len(seen) == 2  # the hits, all at once, and the job that asked for it


async def test_hits_are_written_after_a_while(tmp_path):
    path = tmp_path / "store.db"
    clock = StillClock()
    store = SqliteStore(path, clock=clock, touch_every=0.0)
    await store.append(turn("s", "t1", names=[NAME]))
    clock.now += 5
    await store.find("T", [NAME])
    for _ in range(500):
        if look(path, "SELECT touched FROM sessions") == [(1005.0,)]:
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("never written")
    await store.close()


# -- use -------------------------------------------------------------------------------------


def test_a_store_serves_one_event_loop_after_another(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    for n in range(3):
        (event,) = asyncio.run(store.append(notes("s")))
        assert event.seq == n
    asyncio.run(store.close())


async def test_closing_leaves_one_file_and_no_thread(store, tmp_path):
    before = set(threading.enumerate())
    await store.append(notes("s"))
    await store.read("s")
    await store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
    new = set(threading.enumerate()) - before
    assert not [thread for thread in new if thread.name.startswith("thoughtline")]


async def test_what_was_purged_is_not_left_in_the_file(store, tmp_path):
    await store.append(turn("s", "t1", '"a secret thought"', names=[NAME]))
    await store.append(notes("other", 50))
    await store.purge(session="s")
    await store.close()
    assert b"secret" not in (tmp_path / "store.db").read_bytes()


async def test_the_file_is_its_users_alone(store, tmp_path):
    await store.append(notes("s"))
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


async def test_tenants_without_sessions_are_forgotten(store, tmp_path):
    await store.append(notes("a", tenant="A"))
    await store.append(notes("b", tenant="B"))
    await store.append(notes("c", tenant="B"))
    await store.purge(session="a")
    await store.purge(session="b")
    assert look(tmp_path / "store.db", "SELECT tenant FROM tenants") == [("B",)]


async def test_positions_are_never_used_twice(store, tmp_path):
    await store.append(notes("a", 3))
    await store.purge(session="a")
    await store.append(notes("b"))
    await store.close()
    assert look(tmp_path / "store.db", "SELECT position FROM events") == [(4,)]


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 511, 513, 1030])
async def test_any_number_of_rows_is_written(store, count):
    written = await store.append(notes("s", count))
    assert await store.read("s") == written
    assert len(written) == count


def test_a_wrong_setting_is_refused(tmp_path):
    with pytest.raises(StoreError, match="normal or full"):
        SqliteStore(tmp_path / "store.db", synchronous="off")
