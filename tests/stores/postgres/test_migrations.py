"""From an empty database to the current tables."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from stores.postgres.conftest import Connected
from stores.samples import notes
from thoughtline.errors import StoreError
from thoughtline.stores.postgres import PostgresStore, migrations


async def test_an_empty_database_is_made_at_the_start_by_whoever_is_first(empty):
    stores = [PostgresStore(empty, upgrade=False) for _ in range(4)]
    await asyncio.gather(*(store.append(notes(f"s{n}")) for n, store in enumerate(stores)))
    assert (await stores[0].stats()).sessions == 4
    for store in stores:
        await store.close()


def test_each_migration_has_a_number_of_its_own():
    files = [file.name for file in migrations.SQL.iterdir() if file.name[:4].isdigit()]
    assert sorted(migrations.steps().values()) == sorted(files)
    assert list(migrations.steps()) == list(range(1, len(files) + 1))


async def test_tables_of_another_program_are_left_alone(empty):
    async with Connected(empty) as connection:
        await connection.execute("CREATE TABLE precious (x int)")
        store = PostgresStore(empty)
        with pytest.raises(StoreError, match="another program"):
            await store.stats()
        await store.close()
        assert await connection.fetchval("SELECT to_regclass('sessions')") is None


NEXT = """
ALTER TABLE batches ADD COLUMN more bytea;
CREATE FUNCTION append(now_ float8) RETURNS int LANGUAGE sql AS $$ SELECT 9 $$;
"""
EARLIER = Path(__file__).parents[2] / "written_before" / "postgres_6.json.gz"


async def test_a_missing_step_is_run_when_asked_for_and_nodes_of_before_go_on(empty, monkeypatch):
    before = PostgresStore(empty)
    await before.append(notes("old", id="one"))
    later = {**migrations.steps(), 2: "next.sql"}
    monkeypatch.setattr(migrations, "steps", lambda: later)
    monkeypatch.setattr(migrations, "load", lambda _: NEXT)
    after = PostgresStore(empty, upgrade=False)
    with pytest.raises(StoreError, match=r"layout 1, and 2 is needed.*thoughtline store migrate"):
        await after.stats()
    async with Connected(empty) as connection:
        assert await migrations.migrate(connection) == ["next.sql"]
        assert await migrations.migrate(connection) == []
    await before.append(notes("old", id="two"))
    assert (await after.stats()).events == 2 * len(notes("old").drafts)
    for store in (before, after):
        await store.close()


async def test_a_newer_layout_that_still_works_is_used(empty):
    newest = max(migrations.steps())
    async with Connected(empty) as connection:
        await migrations.migrate(connection)
        await connection.execute(f"UPDATE thoughtline_layout SET version = {newest + 3}")
        store = PostgresStore(empty)
        await store.append(notes("s"))
        await store.close()
        await connection.execute(f"UPDATE thoughtline_layout SET works_from = {newest + 1}")
        store = PostgresStore(empty)
        with pytest.raises(StoreError, match="newer Thoughtline"):
            await store.stats()
        await store.close()


async def test_tables_from_before_the_first_release_are_refused_and_left_alone(empty):
    async with Connected(empty) as connection:
        await connection.execute(json.loads(gzip.decompress(EARLIER.read_bytes()))["sql"])
        tables = await connection.fetch("SELECT relname, relnatts FROM pg_class ORDER BY oid")
        store = PostgresStore(empty)
        for work in (store.stats(), store.append(notes("s"))):
            with pytest.raises(StoreError, match=r"before Thoughtline 0\.1\.0.*thoughtline export"):
                await work
        await store.close()
        assert tables == await connection.fetch(
            "SELECT relname, relnatts FROM pg_class ORDER BY oid"
        )
