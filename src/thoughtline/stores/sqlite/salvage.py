"""Copies what can still be read of a damaged file into a new one.

    python -m thoughtline.stores.sqlite.salvage damaged.db rescued.db [file:ring.keys]

The damaged file is not touched: a copy of it is read, row by row around what cannot be read. A
session is copied up to its first lost event, because a log has no gaps; what is lost is reported.
Turns whose index entry is lost are not found until `thoughtline index --rebuild` files them again.
A sealed file needs its keys, and the new one is sealed with them.
"""

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Corrupt, Damaged, SealError, StoreError, Unavailable
from thoughtline.log.events import Draft
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch
from thoughtline.stores.row import ENDED, open_entry, open_events
from thoughtline.stores.sealing import open_keychain
from thoughtline.stores.sqlite import key_tables, migrations, rows
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.inserts import insert_batch
from thoughtline.stores.sqlite.packed import row_place

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

_WINDOW = 512
_SESSIONS = """
SELECT s.number, s.session, t.tenant, s.created, s.touched, s.last, s.kept
FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant WHERE s.number BETWEEN ? AND ?
"""
_ROWS = """
SELECT session, first, turn, CASE id WHEN '' THEN turn ELSE id END, memo, thoughts, said
FROM batches WHERE position BETWEEN ? AND ? ORDER BY position
"""
_ENDED = """
SELECT EXISTS (
    SELECT 1 FROM batches AS b JOIN sessions AS s ON s.number = b.session
    WHERE s.session = ? AND b.turn = ? AND b.kinds & ?
)
"""
_UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, SealError, Damaged)


class SessionLoss(Struct, frozen=True, kw_only=True):
    """A session of which some events could not be copied."""

    session: str
    kept: int
    lost: int


class SalvageReport(Struct, frozen=True, kw_only=True):
    """How much was copied, and what was not."""

    sessions: int = 0
    events: int = 0
    index: int = 0
    losses: tuple[SessionLoss, ...] = ()
    nameless: int = 0  # events that can be read, of sessions that cannot


async def salvage(
    path: str | Path, into: str | Path, keychain: "Keychain | None" = None
) -> SalvageReport:
    """Copy what is readable to a new file. Nothing else may use the damaged one meanwhile."""
    return await asyncio.to_thread(_salvage, Path(path), Path(into), keychain)


def _salvage(path: Path, into: Path, keychain: "Keychain | None") -> SalvageReport:
    if not path.is_file():
        raise Unavailable(f"{path} is not there, so there is nothing to salvage")
    if into.exists():
        raise StoreError(f"{into} exists already; choose a name that does not")
    new = DatabaseFile(into, timeout=5.0, synchronous="normal", keychain=keychain)
    with tempfile.TemporaryDirectory(dir=new.path.parent, prefix=".salvage-") as directory:
        copy = Path(directory) / "damaged.db"
        shutil.copyfile(path, copy)
        log = path.with_name(path.name + "-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name("damaged.db-wal"))
        old = sqlite3.connect(copy, isolation_level=None)
        try:
            _open(old, path)
            target = new.for_writing()
            try:
                return _Salvager(old, target, keychain).run()
            finally:
                target.close()
        finally:
            old.close()


def _open(old: sqlite3.Connection, path: Path) -> None:
    try:
        old.execute("PRAGMA writable_schema = ON")  # also lets SQLite open a file that is too short
        old.execute("PRAGMA cell_size_check = ON")
        migrations.check(old, path)
    except sqlite3.DatabaseError as error:
        raise Corrupt(
            f"nothing of {path} can be read ({error}); restore a backup, or move it away "
            "to begin with an empty file"
        ) from error


class _SessionCopy:
    """A session that is being copied."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        _, self.session, self.tenant, self.created, self.touched, self.last, self.own = row
        self.kept = 0
        self.broken = False


class _Salvager:
    def __init__(
        self, old: sqlite3.Connection, new: Connection, keychain: "Keychain | None"
    ) -> None:
        self._old, self._new, self._keychain = old, new, keychain
        self._sessions: dict[int, _SessionCopy] = {}
        self._nameless = self._events = self._entries = 0

    def run(self) -> SalvageReport:
        """Copy sessions, then their events, then the index entries of what was copied."""
        for found in self._windows(_SESSIONS, self._top("sessions", "number")):
            self._sessions |= {row[0]: _SessionCopy(row) for row in found}
        self._copy_keys()
        self._copy_rows()
        for row in self._read_all("SELECT * FROM turn_counts"):
            self._new.execute("INSERT INTO turn_counts VALUES (?, ?, ?, ?, ?, ?)", row)
        copies = self._sessions.values()
        times = [(s.created, s.touched, s.session) for s in copies]
        self._new.executemany("UPDATE sessions SET created=?, touched=? WHERE session=?", times)
        return SalvageReport(
            sessions=sum(copy.kept > 0 for copy in copies),
            events=self._events,
            index=self._entries,
            losses=tuple(
                SessionLoss(session=s.session, kept=s.kept, lost=s.last + 1 - s.kept)
                for s in copies
                if s.kept <= s.last
            ),
            nameless=self._nameless,
        )

    # -- reading around the damage -----------------------------------------------------------

    def _top(self, table: str, key: str) -> int:
        """Return a number that no row of the table exceeds."""
        guesses = (
            ("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)),
            (f"SELECT max({key}) FROM {table}", ()),  # noqa: S608 (constant names)
            ("PRAGMA page_count", ()),
        )
        for statement, values in guesses:
            try:
                row = self._old.execute(statement, values).fetchone()
            except sqlite3.DatabaseError:
                continue
            if row and row[0] is not None:
                return int(row[0]) * (64 if "page_count" in statement else 1)
        return 0

    def _windows(self, statement: str, top: int) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows, a window at a time; a window that fails is halved down to the bad row."""
        for start in range(1, top + 1, _WINDOW):
            stack = [(start, min(start + _WINDOW - 1, top))]
            while stack:
                low, high = stack.pop()
                try:
                    found = self._old.execute(statement, (low, high)).fetchall()
                except sqlite3.DatabaseError:
                    if low < high:
                        middle = (low + high) // 2
                        stack += [(middle + 1, high), (low, middle)]
                    continue
                yield found

    # -- copying -----------------------------------------------------------------------------

    def _drafts(self, found: Iterable[tuple[Any, ...]]) -> list[Batch]:
        drafts: dict[int, list[Draft]] = {}
        for number, seq, id, parent, at, type, version, data in found:
            copy = self._sessions.get(number)
            if copy is None:
                self._nameless += 1
            elif copy.broken or seq != copy.kept or not _is_json(data):
                copy.broken = True
            else:
                draft = Draft(
                    id=id, parent=parent, at=float(at), type=type, version=version, data=data
                )
                drafts.setdefault(number, []).append(draft)
                copy.kept += 1
        return [self._batch(self._sessions[number], tuple(some)) for number, some in drafts.items()]

    def _batch(
        self, copy: _SessionCopy, drafts: tuple[Draft, ...] = (), index: tuple[IndexEntry, ...] = ()
    ) -> Batch:
        return Batch(
            session=copy.session,
            tenant=copy.tenant,
            drafts=drafts,
            index=index,
            kept=bool(copy.own),
        )

    def _copy_keys(self) -> None:
        """Copy the wrapped keys, without which nothing that is sealed can be read."""
        for master, plain in self._read_all("SELECT master, plain FROM sealing"):
            self._new.execute("UPDATE sealing SET master = ?, plain = ?", (master, plain))
        for row in self._read_all("SELECT tenant, version, master, wrapped FROM tenant_keys"):
            if self._keychain is not None:
                self._keychain.ring.get(row[2])  # or everything would count as damaged
            self._new.execute("INSERT OR IGNORE INTO tenant_keys VALUES (?, ?, ?, ?)", row)
        if self._keychain is None:
            key_tables.refuse_sealed(self._new, "the file")

    def _read_all(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self._old.execute(statement).fetchall()
        except sqlite3.DatabaseError:
            return []

    def _copy_rows(self) -> None:
        """Copy rows of turns: first all events, then the entries of what was copied."""
        top = self._top("batches", "position")
        for found in self._windows(_ROWS, top):
            self._copy(self._drafts(self._events_of(found)))
        for found in self._windows(_ROWS, top):
            self._copy([batch for row in found if (batch := self._entry_of(row))])

    def _events_of(self, found: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield the events of rows, as `_EVENTS` reads them; a row that cannot be read breaks."""
        for number, first, _, row, _, thoughts, said in found:
            copy = self._sessions.get(number)
            place = row_place(copy.tenant, copy.session, row) if copy else row_place("", "", row)
            try:
                events = open_events(first, thoughts, said, place, self._new.cipher)
            except _UNREADABLE:
                if copy is not None:
                    copy.broken = True
                continue
            for e in events:
                yield number, e.seq, e.id, e.parent, e.at, e.type, e.version, e.data

    def _entry_of(self, found: tuple[Any, ...]) -> Batch | None:
        number, _, turn, row, memo, *_ = found
        copy = self._sessions.get(number)
        if not memo or copy is None or not copy.kept or not self._complete(copy, turn):
            return None
        try:
            place = row_place(copy.tenant, copy.session, row)
            entry = open_entry(memo, place, self._new.cipher)
        except _UNREADABLE:
            return None
        return self._batch(copy, index=(entry,))

    def _complete(self, copy: _SessionCopy, turn: str) -> bool:
        """Whether the turn is in the part of its session that was copied."""
        if copy.kept > copy.last:
            return True
        (found,) = self._new.execute(_ENDED, (copy.session, turn, ENDED)).fetchone()
        return bool(found)

    def _copy(self, batches: list[Batch]) -> None:
        if batches:
            self._new.execute("BEGIN IMMEDIATE")
            rows.write(self._new, [insert_batch(batch) for batch in batches], time.time())
            self._new.execute("COMMIT")
            self._events += sum(len(batch.drafts) for batch in batches)
            self._entries += sum(len(batch.index) for batch in batches)


def _is_json(data: str) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def main(arguments: list[str]) -> int:
    """Run the command: arguments are the damaged file and the new one, and where its keys are."""
    if len(arguments) not in {2, 3}:
        sys.stderr.write("usage: python -m thoughtline.stores.sqlite.salvage DAMAGED NEW [KEYS]\n")
        return 2
    damaged, new, *keys = arguments
    try:
        done = asyncio.run(salvage(damaged, new, open_keychain("".join(keys), os.environ)))
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for loss in done.losses:
        sys.stdout.write(f"{loss.session}: {loss.kept} events kept, {loss.lost} lost\n")
    if done.nameless:
        sys.stdout.write(f"{done.nameless} events belong to sessions that cannot be read\n")
    sys.stdout.write(
        f"copied {done.sessions} sessions, {done.events} events and {done.index} index entries "
        f"to {arguments[1]}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
