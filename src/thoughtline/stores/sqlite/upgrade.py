"""Brings a file of an earlier version up to date, in the thread of the caller.

A store does that by itself when it opens a file. Whoever wants to see how far it is, or to be able
to interrupt it, does it before: it is one transaction, so an interrupted file is as it was.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from thoughtline.stores.base import Progress
from thoughtline.stores.sqlite import migrations
from thoughtline.stores.sqlite.file import DatabaseFile

TIMEOUT = 5.0
"""Seconds for which another process's lock is waited for."""


def missing_steps(path: Path) -> list[str]:
    """Return the migrations that a file with content needs; none if it cannot be read."""
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return []
    if application != migrations.APPLICATION or not version:
        return []
    return [name for step, name in migrations.steps().items() if step > version]


def upgrade(path: Path, progress: Progress | None = None) -> None:
    """Run the migrations; raises `StoreError` where that cannot be done."""
    file = DatabaseFile(path, timeout=TIMEOUT, synchronous="normal")
    file.progress = progress
    try:
        file.for_writing().close()
    except Exception as error:
        raise file.explain(error) from error
