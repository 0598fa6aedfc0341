"""One damaged value in a database, plain or sealed, takes nothing else with it."""

import pytest

from stores.damaging import DamageContract, flipped
from stores.sealed_samples import keychain
from thoughtline.stores.postgres import PostgresStore


class TestDamagedDatabase(DamageContract):
    keychain = None

    @pytest.fixture(autouse=True)
    def place(self, database, db):
        self.url, self.db = database, db

    def open(self, place, clock):
        return PostgresStore(self.url, clock=clock, keychain=self.keychain)

    async def damage(self, column, turn):
        table, condition = {
            "memo": ("entries", "turn = $1"),
            "thoughts": ("batches", "id = $1"),
            "said": ("batches", "id = $1"),
        }[column]
        where = f"{table} WHERE {condition}"
        value = await self.db.fetchval(f"SELECT {column} FROM {where}", turn.encode())
        changed = self.changed(value)
        await self.db.execute(
            f"UPDATE {table} SET {column} = $2 WHERE {condition}", turn.encode(), changed
        )

    def changed(self, value):
        return b"\xc1" + value[1:]


class TestDamagedSealedDatabase(TestDamagedDatabase):
    @pytest.fixture(autouse=True)
    def keys(self):
        self.keychain = keychain()

    def changed(self, value):
        return flipped(value)
