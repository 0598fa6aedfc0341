"""Sheets into the file: a whole group of them in a handful of statements.

`write` runs inside a transaction that somebody else begins and commits. It looks up the sessions
of all sheets, numbers their events, and inserts everything table by table. A batch that may not be
written (a conflict) is answered and leaves no row; anything else that fails is raised, and then
nothing of the group may be committed.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Conflict
from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.sqlite import bulk
from thoughtline.stores.sqlite.migrations import sql
from thoughtline.stores.sqlite.sheets import EVENT, MEMORY, NAME, Filed, Sheet

_TENANTS = "INSERT INTO tenants (number, tenant) VALUES (?, ?)"
_SESSIONS = """
INSERT INTO sessions (number, session, tenant, created, touched, last, turns, oldest, newest)
VALUES {slots}
ON CONFLICT DO UPDATE SET
    touched = max(touched, excluded.touched),
    last = excluded.last,
    turns = turns + excluded.turns,
    oldest = min(coalesce(oldest, excluded.oldest), coalesce(excluded.oldest, oldest)),
    newest = max(coalesce(newest, excluded.newest), coalesce(excluded.newest, newest))
"""
_EVENTS = """
INSERT INTO events (session, seq, id, parent, at, type, version, data)
VALUES {slots}
"""
_ABOUT = "UPDATE events SET about = ? WHERE position = ?"
_MEMORIES = """
INSERT INTO memories (number, session, turn, provider, model, entries, chars, at, memo)
VALUES {slots}
"""
_NAMES = """
INSERT OR IGNORE INTO names (tenant, name, memory)
VALUES {slots}
"""
_FORGET = "DELETE FROM memories WHERE number IN ({slots})"
_FORGET_NAMES = "DELETE FROM names WHERE {slots}"

_look = sql("look.sql")
memos = msgspec.json.Decoder(Memory)
filings = msgspec.json.Decoder(list[tuple[int, int, str]])
_known = msgspec.json.Decoder(dict[str, tuple[int, str, int, int]])
_filed = msgspec.json.Decoder(list[tuple[str, str, tuple[int, int, str]]])
_numbers = msgspec.json.Decoder(dict[str, int])


class Book:
    """One session while a group is written."""

    __slots__ = ("last", "number", "tenant", "tenant_number", "weight", "written")

    def __init__(
        self, number: int = 0, tenant: str | None = None, tenant_number: int = 0, last: int = -1
    ) -> None:
        self.number = number  # 0: not in the file yet
        self.tenant = tenant  # None: nobody's yet
        self.tenant_number = tenant_number
        self.last = last
        self.written = False
        self.weight = facts.Weight()


class Written(Struct, frozen=True):
    """What became of a group: an answer for each sheet, and where its events stand."""

    answers: list[int | Conflict]  # the seq before the first one
    first: int | None  # position of the group's first event; None when there is none
    sessions: frozenset[str]


class Ledger(Struct):
    """What the file said before the group: who is known, and the last numbers given."""

    books: dict[str, Book]
    tenants: dict[str, int]
    filed: dict[tuple[str, str], tuple[int, int, str]]  # memories of turns that are filed again
    last_tenant: int
    last_session: int
    last_memory: int


def write(db: sqlite3.Connection, sheets: Sequence[Sheet], now: float) -> Written:
    """Write the sheets, in order, as of now."""
    ledger = _look_up(db, sheets)
    answers: list[int | Conflict] = []
    events: list[Any] = []
    about: list[tuple[int, str]] = []
    filed: dict[tuple[str, str], tuple[Book, Filed]] = {}
    for sheet in sheets:
        batch = sheet.batch
        book = ledger.books[batch.session]
        if problem := facts.conflict(batch, book.tenant, book.last):
            answers.append(problem)
            continue
        if not book.number:
            _open(db, ledger, book, batch.tenant)
        answers.append(book.last)
        if sheet.about:
            before = len(events) // EVENT.count("?")
            about += [(before + nth, target) for nth, target in sheet.about]
        events += sheet.numbered(book.number, book.last + 1)
        book.last += len(batch.drafts)
        book.weight.join(sheet.weight)
        book.written = True
        for memory in sheet.filed:
            turn = (batch.session, memory.turn)
            filed.pop(turn, None)  # filed again: now it is the newest
            filed[turn] = (book, memory)
    written = {session: book for session, book in ledger.books.items() if book.written}
    _write_sessions(db, written, now)
    first = _write_events(db, events, about)
    if ledger.filed:
        forget(db, [old for turn, old in ledger.filed.items() if turn in filed])
    _write_memories(db, filed.values(), ledger.last_memory)
    return Written(answers=answers, first=first, sessions=frozenset(written))


def _look_up(db: sqlite3.Connection, sheets: Sequence[Sheet]) -> Ledger:
    sessions = list({sheet.batch.session: None for sheet in sheets})
    tenants = list({sheet.batch.tenant: None for sheet in sheets})
    turns = [(sheet.batch.session, filed.turn) for sheet in sheets for filed in sheet.filed]
    statement = bulk.widened(_look, "?", bulk.width(len(sessions)))
    statement = bulk.widened(statement, "?", bulk.width(len(tenants)))
    statement = bulk.widened(statement, "(?, ?)", bulk.width(len(turns)))
    values = [*bulk.padded(sessions), *bulk.padded(tenants)]
    values += chain.from_iterable(bulk.padded(turns, (None, None)))
    known, numbers, filed, *last = db.execute(statement, values).fetchone()
    found = _known.decode(known)
    books = {name: Book(*found[name]) if name in found else Book() for name in sessions}
    before = {(session, turn): old for session, turn, old in _filed.decode(filed)}
    return Ledger(books, _numbers.decode(numbers), before, *last)


def _open(db: sqlite3.Connection, ledger: Ledger, book: Book, tenant: str) -> None:
    """Number a session that is new, and its tenant."""
    if tenant not in ledger.tenants:
        ledger.last_tenant += 1
        ledger.tenants[tenant] = ledger.last_tenant
        db.execute(_TENANTS, (ledger.last_tenant, tenant))
    ledger.last_session += 1
    book.number = ledger.last_session
    book.tenant, book.tenant_number = tenant, ledger.tenants[tenant]


def _write_sessions(db: sqlite3.Connection, written: dict[str, Book], now: float) -> None:
    sessions: list[Any] = []
    for session, book in written.items():
        weight = book.weight
        sessions += (book.number, session, book.tenant_number, now, now, book.last)
        sessions += (weight.turns, weight.oldest, weight.newest)
    bulk.execute(db, _SESSIONS, "(?, ?, ?, ?, ?, ?, ?, ?, ?)", sessions)


def _write_events(
    db: sqlite3.Connection, events: Sequence[Any], about: Iterable[tuple[int, str]]
) -> int | None:
    """Insert the events, and what some of them are about; returns the position of the first."""
    cursors = bulk.execute(db, _EVENTS, EVENT, events)
    if not cursors:
        return None
    first = (cursors[-1].lastrowid or 0) - len(events) // EVENT.count("?") + 1
    for nth, target in about:
        db.execute(_ABOUT, (target, first + nth))
    return first


def _write_memories(db: sqlite3.Connection, filed: Iterable[tuple[Book, Filed]], last: int) -> None:
    memories: list[Any] = []
    names: list[Any] = []
    for number, (book, memory) in enumerate(filed, last + 1):
        memory.numbered(number, book.number, book.tenant_number)
        memories += memory.values
        names += memory.names
    bulk.execute(db, _MEMORIES, MEMORY, memories)
    bulk.execute(db, _NAMES, NAME, names)


def forget(db: sqlite3.Connection, filed: Iterable[tuple[int, int, str]]) -> None:
    """Delete memories (number, tenant, memo) and the names they are filed under."""
    numbers: list[int] = []
    names: list[int | bytes] = []
    for number, tenant, memo in filed:
        numbers.append(number)
        for name in memos.decode(memo).names:
            names += (tenant, name, number)
    # Spelled out: SQLite does not look up `(tenant, name, memory) IN (VALUES …)` by the key.
    one = "(tenant = ? AND name = ? AND memory = ?)"
    bulk.execute(db, _FORGET_NAMES, one, names, glue=" OR ", widest=64)
    bulk.execute(db, _FORGET, "?", numbers)
