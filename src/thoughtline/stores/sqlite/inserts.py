"""A batch as the values of its rows, as far as they are known before the file is read.

An `InsertBatch` is made in the caller's thread, where the batch was just made and its values are in
the processor's cache; the writer's thread only fills in the numbers. One that may be large is made
in the writer's thread.

Large columns are not bound: SQLite's interface copies what is bound, and then again into the row.
Their place is reserved, and they are written into it slice by slice.

All values are of types that Python's sqlite3 binds directly. For others, `bytes` and `None` among
them, it first raises and catches an error of its own, which costs more than the row.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.row import Row, pack

ROW_SLOTS = f"({', '.join('?' * 21)})"
RESERVED_SLOTS = f"({', '.join('?' * 19)}, zeroblob(?), zeroblob(?))"
"""The same where thoughts and everything else said are written afterwards."""
MEMO = Row.__struct_fields__.index("memo")
"""How many columns of a row are before those of its content."""
RESERVED_SIZE = 1 << 20
"""Bytes of thoughts, or of everything else said, from which their place is reserved."""
SLICE = 1 << 20
"""Bytes of a column that are written at once."""


class InsertBatch(Struct):
    """The rows of a batch; the numbers of its session and its events are filled in later."""

    batch: Batch
    counts: rules.SessionCounts
    rows: list[Row]


def insert_batch(batch: Batch) -> InsertBatch:
    """Make the rows of a batch. Raises `StoreError` for what no store can keep."""
    rules.check_batch(batch)
    return pack_batch(batch)


def pack_batch(batch: Batch) -> InsertBatch:
    """Make the rows of a batch that was checked."""
    return InsertBatch(batch, rules.count_events(batch.drafts), pack(batch))


def row_values(row: Row, position: int, session: int, first: int) -> tuple[Any, ...]:
    """Return the values of a row, in the order of the table's columns."""
    content = bytearray(row.memo), bytearray(row.thoughts), bytearray(row.said)
    return (position, session, first, *astuple(row)[:MEMO], *content)


def is_large(row: Row) -> bool:
    """Whether the place of its columns is reserved first."""
    return len(row.thoughts) > RESERVED_SIZE or len(row.said) > RESERVED_SIZE


def reserved_values(row: Row, position: int, session: int, first: int) -> tuple[Any, ...]:
    """Return the values of `RESERVED_SLOTS`: sizes in place of the last two columns."""
    head = replace(row, thoughts=b"", said=b"")
    values = row_values(head, position, session, first)
    return (*values[:-2], len(row.thoughts), len(row.said))


def slices(value: bytes) -> Iterator[memoryview]:
    """Yield what is written at once of a column."""
    view = memoryview(value)
    return (view[at : at + SLICE] for at in range(0, len(view), SLICE))


def key_values(names: Iterable[bytes], position: int, tenant: int) -> list[Any]:
    """Return tenant, name and position of all that an entry is filed under."""
    values: list[Any] = []
    for name in names:
        values += (tenant, bytearray(name), position)
    return values
