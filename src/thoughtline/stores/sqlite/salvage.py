"""What can still be read of a damaged file, copied into a new one.

    python -m thoughtline.stores.sqlite.salvage damaged.db rescued.db

The damaged file is not touched: a copy of it is read, row by row around what cannot be read. A
session is copied up to its first lost event, because a log has no gaps; what is lost is reported.
Memories whose row is lost are not found again, though their thoughts are still in the log.
"""

import asyncio
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.errors import Corrupt, StoreError, Unavailable
from thoughtline.events import Draft
from thoughtline.memories import Memory
from thoughtline.stores.base import Batch
from thoughtline.stores.sqlite import migrations, rows
from thoughtline.stores.sqlite.files import File
from thoughtline.stores.sqlite.sheets import sheet

_WINDOW = 512
_SESSIONS = """
SELECT s.number, s.session, t.tenant, s.created, s.touched, s.last
FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant WHERE s.number BETWEEN ? AND ?
"""
_EVENTS = """
SELECT session, seq, id, parent, at, type, version, data
FROM events WHERE position BETWEEN ? AND ? ORDER BY position
"""
_MEMORIES = "SELECT session, turn, memo FROM memories WHERE number BETWEEN ? AND ? ORDER BY number"

_ENDED = """
SELECT EXISTS (
    SELECT 1 FROM events AS e JOIN sessions AS s ON s.number = e.session
    WHERE s.session = ? AND e.parent = ? AND e.type = 'turn_ended'
)
"""


class Loss(Struct, frozen=True, kw_only=True):
    """A session that could not be copied whole."""

    session: str
    kept: int
    lost: int


class Salvage(Struct, frozen=True, kw_only=True):
    """What was copied, and what was not."""

    sessions: int = 0
    events: int = 0
    memories: int = 0
    losses: tuple[Loss, ...] = ()
    nameless: int = 0  # events that can be read, of sessions that can not


async def salvage(path: str | Path, into: str | Path) -> Salvage:
    """Copy what is readable to a new file. Nothing else may use the damaged one meanwhile."""
    return await asyncio.to_thread(_salvage, Path(path), Path(into))


def _salvage(path: Path, into: Path) -> Salvage:
    if not path.is_file():
        raise Unavailable(f"{path} is not there, so there is nothing to salvage")
    if into.exists():
        raise StoreError(f"{into} exists already; choose a name that does not")
    new = File(into, timeout=5.0, synchronous="normal")
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
                return _Salvager(old, target).run()
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


class _Shelf:
    """A session on its way from one file to the other."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        _, self.session, self.tenant, self.created, self.touched, self.last = row
        self.kept = 0
        self.broken = False


class _Salvager:
    def __init__(self, old: sqlite3.Connection, new: sqlite3.Connection) -> None:
        self._old, self._new = old, new
        self._shelves: dict[int, _Shelf] = {}
        self._nameless = self._events = self._memories = 0

    def run(self) -> Salvage:
        """Sessions, then their events, then the memories of what was kept."""
        for found in self._windows(_SESSIONS, self._top("sessions", "number")):
            self._shelves |= {row[0]: _Shelf(row) for row in found}
        for found in self._windows(_EVENTS, self._top("events", "position")):
            self._copy(self._drafts(found))
        for found in self._windows(_MEMORIES, self._top("memories", "number")):
            self._copy(self._filed(found))
        shelves = self._shelves.values()
        times = [(s.created, s.touched, s.session) for s in shelves]
        self._new.executemany("UPDATE sessions SET created=?, touched=? WHERE session=?", times)
        return Salvage(
            sessions=sum(shelf.kept > 0 for shelf in shelves),
            events=self._events,
            memories=self._memories,
            losses=tuple(
                Loss(session=s.session, kept=s.kept, lost=s.last + 1 - s.kept)
                for s in shelves
                if s.kept <= s.last
            ),
            nameless=self._nameless,
        )

    # -- reading around the damage -----------------------------------------------------------

    def _top(self, table: str, key: str) -> int:
        """A number that no row of the table is above."""
        guesses = (
            ("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)),
            (f"SELECT max({key}) FROM {table}", ()),  # noqa: S608 — our own names
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
        """The rows, a window at a time; one that fails is halved until the culprit is alone."""
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

    def _drafts(self, found: list[tuple[Any, ...]]) -> list[Batch]:
        drafts: dict[int, list[Draft]] = {}
        for number, seq, id, parent, at, type, version, data in found:
            shelf = self._shelves.get(number)
            if shelf is None:
                self._nameless += 1
            elif shelf.broken or seq != shelf.kept or not _is_json(data):
                shelf.broken = True
            else:
                draft = Draft(
                    id=id, parent=parent, at=float(at), type=type, version=version, data=data
                )
                drafts.setdefault(number, []).append(draft)
                shelf.kept += 1
        return [self._batch(self._shelves[number], tuple(some)) for number, some in drafts.items()]

    def _batch(
        self, shelf: _Shelf, drafts: tuple[Draft, ...] = (), memories: tuple[Memory, ...] = ()
    ) -> Batch:
        return Batch(session=shelf.session, tenant=shelf.tenant, drafts=drafts, memories=memories)

    def _filed(self, found: list[tuple[Any, ...]]) -> list[Batch]:
        batches: list[Batch] = []
        for number, turn, memo in found:
            shelf = self._shelves.get(number)
            if shelf is None or not shelf.kept or not self._complete(shelf, turn):
                continue
            try:
                memory = rows.memos.decode(memo)
            except msgspec.MsgspecError:
                continue
            batches.append(self._batch(shelf, memories=(memory,)))
        return batches

    def _complete(self, shelf: _Shelf, turn: str) -> bool:
        """Whether the turn is in the part of its session that was kept."""
        if shelf.kept > shelf.last:
            return True
        (found,) = self._new.execute(_ENDED, (shelf.session, turn)).fetchone()
        return bool(found)

    def _copy(self, batches: list[Batch]) -> None:
        if batches:
            self._new.execute("BEGIN IMMEDIATE")
            rows.write(self._new, [sheet(batch) for batch in batches], time.time())
            self._new.execute("COMMIT")
            self._events += sum(len(batch.drafts) for batch in batches)
            self._memories += sum(len(batch.memories) for batch in batches)


def _is_json(data: str) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def main(arguments: list[str]) -> int:
    """The command: the damaged file, and the new one."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m thoughtline.stores.sqlite.salvage DAMAGED NEW\n")
        return 2
    try:
        done = asyncio.run(salvage(*arguments))
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for loss in done.losses:
        sys.stdout.write(f"{loss.session}: {loss.kept} events kept, {loss.lost} lost\n")
    if done.nameless:
        sys.stdout.write(f"{done.nameless} events belong to sessions that cannot be read\n")
    sys.stdout.write(
        f"copied {done.sessions} sessions, {done.events} events and {done.memories} memories "
        f"to {arguments[1]}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
