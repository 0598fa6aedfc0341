"""Writes a copy of a SQLite file as of one moment, while it is in use.

The copy appears under its name when it is complete; until then it is a hidden file beside it, for
this user alone.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from thoughtline.errors import StoreError
from thoughtline.stores.base import Progress
from thoughtline.stores.sqlite import migrations
from thoughtline.stores.sqlite.file import DatabaseFile, code

TIMEOUT = 30.0
"""Seconds for which another process's lock is waited for."""
_STEPS = 50_000
"""Steps of SQLite's machine between two looks at how far it is."""


def back_up(path: Path, target: Path, progress: Progress | None = None) -> int:
    """Copy a file; returns the size of the copy. Raises `StoreError`, and leaves no half of it."""
    if target.exists():
        raise StoreError(f"{target} is there already; choose another name")
    draft = target.with_name(f".{target.name}.part")
    try:
        draft.unlink(missing_ok=True)  # of one that was killed
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _copy(path, draft, progress)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written ({error.strerror or error}); choose another place"
        ) from error
    except sqlite3.Error as error:
        raise _explained(error, path, target) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(path: Path, draft: Path, progress: Progress | None) -> None:
    with closing(sqlite3.connect(path, timeout=TIMEOUT)) as db:
        db.execute("PRAGMA temp_store = MEMORY")
        migrations.check(db, path)
        total = path.stat().st_size

        def tell() -> None:
            if progress is not None:
                progress(min(draft.stat().st_size, total), total)

        db.set_progress_handler(tell, _STEPS)
        db.execute("VACUUM INTO ?", (str(draft),))
        tell()


def _explained(error: sqlite3.Error, path: Path, target: Path) -> StoreError:
    """Say what happened, about the file that it happened to."""
    damaged = code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    if damaged or code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return DatabaseFile(path, timeout=TIMEOUT, synchronous="normal").explain(error)
    return StoreError(
        f"{target} cannot be written ({error}); see that its disk has space and allows files of "
        "this size"
    )
