"""A store that can be down or slow."""

from stores.samples import StillClock
from thoughtline.errors import Unavailable
from thoughtline.stores.memory import MemoryStore

A, B = b"a" * 16, b"b" * 16


class Fragile(MemoryStore):
    """A store that can be down, slow, and counts what it is asked."""

    def __init__(self):
        super().__init__(StillClock())
        self.written = []
        self.down = False
        self.asked = []
        self.gate = None

    async def close(self):
        """Stay open: tests look at what was written."""

    async def find(self, tenant, keys):
        if self.down:
            raise Unavailable("the disk is gone")
        self.asked.append(list(keys))
        found = await super().find(tenant, keys)
        if self.gate is not None:
            await self.gate.wait()
        return found

    async def append(self, batch):
        if self.down:
            raise Unavailable("the disk is gone")
        self.written += [draft.id for draft in batch.drafts if draft.type == "turn_started"]
        return await super().append(batch)


async def found(store, name):
    return [indexed.turn for indexed in (await store.find("t", [name])).get(name, ())]
