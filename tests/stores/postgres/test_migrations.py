"""From an empty database to the current tables."""

import asyncio

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


async def test_an_older_layout_is_upgraded_when_asked_to(empty):
    newest = max(migrations.steps())
    async with Connected(empty) as connection:
        assert len(await migrations.migrate(connection)) == newest
        assert await migrations.migrate(connection) == []
        await connection.execute("UPDATE layout SET version = $1", newest - 1)
        store = PostgresStore(empty, upgrade=False)
        with pytest.raises(StoreError, match="thoughtline store migrate"):
            await store.stats()
        await store.close()


async def test_a_newer_layout_that_still_works_is_used(empty):
    newest = max(migrations.steps())
    async with Connected(empty) as connection:
        await migrations.migrate(connection)
        await connection.execute(f"UPDATE layout SET version = {newest + 3}")
        store = PostgresStore(empty)
        await store.append(notes("s"))
        await store.close()
        await connection.execute(f"UPDATE layout SET works_from = {newest + 1}")
        store = PostgresStore(empty)
        with pytest.raises(StoreError, match="newer Thoughtline"):
            await store.stats()
        await store.close()
