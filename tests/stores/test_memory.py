"""The store in memory passes the contract."""

from stores.contract import Contract
from thoughtline.stores.memory import MemoryStore


class TestMemoryStore(Contract):
    def open(self, place, clock):
        return MemoryStore(clock)
