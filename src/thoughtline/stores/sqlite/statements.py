"""SQL statements: loaded from `sql/`, and run over many rows at once.

Python's sqlite3 releases the interpreter lock around every step of a statement, and a thread that
does so beside a busy event loop waits up to the switch interval (5 ms) to get it back.
`executemany` pays that for each row, and so does a query for each row it returns: a hundred times
slower under load. So rows are inserted with `VALUES` lists: of any width up to `EXACT` rows, of a
power of two beyond, so that a statement is prepared once for each width. Keys to look up are padded
with NULL, which equals nothing, and the rows of a result are packed into one.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

SQL = files("thoughtline.stores.sqlite") / "sql"
WIDEST = 512
EXACT = 64
"""Rows in one statement: at most, and up to which every number has a statement of its own."""


def load(name: str) -> str:
    """Return the text of a file in `sql/`."""
    return (SQL / name).read_text("utf-8")


@cache
def widened(statement: str, row: str, width: int, glue: str = ", ") -> str:
    """Return the statement with `{slots}` replaced by this many rows."""
    return statement.replace("{slots}", glue.join([row] * width), 1)


def width(count: int) -> int:
    """Return the next power of two: few widths, so that every statement is prepared only once."""
    return 1 << (count - 1).bit_length() if count else 1


def padded(values: list[Any], columns: int = 1) -> list[Any]:
    """Return the rows' values, with rows of NULL up to the width."""
    missing = width(len(values) // columns) * columns - len(values)
    return values + [None] * missing if missing else values


@lru_cache(4096)
def _exact(statement: str, row: str, values: int, glue: str) -> str | None:
    """Return the statement for this number of values; None if it takes more than one."""
    width = values // row.count("?")
    return widened(statement, row, width, glue) if width <= EXACT else None


def _next_width(remaining: int, widest: int) -> int:
    """Return how many of the remaining rows go into the next statement."""
    return remaining if remaining <= EXACT else min(1 << remaining.bit_length() - 1, widest)


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
    if not values:
        return []
    text = _exact(statement, row, len(values), glue)
    if text is not None:  # the usual case
        return [db.execute(text, values)]
    cursors: list[sqlite3.Cursor] = []
    columns, start = row.count("?"), 0
    while count := _next_width((len(values) - start) // columns, widest):
        end = start + count * columns
        some = values[start:end] if count * columns < len(values) else values
        cursors.append(db.execute(widened(statement, row, count, glue), some))
        start = end
    return cursors
