"""`thoughtline store` with a database, and from a file to it and back."""

import asyncio
import json

from click.testing import CliRunner

from stores.samples import turn
from stores.test_copying import everything, filled
from support.killed_commands import killed
from thoughtline.cli import main
from thoughtline.stores import open_store
from thoughtline.stores.postgres import migrations


def thoughtline(*args, code=0):
    ran = CliRunner().invoke(main, ["store", *args])
    assert ran.exit_code == code, ran.output
    return ran.output


async def at(url, work):
    store = open_store(url)
    try:
        return await work(store)
    finally:
        await store.close()


def test_from_a_file_to_a_database_and_back(migrated, postgres, worker_id, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"moved_{worker_id}"
    postgres.sql(f"CREATE DATABASE {name}", "SELECT 1")
    database = postgres.url(name)
    asyncio.run(at("sqlite:///t.db", filled))
    before = asyncio.run(at("sqlite:///t.db", everything))
    done = json.loads(thoughtline("migrate", "--store", database, "--json"))
    assert done == {"migrations": list(migrations.steps().values())}
    assert "up to date" in thoughtline("migrate", "--store", database)
    assert json.loads(thoughtline("copy", "sqlite:///t.db", database, "--json"))["copied"] == 8
    assert json.loads(thoughtline("copy", "sqlite:///t.db", database, "--json"))["copied"] == 0
    assert asyncio.run(at(database, everything)) == before
    assert ": sound" in thoughtline("check", "--store", database)
    thoughtline("backup", "backup.db", "--store", database)
    assert asyncio.run(at("sqlite:///backup.db", everything)) == before
    asyncio.run(at(database, lambda s: s.append(turn("late", "t", '"x"'))))
    assert "1 had something new" in thoughtline("backup", "backup.db", "--store", database)
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)", "SELECT 1")


def test_copies_that_were_killed_go_on_both_ways(postgres, worker_id, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"killed_{worker_id}"
    postgres.sql(f"CREATE DATABASE {name}", "SELECT 1")
    database = postgres.url(name)
    asyncio.run(at("sqlite:///t.db", filled))
    before = asyncio.run(at("sqlite:///t.db", everything))
    killed("copy", "sqlite:///t.db", database)
    assert json.loads(thoughtline("copy", "sqlite:///t.db", database, "--json"))["conflicts"] == []
    assert asyncio.run(at(database, everything)) == before
    killed("backup", "back.db", "--store", database)
    assert json.loads(thoughtline("backup", "back.db", "--store", database, "--json"))["copied"] > 0
    assert asyncio.run(at("sqlite:///back.db", everything)) == before
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)", "SELECT 1")
