"""Erases thoughts from the log: the events stay, with nothing in them to be sent or read.

A reader goes through the reasoning events and compares each with the filter, by its index entry or
by its own origin; the writer blanks a few per transaction and marks their entries as forgotten.
What is erased is overwritten in the file (`secure_delete`).
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Origin
from thoughtline.stores import rules
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.sqlite import entries, queries, rows, statements

CHUNK = 200
"""Reasoning events in one transaction."""

_REASONING = """
SELECT json_group_array(json_array(
    e.position, e.version, e.data, e.parent, s.session, t.tenant, m.number, m.memo
)) FROM (
    SELECT position, version, data, parent, session FROM events
    WHERE position > :after AND type = 'reasoning' {session} ORDER BY position LIMIT :limit
) AS e
CROSS JOIN sessions AS s ON s.number = e.session
CROSS JOIN tenants AS t ON t.number = s.tenant
LEFT JOIN memories AS m ON m.session = e.session AND m.turn = e.parent
"""
_OF_SESSION = "AND session = (SELECT number FROM sessions WHERE session = :session)"
_ERASE = """
UPDATE events SET version = erased.column2, data = erased.column3
FROM (VALUES {slots}) AS erased WHERE events.position = erased.column1
"""
_rows = msgspec.json.Decoder(list[tuple[int, int, str, str, str, str, int | None, str | None]])


class ErasePage(Struct, frozen=True):
    """What of some reasoning events is to be erased."""

    events: list[tuple[int, int, str]]  # position, version, data
    entries: dict[int, str]  # number of the index entry → its turn
    position: int  # where the next page begins
    newest: int
    more: bool


def read_page(db: sqlite3.Connection, entry_filter: EntryFilter, after: int) -> ErasePage:
    """Return the thoughts to erase among the next reasoning events."""
    statement = _REASONING.replace("{session}", "" if entry_filter.session is None else _OF_SESSION)
    values = {"after": after, "limit": CHUNK, "session": entry_filter.session}
    found = _rows.decode(db.execute(statement, values).fetchone()[0])
    events: list[tuple[int, int, str]] = []
    filed: dict[int, str] = {}
    for position, version, data, turn, session, tenant, number, memo in found:
        thought = rules.read_thought(version, data)
        if thought is not None and thought.forgotten:
            continue
        if memo is not None:
            entry = rows.entry_decoder.decode(memo)
        else:
            origin = (thought.origin if thought else None) or Origin()
            entry = IndexEntry(session, turn, origin=origin)
        if rules.filter_matches(entry_filter, tenant, entry):
            events.append((position, version, data))
            if number is not None:
                filed[number] = turn
    last = max((row[0] for row in found), default=after)
    return ErasePage(events, filed, last, queries.position(db), len(found) == CHUNK)


def erase(db: sqlite3.Connection, page: ErasePage) -> int:
    """Erase the thoughts of a page; returns how many."""
    blank: list[Any] = []
    for position, version, data in page.events:
        blank += (position, *rules.blank_thought(version, data))
    erased = sum(c.rowcount for c in statements.execute(db, _ERASE, "(?, ?, ?)", blank))
    _forget(db, page.entries)
    return erased


def _forget(db: sqlite3.Connection, filed: dict[int, str]) -> None:
    changed: Sequence[tuple[entries.EntryRow, IndexEntry]] = [
        (row, rules.forget_entry(row.entry, ALL_ENTRIES)[0])
        for row in entries.read_rows(db, list(filed))
        if row.entry.turn == filed[row.number]  # a number may be used again
    ]
    entries.update_entries(db, changed)
