"""Batches as rows: a whole group of them in a handful of statements.

`write` runs inside a transaction that somebody else begins and commits. It looks up the sessions
of all batches, numbers their events, and inserts everything table by table. A batch that may not be
written (a conflict) is answered and leaves no row; anything else that fails is raised, and then
nothing of the group may be committed.
"""

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from thoughtline.errors import Conflict
from thoughtline.events import Event
from thoughtline.memories import Memory
from thoughtline.stores import facts
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import bulk
from thoughtline.stores.sqlite.migrations import sql

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
INSERT INTO events (session, seq, id, parent, at, type, version, about, data)
VALUES {slots}
"""
_FILED = """
SELECT json_group_array(json_array(m.number, s.tenant, m.memo))
FROM (VALUES {slots}) AS asked
CROSS JOIN memories AS m ON m.session = asked.column1 AND m.turn = asked.column2
CROSS JOIN sessions AS s ON s.number = m.session
"""
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
_memo = msgspec.json.Encoder().encode
memos = msgspec.json.Decoder(Memory)
filings = msgspec.json.Decoder(list[tuple[int, int, str]])
_known = msgspec.json.Decoder(list[tuple[str, int, str, int, int]])
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
    """What became of a group: an answer for each batch, and where its events stand."""

    answers: list[list[Event] | Conflict]
    first: int | None  # position of the group's first event; None when there is none
    sessions: frozenset[str]


class Ledger(Struct, frozen=True):
    """What the file said before the group: who is known, and the last numbers given."""

    books: dict[str, Book]
    tenants: dict[str, int]
    last_tenant: int
    last_session: int
    last_memory: int


def write(db: sqlite3.Connection, batches: Sequence[Batch], now: float) -> Written:
    """Write the batches, in order, as of now."""
    ledger = _look_up(db, batches)
    answers: list[list[Event] | Conflict] = []
    events: list[tuple[Book, Event]] = []
    memories: dict[tuple[str, str], tuple[Book, Memory]] = {}
    for batch in batches:
        facts.check(batch)
        book = ledger.books[batch.session]
        if problem := facts.conflict(batch, book.tenant, book.last):
            answers.append(problem)
            continue
        numbered = facts.number(batch, book.last)
        answers.append(numbered)
        events += [(book, event) for event in numbered]
        book.tenant, book.written = batch.tenant, True
        book.last += len(numbered)
        book.weight.add(batch.drafts)
        for memory in batch.memories:
            memories.pop((memory.session, memory.turn), None)  # filed again: now it is the newest
            memories[memory.session, memory.turn] = (book, memory)
    written = {session: book for session, book in ledger.books.items() if book.written}
    again = [(b.number, memory.turn) for b, memory in memories.values() if b.number]
    _write_sessions(db, ledger, written, now)
    first = _write_events(db, events)
    for cursor in bulk.execute(db, _FILED, "(?, ?)", again):
        forget(db, filings.decode(cursor.fetchone()[0]))
    _write_memories(db, list(memories.values()), ledger.last_memory)
    return Written(answers=answers, first=first, sessions=frozenset(written))


def _look_up(db: sqlite3.Connection, batches: Sequence[Batch]) -> Ledger:
    books = {batch.session: Book() for batch in batches}
    sessions = list(books)
    tenants = list({batch.tenant for batch in batches})
    statement = bulk.widened(_look, "?", bulk.width(len(sessions)))
    statement = bulk.widened(statement, "?", bulk.width(len(tenants)))
    values = [*bulk.padded(sessions), *bulk.padded(tenants)]
    known, numbers, *last = db.execute(statement, values).fetchone()
    for session, number, tenant, tenant_number, seq in _known.decode(known):
        books[session] = Book(number, tenant, tenant_number, seq)
    return Ledger(books, _numbers.decode(numbers), *last)


def _write_sessions(
    db: sqlite3.Connection, ledger: Ledger, written: dict[str, Book], now: float
) -> None:
    new = [book for book in written.values() if not book.number]
    tenants = dict(ledger.tenants)
    for number, book in enumerate(new, ledger.last_session + 1):
        tenant = book.tenant or ""
        if tenant not in tenants:
            tenants[tenant] = ledger.last_tenant + 1 + len(tenants) - len(ledger.tenants)
            db.execute(_TENANTS, (tenants[tenant], tenant))
        book.number, book.tenant_number = number, tenants[tenant]
    sessions: list[tuple[object, ...]] = []
    for session, book in written.items():
        weight = book.weight
        sums = (weight.turns, weight.oldest, weight.newest)
        sessions.append((book.number, session, book.tenant_number, now, now, book.last, *sums))
    bulk.execute(db, _SESSIONS, "(?, ?, ?, ?, ?, ?, ?, ?, ?)", sessions)


def _write_events(db: sqlite3.Connection, events: Sequence[tuple[Book, Event]]) -> int | None:
    """Insert the events; returns the position of the first."""
    rows: list[tuple[object, ...]] = []
    for book, e in events:
        about = facts.about(e.type, e.data)
        rows.append(
            (book.number, e.seq, e.id, e.parent, repr(e.at), e.type, e.version, about, e.data)
        )
    cursors = bulk.execute(db, _EVENTS, "(?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return (cursors[-1].lastrowid or 0) - len(rows) + 1 if cursors else None


def _write_memories(
    db: sqlite3.Connection, filed: Sequence[tuple[Book, Memory]], last: int
) -> None:
    memories: list[tuple[object, ...]] = []
    names: list[tuple[object, ...]] = []
    for number, (book, memory) in enumerate(filed, last + 1):
        memo = _memo(msgspec.structs.replace(memory, thoughts=())).decode()
        kind = facts.filing(memory)
        counted = (kind.provider, kind.model, kind.entries, kind.chars, kind.last)
        memories.append((number, book.number, memory.turn, *counted, memo))
        names += [(book.tenant_number, name, number) for name in memory.names]
    bulk.execute(db, _MEMORIES, "(?, ?, ?, ?, ?, ?, ?, ?, ?)", memories)
    bulk.execute(db, _NAMES, "(?, ?, ?)", names)


def forget(db: sqlite3.Connection, filed: Iterable[tuple[int, int, str]]) -> None:
    """Delete memories (number, tenant, memo) and the names they are filed under."""
    numbers: list[tuple[int]] = []
    names: list[tuple[int, bytes, int]] = []
    for number, tenant, memo in filed:
        numbers.append((number,))
        names += [(tenant, name, number) for name in memos.decode(memo).names]
    # Spelled out: SQLite does not look up `(tenant, name, memory) IN (VALUES …)` by the key.
    one = "(tenant = ? AND name = ? AND memory = ?)"
    bulk.execute(db, _FORGET_NAMES, one, names, glue=" OR ", widest=64)
    bulk.execute(db, _FORGET, "?", numbers)
