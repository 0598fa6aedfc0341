"""Nodes of two versions on one database: each calls its own functions, before and after.

`written_before/postgres_6.json.gz` has what an earlier version used: `sql` makes its tables, `calls`
are statements that its code has sent, with their arguments.
"""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from stores.contract import sent_back
from stores.postgres.conftest import Connected
from stores.samples import turn
from thoughtline.stores.postgres import PostgresStore, migrations

A = b"a" * 16
EARLIER = Path(__file__).parents[2] / "written_before" / "postgres_6.json.gz"
NEXT = """
ALTER TABLE batches ADD COLUMN more bytea;
CREATE INDEX batches_by_more ON batches (more) WHERE more IS NOT NULL;
CREATE FUNCTION append_9() RETURNS int LANGUAGE sql AS $$ SELECT 9 $$;
"""


def _value(told):
    if isinstance(told, dict):
        return bytes.fromhex(told["b"])
    return [_value(one) for one in told] if isinstance(told, list) else told


class EarlierNode:
    """Says what a node of the earlier version said."""

    def __init__(self, url, name):
        self.url, self.name = url, name
        told = json.loads(gzip.decompress(EARLIER.read_bytes()))
        self.sql = told["sql"]
        self._calls = {statement: _value(args) for statement, args in told["calls"]}

    def _call(self, function):
        return next((s, list(args)) for s, args in self._calls.items() if f"{function}(" in s)

    async def __aenter__(self):
        self._connected = Connected(self.url)
        self.connection = await self._connected.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self._connected.__aexit__(*error)

    async def append(self, number):
        """Write the turn once more, as another one in another session."""
        statement, args = self._call("append_1")
        args[1] = [f"{self.name}.t{number}".encode()]
        args[2] = [f"{self.name}.s{number}".encode()]
        args[10] = [None]  # epoch: any
        row = await self.connection.fetchrow(statement, *args)
        assert row["verdicts"] == "n", row

    async def find(self):
        """How many entries it finds where its turn was filed."""
        statement, args = self._call("find_1")
        return len(await self.connection.fetch(statement, *args)) - 1

    async def everything_else(self):
        for statement, args in self._calls.items():
            if "append_1(" not in statement:
                await self.connection.fetch(statement, *args)


@pytest.fixture
def newer(monkeypatch):
    """A version with one more migration than this one."""
    number = max(migrations.steps()) + 1
    steps, load = {**migrations.steps(), number: "next.sql"}, migrations.load
    monkeypatch.setattr(migrations, "steps", lambda: steps)
    monkeypatch.setattr(migrations, "load", lambda name: NEXT if name == "next.sql" else load(name))
    return number


async def test_nodes_of_before_go_on_while_tables_are_migrated(empty, newer):
    written, over = [], asyncio.Event()

    async def work(node):
        while not over.is_set():
            await node.append(len(written))
            written.append(node.name)

    async with (
        asyncio.timeout(60),
        EarlierNode(empty, "a") as one,
        EarlierNode(empty, "b") as other,
    ):
        await one.connection.execute(one.sql)
        await one.everything_else()
        working = [asyncio.create_task(work(node)) for node in (one, other)]
        while len(written) < 20:
            await asyncio.sleep(0.001)
        store = PostgresStore(empty)  # a node of the new version, which migrates at its start
        await store.append(turn("new", "n1", '"new"', keys=[A]))
        migrated = len(written)
        while len(written) < migrated + 20:
            await asyncio.sleep(0.001)
        over.set()
        await asyncio.gather(*working)
        assert await migrations.version(one.connection) == newer
        assert (await store.stats()).turns == len(written) + 1
        assert await other.find() == 2  # what both versions wrote
        assert set(await sent_back(store, A)) == {"t1", "n1"}
        await one.everything_else()
        await store.close()


async def test_a_node_of_before_that_starts_afterwards_is_served(empty, newer, monkeypatch):
    store = PostgresStore(empty)
    await store.append(turn("new", "n1", '"new"', keys=[A]))
    async with EarlierNode(empty, "a") as late:
        assert await late.find() == 1
        await late.append(1)
    monkeypatch.undo()  # this version is now the one of before
    before = PostgresStore(empty, upgrade=False)
    await before.append(turn("old", "o1", '"old"', keys=[A]))
    assert set(await sent_back(store, A)) == {"t1", "n1", "o1"}
    for one in (store, before):
        await one.close()
