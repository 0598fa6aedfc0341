"""Writes groups of batches into the tables, inside a transaction of the writer.

What a group needs to know of the file is looked up in one statement; then every kind of row is
inserted with one statement for the whole group.
"""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import chain
from math import inf
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from thoughtline.errors import Conflict
from thoughtline.stores import rules
from thoughtline.stores.base import Batch
from thoughtline.stores.row import PLAIN, Cipher, Row, entry_names, seal_rows
from thoughtline.stores.sqlite import filed_entries, key_tables, statements
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.inserts import (
    RESERVED_SLOTS,
    ROW_SLOTS,
    InsertBatch,
    is_large,
    key_values,
    reserved_values,
    row_values,
    slices,
)
from thoughtline.stores.sqlite.statements import load

_TENANTS = "INSERT INTO tenants (number, tenant) VALUES (?, ?)"
_SESSIONS = load("upsert_sessions.sql")
_COUNT_SESSIONS = load("count_sessions.sql")
SESSION_SLOTS = f"({', '.join('?' * 10)})"
_ROWS = "INSERT INTO batches VALUES {slots}"
_CACHE = "PRAGMA cache_size"
_SMALL_CACHE = "PRAGMA cache_size = -4000"
"""For large rows: else the cache takes them up, and keeps them."""
_POINTERS = "INSERT INTO pointers (session, type, about, thoughts) VALUES {slots}"

_look_up_batch = load("look_up_batch.sql")
_ASKED = ("?", "?", "(?, ?, ?)", "(?, ?)", "?")
"""Slots for one of each kind that is looked up: sessions, tenants, turns, keys, turns again."""
_COLUMNS = tuple(slots.count("?") for slots in _ASKED)
_NO_KEY = ["", ""]
"""A tenant and a key that nothing is filed under: keys are no texts."""
MOST_KEYS = 16
"""Keys of a turn alone up to which every number has a statement of its own."""
_found = msgspec.json.Decoder(list[tuple[str, str, str, int, int, int]])
_turns = msgspec.json.Decoder(set[str])
_taken = msgspec.json.Decoder(list[tuple[str, str]])
_numbers = msgspec.json.Decoder(dict[str, int])


class SessionRow(Struct, array_like=True):
    """A session while a group is written; up to `touched` as it is looked up."""

    number: int = 0  # 0: not in the table yet
    tenant: str | None = None  # None: the session is new
    tenant_number: int = 0
    last: int = -1
    touched: float = -inf
    counts: rules.SessionCounts | None = None  # of what is written; None: nothing is
    kept: int = 0


_known = msgspec.json.Decoder(dict[str, SessionRow])


class WriteResult(Struct, frozen=True):
    """The results of writing a group."""

    results: list[int | Conflict]  # per batch, the seq before its first event
    first: int | None  # position of the group's first event; None when there is none
    last: int  # position of its last event
    appended: list[InsertBatch]  # without those that were there already, or may not be written
    hits: list[str]  # sessions that were touched a moment ago, and are not touched now
    names: set[tuple[str, bytes]] | None  # tenants and keys that had entries before
    quarantined: set[str]  # turns that were refused before


class ExistingRows(Struct):
    """What the tables hold of a group before it is written, and the last numbers given."""

    sessions: dict[str, SessionRow]
    tenants: dict[str, int]
    batches: dict[tuple[str, str], int]  # session and id of a batch → seq of its first event
    filed: dict[tuple[str, str], int]  # session and turn → position of its entry
    names: set[tuple[str, bytes]] | None  # tenants and keys with entries; None: not known
    quarantined: set[str]  # turns that were refused
    last_tenant: int
    last_session: int
    position: int
    sealing: str  # whether the file is sealed, see `key_tables.FileState`


class _NewRows(Struct):
    """The values that a group adds to the tables."""

    rows: list[Any] = []
    large: list[tuple[int, Row, Sequence[Any]]] = []  # position, row and values with its sizes
    keys: list[Any] = []
    pointers: list[Any] = []
    filed_again: list[int] = []  # positions of older entries of its turns


def write(
    db: Connection, batches: Sequence[InsertBatch], now: float, since: float = inf
) -> WriteResult:
    """Write the batches, in order; `now` is when their sessions were touched.

    Those that were touched since a moment ago are left to be touched later, with hits.
    """
    existing = _look_up(db, batches)
    key_tables.check_writer(db, existing.sealing)
    results: list[int | Conflict] = []
    appended: list[InsertBatch] = []
    new, first = _NewRows(), existing.position + 1
    for insert in batches:
        batch = insert.batch
        session = existing.sessions[batch.session]
        known = existing.batches.get((batch.session, batch.id)) if batch.id else None
        if known is not None and session.tenant == batch.tenant:
            results.append(known - 1)
            continue
        if problem := rules.find_conflict(batch, session.tenant, session.last):
            results.append(problem)
            continue
        if not session.number:
            _number_session(db, existing, session, batch.tenant)
        results.append(session.last)
        appended.append(insert)
        if batch.id:
            existing.batches[batch.session, batch.id] = session.last + 1
        for row in seal_rows(insert.rows, batch, db.cipher):
            _add(db.cipher, new, existing, batch, row)
        counts = session.counts
        session.counts = insert.counts if counts is None else counts.plus(insert.counts)
        if batch.kept:
            session.kept = 1
    hits = _write_sessions(db, existing.sessions, now, since)
    _insert(db, new)
    return WriteResult(
        results,
        first if existing.position >= first else None,
        existing.position,
        appended,
        hits,
        existing.names,
        existing.quarantined,
    )


def file_again(db: Connection, insert: InsertBatch) -> None:
    """File the entries of a session that is there, without touching it."""
    existing, new = _look_up(db, [insert]), _NewRows()
    key_tables.check_writer(db, existing.sealing)
    for row in seal_rows(insert.rows, insert.batch, db.cipher):
        _add(db.cipher, new, existing, insert.batch, row)
    _insert(db, new)


def _insert(db: Connection, new: _NewRows) -> None:
    statements.execute(db, _ROWS, ROW_SLOTS, new.rows)
    if new.large:
        _insert_large(db, new.large)
    if new.pointers:
        statements.execute(db, _POINTERS, "(?, ?, ?, ?)", new.pointers)
    filed_entries.insert_keys(db, new.keys)
    if new.filed_again:
        filed_entries.take_out(db, filed_entries.read_rows(db, new.filed_again))


def _insert_large(db: Connection, large: Sequence[tuple[int, Row, Sequence[Any]]]) -> None:
    """Insert rows whose columns are written slice by slice."""
    (usual,) = db.execute(_CACHE).fetchone()
    db.execute(_SMALL_CACHE)
    try:
        for position, row, values in large:
            statements.execute(db, _ROWS, RESERVED_SLOTS, values)
            for column, value in (("thoughts", row.thoughts), ("said", row.said)):
                with db.blobopen("batches", column, position) as blob:
                    for piece in slices(value):
                        blob.write(piece)
    finally:
        db.execute(f"{_CACHE} = {usual}")


def _add(cipher: Cipher, new: _NewRows, existing: ExistingRows, batch: Batch, row: Row) -> None:
    """Number a row and add its values."""
    session = existing.sessions[batch.session]
    position = existing.position = existing.position + (row.count or 1)
    place = (position, session.number, session.last + 1)
    if batch.heavy and is_large(row):
        new.large.append((position, row, reserved_values(row, *place)))
    else:
        new.rows += row_values(row, *place)
    session.last += row.count
    if row.entry is not None:
        turn = (batch.session, row.turn)
        if turn in existing.filed:
            new.filed_again.append(existing.filed[turn])
        existing.filed[turn] = position
        names = cipher.blind(batch.tenant, entry_names(row.entry))
        new.keys += key_values(names, position, session.tenant_number)
    for reference in row.references:
        new.pointers += (session.number, *reference)


@cache
def _statement(*widths: int) -> str:
    """Return the statement that looks up this number of each kind."""
    statement = _look_up_batch
    for row, width in zip(_ASKED, widths, strict=True):
        statement = statements.widened(statement, row, width)
    return statement


def _question(
    sessions: Collection[str], tenants: Collection[str], turns: list[Any], keys: list[Any]
) -> tuple[str, list[Any]]:
    """Return the statement that looks all of these up, and its values."""
    if len(turns) == 3 and len(keys) <= MOST_KEYS * 2 and len(sessions) == len(tenants) == 1:
        keys = keys or _NO_KEY  # the usual case: a turn alone
        values = [*sessions, *tenants, *turns, *keys, turns[1]]
        return _statement(1, 1, 1, len(keys) // 2, 1), values
    asked: Sequence[list[Any]] = (list(sessions), list(tenants), turns, keys, turns[1::3])
    padded = [
        statements.padded(values, columns) for values, columns in zip(asked, _COLUMNS, strict=True)
    ]
    widths = [len(values) // columns for values, columns in zip(padded, _COLUMNS, strict=True)]
    return _statement(*widths), list(chain.from_iterable(padded))


def _look_up(db: Connection, batches: Sequence[InsertBatch]) -> ExistingRows:
    sessions: dict[str, None] = {}
    tenants: dict[str, None] = {}
    turns: list[Any] = []
    keys: list[Any] = []
    plain = db.cipher is PLAIN  # else a key may be filed under other names
    for insert in batches:
        session, tenant = insert.batch.session, insert.batch.tenant
        sessions[session] = tenants[tenant] = None
        for row in insert.rows:
            if row.id or row.memo:
                turns += (session, row.turn, row.id)
            if plain:
                for key in row.entry.keys if row.entry else ():
                    keys += (tenant, bytearray(key))
    statement, values = _question(sessions, tenants, turns, keys)
    known, numbers, found, taken, refused, *last = db.execute(statement, values).fetchone()
    rows = _known.decode(known)
    for id in sessions:
        if id not in rows:
            rows[id] = SessionRow()
    before, filed = {}, {}
    for session, turn, id, first, position, has_entry in _found.decode(found):
        before[session, id] = first
        if has_entry:
            filed[session, turn] = position
    had = {(tenant, bytes.fromhex(key)) for tenant, key in _taken.decode(taken)} if plain else None
    return ExistingRows(
        rows, _numbers.decode(numbers), before, filed, had, _turns.decode(refused), *last
    )


def _number_session(db: Connection, existing: ExistingRows, row: SessionRow, tenant: str) -> None:
    """Number a new session, and its tenant if that is new."""
    if tenant not in existing.tenants:
        existing.last_tenant += 1
        existing.tenants[tenant] = existing.last_tenant
        db.execute(_TENANTS, (existing.last_tenant, tenant))
    existing.last_session += 1
    row.number = existing.last_session
    row.tenant, row.tenant_number = tenant, existing.tenants[tenant]


def _write_sessions(
    db: Connection, sessions: dict[str, SessionRow], now: float, since: float
) -> list[str]:
    touched: list[Any] = []
    counted: list[Any] = []
    hits: list[str] = []
    for session, row in sessions.items():
        if row.counts is None:
            continue
        values = (row.number, session, row.tenant_number, now, now, row.last)
        values += (*astuple(row.counts), row.kept)
        if row.touched >= since:
            hits.append(session)
            counted += values
        else:
            touched += values
    if touched:
        statements.execute(db, _SESSIONS, SESSION_SLOTS, touched)
    if counted:
        statements.execute(db, _COUNT_SESSIONS, SESSION_SLOTS, counted)
    return hits
