"""Queries use indexes."""

import re

import pytest

from thoughtline.stores.sqlite import (
    entries,
    erasure,
    purge,
    queries,
    rows,
    statements,
    turn_counts,
    writer,
)
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.purge import _MATCHING as MATCHING

BIG = ("events", "memories", "names", "sessions", "listed_entries", "e", "m", "n", "s", "l")


@pytest.mark.parametrize(
    ("statement", "row", "glue"),
    [
        (queries._find, "(?)", ", "),
        (queries._OF_SESSION, "", ""),
        (queries._OF_ALL, "", ""),
        (queries._SESSIONS.format(of_tenant=""), "", ""),
        (queries._SESSIONS.format(of_tenant=queries._OF_TENANT), "", ""),
        (
            statements.widened(
                statements.widened(statements.widened(rows._look_up_batch, "?", 4), "?", 2),
                "(?, ?)",
                4,
            ),
            "(?, ?)",
            ", ",
        ),
        (rows._REFERENCE, "", ""),
        (rows._DELETE_ENTRIES, "?", ", "),
        (rows._DELETE_KEYS, "(tenant = ? AND name = ? AND memory = ?)", " OR "),
        (writer._TOUCH, "(?, ?)", ", "),
        (MATCHING.format("s.touched < :untouched_since AND s.number = :number"), "", ""),
        (purge._IS_FORKED, "", ""),
        (purge._ENTRIES, "", ""),
        ("DELETE FROM events WHERE session = ?", "", ""),
        (entries._ENTRIES, "?", ", "),
        (entries._THOUGHTS, "?", ", "),
        (entries._NOT_SUMMARISED, "", ""),
        (entries._OF_CALL, "", ""),
        (entries._OF_KIND, "", ""),
        (entries._OF_KINDS, "", ""),
        (entries._UPDATE, "(?, ?, ?, ?)", ", "),
        (erasure._ERASE, "(?, ?, ?)", ", "),
        (purge._LEFT_OVER, "", ""),
        (purge._DELETE_EVENTS, "", ""),
        (queries._ENTRY_TIMES, "", ""),
        (turn_counts._COUNTS, "", ""),
        (turn_counts._STARTED, "", ""),
    ],
    ids=range(27),
)
def test_no_statement_of_the_hot_path_scans_a_table(tmp_path, statement, row, glue):
    db = DatabaseFile(tmp_path / "store.db", timeout=1, synchronous="normal").for_writing()
    text = statements.widened(statement, row, 8, glue)
    named = dict.fromkeys(
        (
            *("tenant", "before", "limit", "session", "untouched_since", "number", "internal"),
            *("position", "last", "call", "kind", "kinds"),
        )
    )
    values = named if re.search(r":\w", text) else [None] * text.count("?")
    plan = [line for *_, line in db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    db.close()
    assert plan
    assert not [line for line in plan if line.startswith("SCAN") and line.split()[1] in BIG]
    assert not [line for line in plan if "TEMP B-TREE" in line]
