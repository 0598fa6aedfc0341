"""Looks through a SQLite file for damage, as far as it comes in some seconds."""

import sqlite3
import time
from pathlib import Path

from thoughtline.stores.sqlite.file import DatabaseFile, code

_STEPS = 10_000
"""Steps of SQLite's machine after which the clock is looked at."""


def quick_check(path: Path, seconds: float) -> str | None:
    """Return what is damaged and what to do; empty when nothing is, None when time was short.

    It is SQLite's `quick_check`: the structure of all pages. SQLite has no checksums, so that a
    flipped letter in a text is not noticed.
    """
    file = DatabaseFile(path, timeout=1.0, synchronous="normal")
    deadline = time.monotonic() + seconds
    try:
        db = sqlite3.connect(f"{file.path.as_uri()}?mode=rw", uri=True, timeout=file.timeout)
        try:
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            db.execute("PRAGMA query_only = ON")
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            db.close()
    except sqlite3.OperationalError as error:
        return None if code(error) == sqlite3.SQLITE_INTERRUPT else ""  # or it cannot be opened
    except sqlite3.DatabaseError as error:
        return str(file.explain(error))
    return "" if found == "ok" else file.damaged(found.replace("\n", " "))
