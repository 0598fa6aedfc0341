"""One damaged value of a SQLite file, plain or sealed, takes nothing else with it."""

import sqlite3
from contextlib import closing

import pytest

from stores.damaging import DamageContract, flipped
from stores.sealed_samples import keychain
from thoughtline.stores.sqlite import SqliteStore


class TestDamagedFile(DamageContract):
    keychain = None

    def open(self, place, clock):
        self.path = place
        return SqliteStore(place, clock=clock, keychain=self.keychain)

    async def damage(self, column, turn):
        with closing(sqlite3.connect(self.path)) as db:
            [(value,)] = db.execute(f"SELECT {column} FROM batches WHERE turn = ?", (turn,))
            db.execute(
                f"UPDATE batches SET {column} = ? WHERE turn = ?", (self.changed(value), turn)
            )
            db.commit()

    def changed(self, value):
        return b"\xc1" + value[1:]


class TestDamagedSealedFile(TestDamagedFile):
    @pytest.fixture(autouse=True)
    def keys(self):
        self.keychain = keychain()

    def changed(self, value):
        return flipped(value)
