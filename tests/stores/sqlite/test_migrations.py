"""Layouts of the file: today's, earlier ones, and those of others."""

import pytest

from stores.samples import appended, notes
from support.sqlite_files import edit, look
from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.sqlite import SqliteStore, migrations
from thoughtline.stores.sqlite.file import DatabaseFile


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
    names = [entry.name for entry in migrations.SQL.iterdir() if entry.name[:4].isdigit()]
    assert list(migrations.steps()) == list(range(1, len(names) + 1))


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
    written = await appended(first, notes("s"))
    await first.close()
    script = "CREATE TABLE more (a TEXT) STRICT; -- two\nINSERT INTO more\nVALUES (';');"
    texts = {"more.sql": script}
    original, known = migrations.load, migrations.steps()
    following = max(known) + 1
    monkeypatch.setattr(migrations, "steps", lambda: {**known, following: "more.sql"})
    monkeypatch.setattr(migrations, "load", lambda name: texts.get(name) or original(name))
    store = SqliteStore(path)
    assert await store.read("s") == written
    await store.close()
    assert look(path, "SELECT a FROM more") == [(";",)]
    assert look(path, "PRAGMA user_version") == [(following,)]


async def test_a_file_that_somebody_has_open_is_not_changed_under_them(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    running, store = SqliteStore(path), SqliteStore(path, timeout=0.05)
    written = await appended(running, notes("s"))
    original, known = migrations.load, migrations.steps()
    script = "CREATE TABLE more (a TEXT) STRICT;"
    monkeypatch.setattr(migrations, "steps", lambda: {**known, max(known) + 1: "more.sql"})
    monkeypatch.setattr(migrations, "load", lambda n: script if n == "more.sql" else original(n))
    with pytest.raises(Unavailable, match="locked"):
        await store.append(notes("s"))
    await running.close()
    assert DatabaseFile(path, timeout=0.05, synchronous="normal").migrate() == ["more.sql"]
    assert await store.read("s") == written
    await store.close()


async def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "store.db"
    first = SqliteStore(path)
    written = await appended(first, notes("s"))
    await first.close()
    texts = {"bad.sql": "CREATE TABLE more (a);\nINSERT INTO nowhere VALUES (1);"}
    original, known = migrations.load, migrations.steps()
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda: {**known, max(known) + 1: "bad.sql"})
        patch.setattr(migrations, "load", lambda name: texts.get(name) or original(name))
        store = SqliteStore(path)
        with pytest.raises(StoreError, match="nowhere"):
            await store.append(notes("s"))
        await store.close()
    store = SqliteStore(path)
    assert await store.read("s") == written
    await store.close()
