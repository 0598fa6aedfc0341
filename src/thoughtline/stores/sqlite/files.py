"""The file itself: how it is opened, whether it is still there, what its errors mean.

A connection made here is ready: write-ahead log on, tables of today's layout, foreign and newer
files refused. Errors of the driver leave this package as ours: a sentence that names the file,
says what happened and what to do.
"""

import os
import shlex
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from thoughtline.errors import Corrupt, StoreError, Unavailable
from thoughtline.stores.sqlite import migrations

SYNCHRONOUS = ("normal", "full")
_STATEMENTS = 512  # prepared statements kept by a connection: every width of every statement
_PRIMARY = 0xFF  # the low byte of an extended result code


def code(error: BaseException) -> int:
    """SQLite's primary result code, or -1 for errors that did not come from SQLite itself."""
    extended = getattr(error, "sqlite_errorcode", None)
    return extended & _PRIMARY if isinstance(extended, int) else -1


def circumstances(error: BaseException) -> bool:
    """Whether the file or the disk is to blame (locked, full, gone), and no particular batch."""
    if isinstance(error, Unavailable):
        return True
    return isinstance(error, sqlite3.OperationalError) and code(error) >= 0


def _filled(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


class File:
    """One SQLite file and the settings to open it with."""

    def __init__(self, path: Path, *, timeout: float, synchronous: str) -> None:
        if synchronous not in SYNCHRONOUS:
            raise StoreError(
                f"synchronous is {synchronous!r}; it can be {' or '.join(SYNCHRONOUS)}"
            )
        self.path = path.absolute()
        self.timeout = timeout
        self._log = self.path.with_name(self.path.name + "-wal")
        self._synchronous = synchronous

    def inode(self) -> tuple[int, int] | None:
        """Which file stands at the path now; None when there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # -- opening -----------------------------------------------------------------------------

    def _connect(self, query: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{query}",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,  # transactions begin and end where the code says so
            check_same_thread=False,  # each has one user at a time, not one thread for life
            cached_statements=_STATEMENTS,
        )

    def for_writing(self) -> sqlite3.Connection:
        """A connection that may write; creates the file, and brings its tables up to date."""
        deadline = time.monotonic() + self.timeout
        if not self.path.exists() and _filled(self._log):
            raise Unavailable(  # SQLite would start an empty file, and throw the log away
                f"{self.path} is gone, but its log {self._log.name} is there and may hold the last "
                "of it; put the file back, or remove the log too to begin with an empty file"
            )
        with suppress(OSError):  # then SQLite will say what is wrong
            if not self.path.exists():
                self.path.touch(mode=0o600)  # thoughts are nobody else's business
        while True:
            db = self._connect("mode=rwc")
            try:
                self._prepare(db)
            except sqlite3.OperationalError as error:
                db.close()
                # Two processes that create one file at once: SQLite answers without waiting.
                if code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except BaseException:
                db.close()
                raise
            else:
                return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        migrations.check(db, self.path)
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError(
                f"{self.path} cannot have a write-ahead log (SQLite answered {mode!r}); "
                "put it on a local disk that can map files into memory"
            )
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA secure_delete = ON")  # what was purged is overwritten, not just unlinked
        db.execute("PRAGMA journal_size_limit = 67108864")
        db.execute("PRAGMA cache_size = -64000")
        db.execute("PRAGMA wal_autocheckpoint = 16000")
        migrations.migrate(db, self.path)

    def for_reading(self) -> tuple[sqlite3.Connection, bool]:
        """A connection that only reads, and whether it may be used again.

        Raises `Absent` when a writer has to come first.
        """
        if not self.path.exists():
            raise migrations.Absent(f"{self.path} is not there")
        db = self._connect("mode=rw")
        try:
            return self._checked(db), True
        except sqlite3.OperationalError:
            db.close()
            if not self._frozen():
                raise
        # Nobody can write there, so there is nothing to coordinate with: SQLite needs no log.
        # But it would not notice either when somebody can again, so this is for one use only.
        return self._checked(self._connect("mode=ro&immutable=1")), False

    def _checked(self, db: sqlite3.Connection) -> sqlite3.Connection:
        try:
            db.execute("PRAGMA query_only = ON")
            db.execute("PRAGMA cache_size = -16000")
            migrations.check(db, self.path, complete=True)
        except BaseException:
            db.close()
            raise
        return db

    def _frozen(self) -> bool:
        """On a read-only disk, with nothing left in the log."""
        there = self.path.exists() and not os.access(self.path, os.W_OK)
        return there and not _filled(self._log)

    # -- explaining --------------------------------------------------------------------------

    def gone(self) -> Unavailable:
        """What to say when another file, or none, stands at the path."""
        return Unavailable(
            f"{self.path} was removed or replaced while it was open; what was being written is not "
            "kept. Put it back, or just write again: the store goes on with the file it finds there"
        )

    def explain(self, error: Exception) -> StoreError:
        """One of our errors for one of SQLite's (or of ours, unchanged)."""
        if isinstance(error, StoreError):
            return error
        match code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
                return Unavailable(
                    f"{self.path} is locked by another process (waited {self.timeout:g} s); "
                    "try again, or end the process that holds it"
                )
            case sqlite3.SQLITE_FULL:
                return Unavailable(
                    f"the disk of {self.path} is full; free some space and try again"
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return Unavailable(self._read_only())
            case sqlite3.SQLITE_CANTOPEN:
                return Unavailable(self._cannot_open())
            case sqlite3.SQLITE_IOERR:
                return Unavailable(
                    f"the disk of {self.path} does not read or write as it should ({error}); "
                    "see that it is there, has space and allows files of this size, then try again"
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return Corrupt(self._damaged(error))
        if self._garbled(error):
            return Corrupt(self._damaged(error))
        return StoreError(f"{self.path}: {error}")

    def _garbled(self, error: Exception) -> bool:
        """Rows that SQLite can fetch and that make no sense: it does not keep checksums."""
        if isinstance(error, sqlite3.OperationalError):
            return str(error).startswith("Could not decode to UTF-8")
        wrong = isinstance(error, msgspec.MsgspecError | ValueError)
        return wrong and not isinstance(error, UnicodeEncodeError | msgspec.EncodeError)

    def _read_only(self) -> str:
        return (
            f"{self.path} (or its directory) is read-only; "
            "make it writable, or choose another place for the store"
        )

    def _cannot_open(self) -> str:
        if not self.path.parent.is_dir():
            return f"{self.path} cannot be opened: create the directory {self.path.parent}"
        if self.path.is_dir():
            return f"{self.path} cannot be opened: it is a directory, and a file is needed"
        if self.path.exists() and not os.access(self.path, os.W_OK):
            return self._read_only()
        return (
            f"{self.path} cannot be opened: see that it is there "
            f"and that this user may write to {self.path.parent}"
        )

    def _damaged(self, error: Exception) -> str:
        old, new = shlex.quote(str(self.path)), shlex.quote(f"{self.path}.salvaged")
        return (
            f"{self.path} is damaged ({error}). Stop what uses it, copy what can be read to a new "
            f"file with: python -m thoughtline.stores.sqlite.salvage {old} {new}, and put that in "
            "its place; or move the damaged file away to begin with an empty one"
        )
