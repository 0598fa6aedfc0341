"""A batch as the values of its rows, as far as they are known before the file is looked at.

A sheet is made by whoever hands the batch over, where all of it was just made and is still at hand:
for the processor of the writer's thread every value is news. The thread fills in the numbers.
"""

from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.base import Batch

EVENT = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # session, seq, id, parent, at, type, version, about, data
MEMORY = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # number, session, turn, what is counted (5), memo
NAME = "(?, ?, ?)"  # tenant, name, memory

_memo = msgspec.json.Encoder().encode


class Filed(Struct):
    """A memory and its names; the numbers of the memory, its session and its tenant are missing."""

    turn: str
    values: list[Any]
    names: list[Any]

    def numbered(self, number: int, session: int, tenant: int) -> None:
        """Fill them in."""
        self.values[:2] = number, session
        count = len(self.names) // 3
        self.names[0::3] = [tenant] * count
        self.names[2::3] = [number] * count


class Sheet(Struct):
    """All rows of a batch; the numbers of its session and of its events are missing."""

    batch: Batch
    weight: facts.Weight
    events: list[Any]
    filed: list[Filed]

    def numbered(self, session: int, first: int) -> list[Any]:
        """The rows of the events, the first of which has this number."""
        count = len(self.batch.drafts)
        self.events[0::9] = [session] * count
        self.events[1::9] = range(first, first + count)
        return self.events


def sheet(batch: Batch) -> Sheet:
    """The rows of a batch. Raises `StoreError` for what no store can keep."""
    facts.check(batch)
    weight = facts.Weight()
    weight.add(batch.drafts)
    events: list[Any] = []
    at, spelled = 0.0, "0.0"
    for draft in batch.drafts:
        if draft.at is not at:  # often it is that of the one before, and spelling a float is work
            at, spelled = draft.at, repr(draft.at)
        about = facts.about(draft.type, draft.data)
        events += (0, 0, draft.id, draft.parent, spelled)
        events += (draft.type, draft.version, about, draft.data)
    return Sheet(batch, weight, events, [_filed(memory) for memory in batch.memories])


def _filed(memory: Memory) -> Filed:
    memo = _memo(msgspec.structs.replace(memory, thoughts=())).decode()
    kind = facts.filing(memory)
    counted = (kind.provider, kind.model, kind.entries, kind.chars, kind.last)
    names: list[Any] = []
    for name in memory.names:
        names += (0, name, 0)
    return Filed(memory.turn, [0, 0, memory.turn, *counted, memo], names)
