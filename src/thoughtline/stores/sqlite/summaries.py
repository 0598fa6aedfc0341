"""Summaries of the index, which listings and statistics of thought entries read.

They follow the index in slices, each in one short transaction together with how far it got
(`summarised`): so appends pay nothing for them, a crash loses nothing, and several processes may
do it at once. Readers add what is not summarised yet. Deleting an entry takes it out of the
summaries in the same transaction.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from thoughtline.stores.sqlite import statements
from thoughtline.stores.sqlite.statements import load

ENTRIES = 500
"""Index entries in one slice."""

_POSITION = "SELECT position FROM summarised WHERE source = ?"
ADVANCE = "UPDATE summarised SET position = ? WHERE source = ? AND position = ?"
_STEP_BACK = """
UPDATE summarised SET position = min(position, (SELECT coalesce(max(number), 0) FROM memories))
WHERE source = 'memories'
"""
_LAST_OF_SLICE = """
SELECT max(number) FROM (SELECT number FROM memories WHERE number > ? ORDER BY number LIMIT ?)
"""
_MEMO = "CASE WHEN json_valid(m.memo) THEN m.memo ELSE '{}' END"
_ADD = load("summarise_entries.sql").replace("{memo}", _MEMO).split(";")
_TAKE_OUT = """
UPDATE entry_groups SET entries = entries - gone.count, chars = chars - gone.size
FROM (
    SELECT kind, count(*) AS count, sum(chars) AS size FROM listed_entries
    WHERE memory IN ({slots}) GROUP BY kind
) AS gone WHERE number = gone.kind
"""
_UNLIST = "DELETE FROM listed_entries WHERE memory IN ({slots})"
_UNLIST_CALLS = "DELETE FROM listed_calls WHERE {slots}"
_NO_GROUP = "DELETE FROM entry_groups WHERE entries <= 0"


def position(db: sqlite3.Connection, source: str) -> int:
    """Return up to which entry (`memories`) or event (`events`) everything is summarised."""
    return int(db.execute(_POSITION, (source,)).fetchone()[0])


def add_entries(db: sqlite3.Connection) -> bool:
    """Summarise the next index entries; whether there may be more."""
    after = position(db, "memories")
    (last,) = db.execute(_LAST_OF_SLICE, (after, ENTRIES)).fetchone()
    if last is None:
        db.execute(_NO_GROUP)
        return False
    for statement in _ADD:
        db.execute(statement, {"after": after, "last": last})
    db.execute(ADVANCE, (last, "memories", after))
    return True


def behind(db: sqlite3.Connection) -> int:
    """Return about how many index entries are not summarised."""
    (newest,) = db.execute("SELECT coalesce(max(number), 0) FROM memories").fetchone()
    return int(newest) - position(db, "memories")


def add_again(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Summarise entries that have changed, as far as they were summarised before."""
    last = position(db, "memories")
    for number in numbers:
        if number <= last:
            for statement in _ADD:
                db.execute(statement, {"after": number - 1, "last": number})


def remove_entries(
    db: sqlite3.Connection, numbers: Sequence[int], calls: Iterable[tuple[str, int]]
) -> None:
    """Take index entries out of the summaries; `calls` are their call ids and numbers."""
    statements.execute(db, _TAKE_OUT, "?", numbers)
    statements.execute(db, _UNLIST, "?", numbers)
    values: list[Any] = [value for pair in calls for value in pair]
    one = "(call = ? AND memory = ?)"
    statements.execute(db, _UNLIST_CALLS, one, values, glue=" OR ", widest=64)


def step_back(db: sqlite3.Connection) -> None:
    """Go back to the last entry that there is: the next one may get a number that is free again."""
    db.execute(_STEP_BACK)
