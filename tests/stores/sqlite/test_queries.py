"""Queries use indexes."""

import re

import pytest

from thoughtline.stores.sqlite import (
    entries,
    erasure,
    filed_entries,
    purge,
    queries,
    rows,
    statements,
    turn_counts,
    writer,
)
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.purge import _MATCHING as MATCHING

BIG = ("batches", "lookup_keys", "sessions", "pointers", *"bknslp")


LOOK_UP = rows._look_up_batch
for slots in ("?", "?", "(?, ?, ?)", "(?, ?, ?)"):
    LOOK_UP = statements.widened(LOOK_UP, slots, 4)


@pytest.mark.parametrize(
    ("statement", "row", "glue"),
    [
        (queries._find, "(?)", ", "),
        (queries._OF_SESSION, "", ""),
        (queries._OF_ALL, "", ""),
        (queries._SESSIONS.format(of_tenant=""), "", ""),
        (queries._SESSIONS.format(of_tenant=queries._OF_TENANT), "", ""),
        (
            LOOK_UP,
            "?",
            ", ",
        ),
        (filed_entries._ENTRIES, "?", ", "),
        (filed_entries._CLEAR, "?", ", "),
        (filed_entries._DELETE_EMPTY, "?", ", "),
        (filed_entries._DELETE_KEYS, "(tenant = ? AND name = ? AND position = ?)", " OR "),
        (filed_entries._UPDATE, "(?, ?, ?, ?)", ", "),
        (writer._TOUCH, "(?, ?)", ", "),
        (MATCHING.format("s.touched < :untouched_since AND s.number = :number"), "", ""),
        (purge._IS_FORKED, "", ""),
        (purge._LAST_ROWS, "", ""),
        (entries._THOUGHTS, "?", ", "),
        (entries._LISTED, "", ""),
        (entries._BLOCK, "", ""),
        (entries._OF_CALL, "", ""),
        (erasure._FILED, "?", ", "),
        (erasure._ERASE, "(?, ?)", ", "),
        (purge._LEFT_OVER, "", ""),
        (purge._DELETE_ROWS, "?", ", "),
        (turn_counts._STARTED, "", ""),
    ],
    ids=range(24),
)
def test_no_statement_of_the_hot_path_scans_a_table(tmp_path, statement, row, glue):
    db = DatabaseFile(tmp_path / "store.db", timeout=1, synchronous="normal").for_writing()
    text = statements.widened(statement, row, 8, glue)
    named = dict.fromkeys(
        (
            *("tenant", "before", "limit", "session", "untouched_since", "number", "internal"),
            *("last", "name", "after", "kinds", "provider", "endpoints", "model"),
        )
    )
    values = named if re.search(r":\w", text) else [None] * text.count("?")
    plan = [line for *_, line in db.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    db.close()
    assert plan
    assert not [line for line in plan if line.startswith("SCAN") and line.split()[1] in BIG]
    gathers = (
        statement == turn_counts._COUNTS
    )  # into longer periods, and not in the way of requests
    assert gathers or not [line for line in plan if "TEMP B-TREE" in line]
