"""The SQLite file: how it is opened, whether it is still there, and what its errors mean.

A connection made here is ready: write-ahead log on, tables of the current layout, files of other
programs and newer versions refused. Driver errors are turned into store errors that name the file,
say what happened and what to do.
"""

import os
import shlex
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from thoughtline.errors import Corrupt, StoreError, Unavailable
from thoughtline.stores.damage import DamagedSessions
from thoughtline.stores.sqlite import key_tables, migrations
from thoughtline.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

SYNCHRONOUS = ("normal", "full")
_STATEMENTS = 512  # prepared statements kept by a connection: every width of every statement
_PRIMARY = 0xFF  # the low byte of an extended result code


def code(error: BaseException) -> int:
    """Return SQLite's primary result code, or -1 for errors that are not SQLite's own."""
    extended = getattr(error, "sqlite_errorcode", None)
    return extended & _PRIMARY if isinstance(extended, int) else -1


def is_file_trouble(error: BaseException) -> bool:
    """Whether the file or the disk is at fault (locked, full, gone) and not a particular batch."""
    if isinstance(error, Unavailable):
        return True
    return isinstance(error, sqlite3.OperationalError) and code(error) >= 0


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


class DatabaseFile:
    """A SQLite file and the settings to open it with."""

    def __init__(
        self,
        path: Path,
        *,
        timeout: float,
        synchronous: str,
        keychain: "Keychain | None" = None,
    ) -> None:
        if synchronous not in SYNCHRONOUS:
            raise StoreError(
                f"synchronous is {synchronous!r}; it can be {' or '.join(SYNCHRONOUS)}"
            )
        self.path = path.absolute()
        self.timeout = timeout
        self._name = str(self.path)
        self._wal = self.path.with_name(self.path.name + "-wal")
        self._synchronous = synchronous
        self.keychain = keychain
        self.damage = DamagedSessions()

    def inode(self) -> tuple[int, int] | None:
        """Return device and inode of the file at the path; None when there is none."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 (twice for every transaction)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # -- opening -----------------------------------------------------------------------------

    def _connect(self, query: str) -> Connection:
        db = sqlite3.connect(
            f"{self.path.as_uri()}?{query}",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,  # transactions are begun and ended explicitly
            check_same_thread=False,  # each has one user at a time, not one thread for life
            cached_statements=_STATEMENTS,
            factory=Connection,
        )
        db.execute("PRAGMA temp_store = MEMORY")  # results on the way are small, and private
        db.damage = self.damage
        if self.keychain is not None:
            from thoughtline.stores.sqlite.sealed import SealingCipher

            db.cipher = SealingCipher(db, self.keychain)
        return db

    def for_writing(self) -> Connection:
        """Open a connection that may write; creates the file and migrates its tables."""
        deadline = time.monotonic() + self.timeout
        if not self.path.exists() and _has_content(self._wal):
            raise Unavailable(  # SQLite would start an empty file, and throw the log away
                f"{self.path} is gone, but its log {self._wal.name} is there and may hold the last "
                "of it; put the file back, or remove the log too to begin with an empty file"
            )
        with suppress(OSError):  # then SQLite will say what is wrong
            if not self.path.exists():
                self.path.touch(mode=0o600)  # thoughts are private
        while True:
            db = self._connect("mode=rwc")
            try:
                self._prepare(db)
            except sqlite3.OperationalError as error:
                db.close()
                # Two processes that create or migrate one file: SQLite answers without waiting.
                if code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005 + os.getpid() % 16 / 1_000)
            except BaseException:
                db.close()
                raise
            else:
                return db

    def _prepare(self, db: Connection) -> None:
        db.execute("PRAGMA secure_delete = ON")  # what was purged is overwritten, not just unlinked
        self._upgrade(db)
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal":
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreError(
                f"{self.path} cannot have a write-ahead log (SQLite answered {mode!r}); "
                "put it on a local disk that can map files into memory"
            )
        db.execute(f"PRAGMA synchronous = {self._synchronous}")
        db.execute("PRAGMA journal_size_limit = 67108864")
        db.execute("PRAGMA cache_size = -64000")
        db.execute("PRAGMA wal_autocheckpoint = 16000")
        migrations.migrate(db, self.path)
        if self.keychain is None:
            key_tables.refuse_sealed(db, self.path)

    def migrate(self) -> list[str]:
        """Bring a file of an earlier version to today's tables; returns what was run."""
        with closing(self._connect("mode=rw")) as db:
            return self._upgrade(db)

    def _upgrade(self, db: Connection) -> list[str]:
        """Run what a file of an earlier version lacks, while nobody else has it open.

        A program that runs does not look at the version again. So the write-ahead log is left for
        the while, which SQLite allows to a single connection only.
        """
        if not migrations.is_behind(db, self.path):
            return []
        db.execute("PRAGMA journal_mode = DELETE")
        return migrations.migrate(db, self.path)

    def for_reading(self) -> tuple[Connection, bool]:
        """Open a connection that only reads, and return whether it may be used again.

        Raises `NotMigrated` when a writer has to open the file first.
        """
        if not self.path.exists():
            raise migrations.NotMigrated(f"{self.path} is not there")
        db = self._connect("mode=rw")
        try:
            return self._checked(db), True
        except sqlite3.OperationalError:
            db.close()
            if not self._is_read_only():
                raise
        # Nobody can write there, so SQLite needs no log to coordinate with.
        # But it would not notice either when somebody can again, so this is for one use only.
        return self._checked(self._connect("mode=ro&immutable=1")), False

    def _checked(self, db: Connection) -> Connection:
        try:
            db.execute("PRAGMA query_only = ON")
            db.execute("PRAGMA cache_size = -16000")
            migrations.check(db, self.path, complete=True)
            if self.keychain is None:
                key_tables.refuse_sealed(db, self.path)
        except BaseException:
            db.close()
            raise
        return db

    def _is_read_only(self) -> bool:
        """Whether the file is read-only and its write-ahead log is empty."""
        there = self.path.exists() and not os.access(self.path, os.W_OK)
        return there and not _has_content(self._wal)

    # -- explaining --------------------------------------------------------------------------

    def gone(self) -> Unavailable:
        """Return the error for another file, or none, at the path."""
        return Unavailable(
            f"{self.path} was removed or replaced while it was open; what was being written is not "
            "kept. Put it back, or just write again: the store goes on with the file it finds there"
        )

    def explain(self, error: Exception) -> StoreError:
        """Turn an error of SQLite into a store error; store errors are returned unchanged."""
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
                return Corrupt(self.damaged(error))
        if self._is_garbled(error):
            return Corrupt(self.damaged(error))
        return StoreError(f"{self.path}: {error}")

    def _is_garbled(self, error: Exception) -> bool:
        """Whether SQLite returned a row that cannot be decoded: it has no checksums."""
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

    def damaged(self, error: Exception | str) -> str:
        """Say that the file is damaged, and the way out."""
        old, new = shlex.quote(str(self.path)), shlex.quote(f"{self.path}.salvaged")
        return (
            f"{self.path} is damaged ({error}). Stop what uses it, copy what can be read to a new "
            f"file with: python -m thoughtline.stores.sqlite.salvage {old} {new}, and put that in "
            "its place; or move the damaged file away to begin with an empty one"
        )
