"""Statements over many rows: few widths, and every row once."""

import sqlite3

import pytest

from thoughtline.stores.sqlite.statements import (
    EXACT,
    WIDEST,
    execute,
    load,
    padded,
    widened,
    width,
)


@pytest.mark.parametrize(("count", "wide"), [(0, 1), (1, 1), (2, 2), (3, 4), (5, 8), (8, 8)])
def test_a_width_is_the_next_power_of_two(count, wide):
    assert width(count) == wide
    assert padded(["x"] * count) == ["x"] * count + [None] * (wide - count)
    assert padded(["x"] * count * 3, 3) == ["x"] * count * 3 + [None] * 3 * (wide - count)


def test_rows_are_put_into_the_first_slot_only():
    assert widened("VALUES {slots}, {slots}", "(?)", 2) == "VALUES (?), (?), {slots}"


@pytest.mark.parametrize("count", [0, 1, EXACT, EXACT + 1, 3 * EXACT + 5, WIDEST, WIDEST + 1])
def test_every_row_is_written_once(count):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (a, b)")
    values = [value for n in range(count) for value in (n, str(n))]
    execute(db, "INSERT INTO t VALUES {slots}", "(?, ?)", values)
    assert db.execute("SELECT a, b FROM t ORDER BY a").fetchall() == [
        (n, str(n)) for n in range(count)
    ]
    db.close()


def test_statements_are_files():
    assert "SELECT" in load("find_entries.sql").upper()
    with pytest.raises(FileNotFoundError):
        load("nothing.sql")
