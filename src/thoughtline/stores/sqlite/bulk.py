"""Many rows in one statement, to give the interpreter lock away as seldom as possible.

Python's sqlite3 lets go of the lock around every step of a statement, and a thread that does so
beside a busy event loop waits up to the switch interval (5 ms) to get it back. `executemany` pays
that for each row, and so does a query for each row it returns: a hundred times slower under load.
So rows go in through `VALUES` lists of a few fixed widths, prepared once and filled up with NULL,
which equals nothing; and rows come out packed into one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

WIDEST = 512


@cache
def widened(statement: str, row: str, width: int, glue: str = ", ") -> str:
    """The statement with `{slots}` replaced by so many rows."""
    return statement.replace("{slots}", glue.join([row] * width), 1)


def width(count: int) -> int:
    """The next power of two: few widths, so that every statement is prepared only once."""
    return 1 << max(count - 1, 0).bit_length()


def padded(values: Sequence[Any], columns: int = 1) -> list[Any]:
    """The values of all rows in one list, filled up to the width."""
    missing = width(len(values)) - len(values)
    flat: Iterable[Any] = values if columns == 1 else chain.from_iterable(values)
    return [*flat, *[None] * (missing * columns)]


def execute(
    db: sqlite3.Connection,
    statement: str,
    row: str,
    rows: Sequence[tuple[Any, ...]],
    *,
    glue: str = ", ",
    widest: int = WIDEST,
) -> list[sqlite3.Cursor]:
    """Run the statement over all rows, as many at once as it takes; usually that is one cursor."""
    cursors: list[sqlite3.Cursor] = []
    for start in range(0, len(rows), widest):
        some = rows[start : start + widest]
        text = widened(statement, row, width(len(some)), glue)
        values = padded(some, len(some[0])) if len(some[0]) > 1 else padded([r[0] for r in some])
        cursors.append(db.execute(text, values))
    return cursors
