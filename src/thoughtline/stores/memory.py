"""A store in SQLite's memory: all of `SqliteStore`, and nothing on disk.

It is meant for tests, for trying things out, and for a gateway that shall leave nothing on disk. It
keeps the promises of the port except one: when the process ends, everything is gone. There is one
connection and no thread: what is asked of it is done at once, in the caller's loop.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from thoughtline.clock import Clock
from thoughtline.errors import Unavailable
from thoughtline.stores.sqlite import SqliteStore, migrations
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.file import DatabaseFile
from thoughtline.stores.sqlite.readers import ReaderPool
from thoughtline.stores.sqlite.writer import Writer

T = TypeVar("T")


class MemoryConnection(Connection):
    """The connection that holds the database: it is closed when nobody has it any more."""

    def close(self) -> None:
        """Leave it open: the database would be gone."""

    def __del__(self) -> None:
        super().close()


class MemoryFile(DatabaseFile):
    """A database without a file."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        self.path = path
        self._db: MemoryConnection | None = None

    def inode(self) -> tuple[int, int]:
        return 0, 0

    def for_writing(self) -> Connection:
        if self._db is None:
            db = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False, factory=MemoryConnection
            )
            db.damage = self.damage
            migrations.migrate(db, self.path)
            self._db = db
        return self._db

    def for_reading(self) -> tuple[Connection, bool]:
        return self.for_writing(), True


class MemoryReaders(ReaderPool):
    """Reads where it is called."""

    async def run(self, work: Callable[[Connection], T]) -> T:
        if self._closed:
            raise Unavailable("this store is closed; open it again")
        return self._do(work)


class MemoryWriter(Writer):
    """Writes where it is called."""

    def changes(self) -> tuple[int, bool]:
        return 0, True  # no other process sees it

    def touch(self, sessions: Iterable[str], at: float) -> None:
        super().touch(sessions, at)
        asyncio.get_running_loop().call_soon(self._write_noted)

    def _start(self) -> None:
        """Start no thread."""

    def _wake_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waking.discard(loop)
        while self._jobs:
            self._serve(self._take())


class MemoryStore(SqliteStore):
    """A store whose content is gone when it is closed or its process ends."""

    _file_type, _writer_type, _readers_type = MemoryFile, MemoryWriter, MemoryReaders

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(Path(":memory:"), clock=clock)
