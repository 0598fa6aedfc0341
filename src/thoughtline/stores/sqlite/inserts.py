"""A batch as the values of its rows, as far as they are known before the file is read.

An `InsertBatch` is made in the caller's thread, where the batch was just made and its values are in
the processor's cache; the writer's thread only fills in the numbers.

All values are of types that Python's sqlite3 binds directly. For others, `bytes` and `None` among
them, it first raises and catches an error of its own, which costs more than the row.
"""

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

from msgspec import Struct

from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.row import Row, pack

ROW_SLOTS = f"({', '.join('?' * 21)})"


class InsertBatch(Struct):
    """The rows of a batch; the numbers of its session and its events are filled in later."""

    batch: Batch
    counts: rules.SessionCounts
    rows: list[Row]


def insert_batch(batch: Batch) -> InsertBatch:
    """Make the rows of a batch. Raises `StoreError` for what no store can keep."""
    rules.check_batch(batch)
    counts = rules.SessionCounts()
    counts.add(batch.drafts)
    return InsertBatch(batch, counts, pack(batch))


def row_values(row: Row, position: int, session: int, first: int) -> tuple[Any, ...]:
    """Return the values of a row, in the order of the table's columns."""
    return (
        position,
        session,
        first,
        row.count,
        row.id,
        row.turn,
        row.parent,
        row.kinds,
        row.began,
        row.provider,
        row.endpoint,
        row.model,
        row.asked,
        row.served,
        row.outcome,
        row.entries,
        row.chars,
        row.ended,
        bytearray(row.memo),
        bytearray(row.thoughts),
        bytearray(row.said),
    )


def key_values(row: Row, position: int, tenant: int) -> Iterable[Any]:
    """Return tenant, key and position of each look-up key of a row."""
    return chain.from_iterable(zip(repeat(tenant), map(bytearray, row.keys), repeat(position)))
