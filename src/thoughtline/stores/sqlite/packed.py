"""Rows with BLOBs that come back as one value: see `statements` for why.

A row is a JSON array of its plain columns and of the sizes of its BLOBs, a line break (which JSON
escapes), and the BLOBs as they are. SQLite joins texts and BLOBs byte by byte.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from thoughtline.stores.base import INTERNAL_PREFIX
from thoughtline.stores.row import RowPlace

ROW_NAME = "CASE b.id WHEN '' THEN b.turn ELSE b.id END"
"""What a row `b` of `batches` is called in the `RowPlace` of its values."""

DELETED_PREFIX = f"{INTERNAL_PREFIX}deleted:"
"""Begins the name of a session that is being deleted, before a number and the name it had."""

_heads = msgspec.json.Decoder(list[Any])


def packed_rows(columns: Sequence[str], blobs: Sequence[str]) -> str:
    """Return the SQL expression that packs all rows of a query into one value."""
    head = ", ".join([*columns, *(f"length({blob})" for blob in blobs)])
    row = " || ".join([f"json_array({head}) || char(10)", *blobs])
    return f"CAST(group_concat({row}, '') AS BLOB)"


def packed(statement: str, columns: Sequence[str], blobs: Sequence[str]) -> str:
    """Return a statement with `{rows}` replaced by these columns, packed."""
    return statement.replace("{rows}", packed_rows(columns, blobs))


def unpacked(value: bytes | None, blobs: int) -> Iterator[list[Any]]:
    """Yield the columns of packed rows, with the BLOBs in place of their sizes."""
    at, end = 0, len(value or b"")
    while value and at < end:
        line = value.index(b"\n", at)
        columns = _heads.decode(value[at:line])
        at = line + 1
        for nth in range(len(columns) - blobs, len(columns)):
            size = columns[nth]
            columns[nth] = value[at : at + size]
            at += size
        yield columns


def row_place(tenant: str, session: str, row: str) -> RowPlace:
    """Return where the values of a row belong: to a session by the name that it was given."""
    if session.startswith(DELETED_PREFIX):
        session = session.removeprefix(DELETED_PREFIX).partition(":")[2]
    return RowPlace(tenant, session, row)
