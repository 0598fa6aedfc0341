"""Many rows in one statement, to give the interpreter lock away as seldom as possible.

Python's sqlite3 lets go of the lock around every step of a statement, and a thread that does so
beside a busy event loop waits up to the switch interval (5 ms) to get it back. `executemany` pays
that for each row, and so does a query for each row it returns: a hundred times slower under load.
So rows go in through `VALUES` lists, of as many rows as there are as long as these are few and of a
power of two beyond, so that a statement is prepared once for each width; names to look for are
filled up with NULL, which equals nothing; and rows come out packed into one.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

WIDEST = 512
EXACT = 64
"""Rows in one statement: at most, and up to which every number has a statement of its own."""


@cache
def widened(statement: str, row: str, width: int, glue: str = ", ") -> str:
    """The statement with `{slots}` replaced by so many rows."""
    return statement.replace("{slots}", glue.join([row] * width), 1)


def width(count: int) -> int:
    """The next power of two: few widths, so that every statement is prepared only once."""
    return 1 << max(count - 1, 0).bit_length()


def padded(values: Sequence[Any], nothing: Any = None) -> list[Any]:
    """The values, filled up to the width."""
    return [*values, *[nothing] * (width(len(values)) - len(values))]


def _some(left: int, widest: int) -> int:
    """How many of the rows that are left go into the next statement."""
    return left if left <= EXACT else min(1 << left.bit_length() - 1, widest)


def execute(
    db: sqlite3.Connection,
    statement: str,
    row: str,
    values: Sequence[Any],
    *,
    glue: str = ", ",
    widest: int = WIDEST,
) -> list[sqlite3.Cursor]:
    """Run the statement over the values of all rows; usually that is one cursor."""
    cursors: list[sqlite3.Cursor] = []
    columns = row.count("?")
    start = 0
    while count := _some((len(values) - start) // columns, widest):
        end = start + count * columns
        some = values[start:end] if count * columns < len(values) else values
        cursors.append(db.execute(widened(statement, row, count, glue), some))
        start = end
    return cursors
