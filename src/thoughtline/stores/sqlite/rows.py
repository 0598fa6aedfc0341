"""Writes a group of batches into the tables, in a few statements.

`write` runs inside a transaction that the caller begins and commits. It looks up the sessions of
all batches, numbers their events, and inserts everything table by table. A batch that may not be
written (a conflict) gets its error as a result and leaves no row; any other error is raised, and
then nothing of the group may be committed. In the tables an index entry is called a memory and a
look-up key a name: those are the words of the first layout.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Conflict
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.sqlite import statements, summaries
from thoughtline.stores.sqlite.inserts import (
    ENTRY_SLOTS,
    EVENT_SLOTS,
    KEY_SLOTS,
    EntryRows,
    InsertBatch,
)
from thoughtline.stores.sqlite.statements import load

_TENANTS = "INSERT INTO tenants (number, tenant) VALUES (?, ?)"
_SESSIONS = load("upsert_sessions.sql")
_EVENTS = """
INSERT INTO events (session, seq, id, parent, at, type, version, data, batch)
VALUES {slots}
"""
_REFERENCE = "UPDATE events SET about = ? WHERE position = ?"
_ENTRIES = """
INSERT INTO memories (number, session, turn, provider, model, entries, chars, at, memo)
VALUES {slots}
"""
_KEYS = """
INSERT OR IGNORE INTO names (tenant, name, memory)
VALUES {slots}
"""
_DELETE_ENTRIES = "DELETE FROM memories WHERE number IN ({slots})"
_DELETE_KEYS = "DELETE FROM names WHERE {slots}"

_look_up_batch = load("look_up_batch.sql")
entry_decoder = msgspec.json.Decoder(IndexEntry)
filed_decoder = msgspec.json.Decoder(list[tuple[int, int, str]])
_known = msgspec.json.Decoder(dict[str, tuple[int, str, int, int]])
_filed = msgspec.json.Decoder(list[tuple[str, str, tuple[int, int, str]]])
_written = msgspec.json.Decoder(list[tuple[str, str, int]])
_numbers = msgspec.json.Decoder(dict[str, int])


class SessionRow:
    """A session while a group is written."""

    __slots__ = ("counts", "kept", "last", "number", "tenant", "tenant_number", "written")

    def __init__(
        self, number: int = 0, tenant: str | None = None, tenant_number: int = 0, last: int = -1
    ) -> None:
        self.number = number  # 0: not in the table yet
        self.tenant = tenant  # None: the session is new
        self.tenant_number = tenant_number
        self.last = last
        self.written = False
        self.kept = 0
        self.counts = rules.SessionCounts()


class WriteResult(Struct, frozen=True):
    """The results of writing a group."""

    results: list[int | Conflict]  # per batch, the seq before its first event
    first: int | None  # position of the group's first event; None when there is none
    sessions: frozenset[str]


class ExistingRows(Struct):
    """What the tables hold of a group before it is written, and the last numbers given."""

    sessions: dict[str, SessionRow]
    tenants: dict[str, int]
    filed: dict[tuple[str, str], tuple[int, int, str]]  # entries of turns that are filed again
    batches: dict[tuple[str, str], int]  # session and id of a batch → seq of its first event
    last_tenant: int
    last_session: int
    last_entry: int


def write(db: sqlite3.Connection, batches: Sequence[InsertBatch], now: float) -> WriteResult:
    """Write the batches, in order; `now` is when their sessions were touched."""
    existing = _look_up(db, batches)
    results: list[int | Conflict] = []
    events: list[Any] = []
    references: list[tuple[int, str]] = []
    filed: dict[tuple[str, str], tuple[SessionRow, EntryRows]] = {}
    for insert in batches:
        batch = insert.batch
        row = existing.sessions[batch.session]
        known = existing.batches.get((batch.session, batch.id)) if batch.id else None
        if known is not None and row.tenant == batch.tenant:
            results.append(known - 1)
            continue
        if problem := rules.find_conflict(batch, row.tenant, row.last):
            results.append(problem)
            continue
        if not row.number:
            _number_session(db, existing, row, batch.tenant)
        results.append(row.last)
        existing.batches[batch.session, batch.id] = row.last + 1
        if insert.references:
            before = len(events) // EVENT_SLOTS.count("?")
            references += [(before + nth, target) for nth, target in insert.references]
        events += insert.numbered(row.number, row.last + 1)
        row.last += len(batch.drafts)
        row.counts.join(insert.counts)
        row.written = True
        if batch.kept:
            row.kept = 1
        for rows in insert.entries:
            turn = (batch.session, rows.turn)
            filed.pop(turn, None)  # filed again: it is the newest now
            filed[turn] = (row, rows)
    written = {session: row for session, row in existing.sessions.items() if row.written}
    _write_sessions(db, written, now)
    first = _write_events(db, events, references)
    if existing.filed:
        delete_entries(db, [old for turn, old in existing.filed.items() if turn in filed])
    _write_entries(db, filed.values(), existing.last_entry)
    return WriteResult(results=results, first=first, sessions=frozenset(written))


def _look_up(db: sqlite3.Connection, batches: Sequence[InsertBatch]) -> ExistingRows:
    sessions = list({insert.batch.session: None for insert in batches})
    tenants = list({insert.batch.tenant: None for insert in batches})
    turns = [(insert.batch.session, rows.turn) for insert in batches for rows in insert.entries]
    ids = [(insert.batch.session, insert.batch.id) for insert in batches]
    statement = statements.widened(_look_up_batch, "?", statements.width(len(sessions)))
    statement = statements.widened(statement, "?", statements.width(len(tenants)))
    statement = statements.widened(statement, "(?, ?)", statements.width(len(turns)))
    statement = statements.widened(statement, "(?, ?)", statements.width(len(ids)))
    values = [*statements.padded(sessions), *statements.padded(tenants)]
    values += chain.from_iterable(statements.padded(turns, (None, None)))
    values += chain.from_iterable(statements.padded(ids, (None, None)))
    known, numbers, filed, written, *last = db.execute(statement, values).fetchone()
    found = _known.decode(known)
    rows = {id: SessionRow(*found[id]) if id in found else SessionRow() for id in sessions}
    before = {(session, turn): old for session, turn, old in _filed.decode(filed)}
    first = {(session, id): seq for session, id, seq in _written.decode(written)}
    return ExistingRows(rows, _numbers.decode(numbers), before, first, *last)


def _number_session(
    db: sqlite3.Connection, existing: ExistingRows, row: SessionRow, tenant: str
) -> None:
    """Number a new session, and its tenant if that is new."""
    if tenant not in existing.tenants:
        existing.last_tenant += 1
        existing.tenants[tenant] = existing.last_tenant
        db.execute(_TENANTS, (existing.last_tenant, tenant))
    existing.last_session += 1
    row.number = existing.last_session
    row.tenant, row.tenant_number = tenant, existing.tenants[tenant]


def _write_sessions(db: sqlite3.Connection, written: dict[str, SessionRow], now: float) -> None:
    sessions: list[Any] = []
    for session, row in written.items():
        counts = row.counts
        sessions += (row.number, session, row.tenant_number, now, now, row.last)
        sessions += (counts.turns, counts.oldest, counts.newest, row.kept)
    statements.execute(db, _SESSIONS, "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", sessions)


def _write_events(
    db: sqlite3.Connection, events: Sequence[Any], references: Iterable[tuple[int, str]]
) -> int | None:
    """Insert the events and what some of them refer to; returns the position of the first."""
    cursors = statements.execute(db, _EVENTS, EVENT_SLOTS, events)
    if not cursors:
        return None
    first = (cursors[-1].lastrowid or 0) - len(events) // EVENT_SLOTS.count("?") + 1
    for nth, target in references:
        db.execute(_REFERENCE, (target, first + nth))
    return first


def _write_entries(
    db: sqlite3.Connection, filed: Iterable[tuple[SessionRow, EntryRows]], last: int
) -> None:
    numbered: list[EntryRows] = []
    for number, (row, rows) in enumerate(filed, last + 1):
        rows.set_numbers(number, row.number, row.tenant_number)
        numbered.append(rows)
    insert_entries(db, numbered)


def insert_entries(db: sqlite3.Connection, numbered: Iterable[EntryRows]) -> None:
    """Insert index entries that have their numbers, and their keys."""
    entries: list[Any] = []
    keys: list[Any] = []
    for rows in numbered:
        entries += rows.values
        keys += rows.keys
    statements.execute(db, _ENTRIES, ENTRY_SLOTS, entries)
    statements.execute(db, _KEYS, KEY_SLOTS, keys)


def delete_entries(db: sqlite3.Connection, filed: Iterable[tuple[int, int, str]]) -> None:
    """Delete index entries (number, tenant, memo) and the keys they are filed under."""
    numbers: list[int] = []
    keys: list[int | bytes] = []
    calls: list[tuple[str, int]] = []
    for number, tenant, memo in filed:
        entry = entry_decoder.decode(memo)
        numbers.append(number)
        calls += [(call, number) for call in entry.calls]
        for key in entry.keys:
            keys += (tenant, key, number)
    delete_keys(db, keys)
    statements.execute(db, _DELETE_ENTRIES, "?", numbers)
    summaries.remove_entries(db, numbers, calls)
    summaries.step_back(db)


def delete_keys(db: sqlite3.Connection, values: Sequence[int | bytes]) -> None:
    """Delete rows of look-up keys; `values` are tenant, key and entry of each."""
    # SQLite does not look up `(tenant, name, memory) IN (VALUES …)` by the primary key.
    one = "(tenant = ? AND name = ? AND memory = ?)"
    statements.execute(db, _DELETE_KEYS, one, values, glue=" OR ", widest=64)
