"""The store in PostgreSQL passes the contract."""

import pytest

from stores.contract import KeepingContract
from thoughtline.stores.postgres import PostgresStore


class TestPostgresStore(KeepingContract):
    @pytest.fixture(autouse=True)
    def place(self, database):
        self.url = database

    def open(self, place, clock):
        return PostgresStore(self.url, clock=clock)
