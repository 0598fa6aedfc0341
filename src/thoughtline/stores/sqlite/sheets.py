"""A batch as the values of its rows, as far as they are known before the file is looked at.

A sheet is made by whoever hands the batch over, where all of it was just made and is still at hand:
for the processor of the writer's thread every value is news. The thread fills in the numbers.

The values are of types that Python's sqlite3 takes as they are. For others, `bytes` and `None`
among them, it first raises and catches an error of its own, which costs more than the row.
"""

from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.base import Batch

EVENT = "(?, ?, ?, ?, ?, ?, ?, ?)"  # session, seq, id, parent, at, type, version, data
MEMORY = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # number, session, turn, what is counted (5), memo
NAME = "(?, ?, ?)"  # tenant, name, memory

_encode = msgspec.json.Encoder().encode
_COLUMNS = EVENT.count("?")


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
    about: list[tuple[int, str]]  # which of them point to something else, and to what
    filed: list[Filed]

    def numbered(self, session: int, first: int) -> list[Any]:
        """The rows of the events, the first of which has this number."""
        count = len(self.batch.drafts)
        self.events[0::_COLUMNS] = [session] * count
        self.events[1::_COLUMNS] = range(first, first + count)
        return self.events


def sheet(batch: Batch) -> Sheet:
    """The rows of a batch. Raises `StoreError` for what no store can keep."""
    facts.check(batch)
    events: list[Any] = []
    about: list[tuple[int, str]] = []
    times: list[float] = []
    turns, at, spelled = 0, None, ""
    for draft in batch.drafts:
        if draft.at is not at:  # often it is that of the one before
            at, spelled = draft.at, _spelled(draft.at)
            times.append(at)
        if draft.type == "turn_started":
            turns += 1
        elif draft.type in facts.POINTING and (target := facts.about(draft.type, draft.data)):
            about.append((len(events) // _COLUMNS, target))
        events += (0, 0, draft.id, draft.parent, spelled, draft.type, draft.version, draft.data)
    weight = facts.Weight(turns, min(times), max(times)) if times else facts.Weight()
    return Sheet(batch, weight, events, about, [_filed(memory) for memory in batch.memories])


def _spelled(at: float) -> str:
    """A float as text, to the last digit: as `repr` does it, in a tenth of the time."""
    return _encode(at).decode() if isfinite(at) else repr(at)


def _filed(memory: Memory) -> Filed:
    memo = _encode(msgspec.structs.replace(memory, thoughts=())).decode()
    kind = facts.filing(memory)
    counted = (kind.provider, kind.model, kind.entries, kind.chars, kind.last)
    names: list[Any] = []
    for name in memory.names:
        names += (0, bytearray(name), 0)
    return Filed(memory.turn, [0, 0, memory.turn, *counted, memo], names)
