"""Every store passes the same suite."""

from stores.contract import Contract, KeepingContract
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore


class TestMemoryStore(Contract):
    def open(self, place, clock):
        return MemoryStore(clock)


class TestSqliteStore(KeepingContract):
    def open(self, place, clock):
        return SqliteStore(place, clock=clock, poll=0.02)
