"""A batch as the values of its rows, as far as they are known before the file is read.

An `InsertBatch` is made in the caller's thread, where the batch was just made and its values are in
the processor's cache; the writer's thread only fills in the numbers.

All values are of types that Python's sqlite3 binds directly. For others, `bytes` and `None` among
them, it first raises and catches an error of its own, which costs more than the row.
"""

from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.base import Batch

EVENT_SLOTS = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # session, seq, the draft's (6), batch
ENTRY_SLOTS = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # number, session, turn, summary (5), memo
KEY_SLOTS = "(?, ?, ?)"  # tenant, key, number of the entry

_encode = msgspec.json.Encoder().encode
_COLUMNS = EVENT_SLOTS.count("?")


class EntryRows(Struct):
    """The rows of an index entry and its keys; the numbers are filled in later."""

    turn: str
    values: list[Any]
    keys: list[Any]

    def set_numbers(self, number: int, session: int, tenant: int) -> None:
        """Fill in the numbers of the entry, its session and its tenant."""
        self.values[:2] = number, session
        count = len(self.keys) // 3
        self.keys[0::3] = [tenant] * count
        self.keys[2::3] = [number] * count


class InsertBatch(Struct):
    """The rows of a batch; the numbers of its session and its events are filled in later."""

    batch: Batch
    counts: rules.SessionCounts
    events: list[Any]
    references: list[tuple[int, str]]  # index of an event, and the id that it refers to
    entries: list[EntryRows]

    def numbered(self, session: int, first: int) -> list[Any]:
        """Return the rows of the events, numbered from `first` on."""
        count = len(self.batch.drafts)
        self.events[0::_COLUMNS] = [session] * count
        self.events[1::_COLUMNS] = range(first, first + count)
        return self.events


def insert_batch(batch: Batch) -> InsertBatch:
    """Make the rows of a batch. Raises `StoreError` for what no store can keep."""
    rules.check_batch(batch)
    events: list[Any] = []
    references: list[tuple[int, str]] = []
    times: list[float] = []
    turns, at, at_text, id = 0, None, "", batch.id
    for draft in batch.drafts:
        if draft.at is not at:  # often the same float as before
            at, at_text = draft.at, _float_text(draft.at)
            times.append(at)
        if draft.type == "turn_started":
            turns += 1
        elif draft.type in rules.REFERRING_TYPES and (
            target := rules.referred_id(draft.type, draft.data)
        ):
            references.append((len(events) // _COLUMNS, target))
        events += (0, 0, draft.id, draft.parent, at_text, draft.type, draft.version, draft.data, id)
        id = ""  # the first event has it
    counts = rules.SessionCounts(turns, min(times), max(times)) if times else rules.SessionCounts()
    return InsertBatch(
        batch, counts, events, references, [_entry_rows(entry) for entry in batch.index]
    )


def _float_text(at: float) -> str:
    """Write a float as text, to the last digit: as `repr` does, in a tenth of the time."""
    return _encode(at).decode() if isfinite(at) else repr(at)


def _entry_rows(entry: IndexEntry) -> EntryRows:
    memo = _encode(msgspec.structs.replace(entry, thoughts=())).decode()
    found = rules.entry_summary(entry)
    summary = (found.provider, found.model, found.entries, found.chars, found.last)
    keys: list[Any] = []
    for key in entry.keys:
        keys += (0, bytearray(key), 0)
    return EntryRows(entry.turn, [0, 0, entry.turn, *summary, memo], keys)
