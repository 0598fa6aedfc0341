"""Numbered steps from an empty file to today's tables.

A step is a file `sql/NNNN_name.sql`, run once and in order, all that are missing in one
transaction; the number of the last one is the file's `user_version`. A file that a newer version
has written, or another program, is refused with a sentence and not touched.
"""

import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from thoughtline.errors import StoreError

APPLICATION = 0x54484C4E
"""What `0001_initial.sql` marks our files with."""


class Absent(StoreError):
    """The file is not there, or not of today's layout: only a writer can change that."""


def sql(name: str) -> str:
    """The text of a file in `sql/`."""
    return (files("thoughtline.stores.sqlite") / "sql" / name).read_text("utf-8")


@cache
def steps() -> dict[int, str]:
    """The migrations: number → name of the file."""
    names = [entry.name for entry in (files("thoughtline.stores.sqlite") / "sql").iterdir()]
    return {int(name[:4]): name for name in sorted(names) if name[:4].isdigit()}


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one (`executescript` would commit behind our back)."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _marks(db: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose file it is, its version, and how many tables it has, all of one moment.

    Read one by one, another process that is creating the file could commit in between: a file
    with tables and no mark looks like one of another program.
    """
    alone = not db.in_transaction
    if alone:
        db.execute("BEGIN")
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    finally:
        if alone:
            db.execute("COMMIT")
    return application, version, tables


def check(db: sqlite3.Connection, path: Path, *, complete: bool = False) -> int:
    """The file's version; raises for files that are not ours or not of this version."""
    application, version, tables = _marks(db)
    newest = max(steps())
    if application != APPLICATION and (tables or application or version):
        raise StoreError(
            f"{path} is a SQLite database of another program; choose another place for the store"
        )
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer Thoughtline (layout {version}, this one knows "
            f"{newest}); upgrade Thoughtline, or choose another place for the store"
        )
    if complete and version < newest:
        raise Absent(f"{path} has layout {version}, and layout {newest} is needed")
    return int(version)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Run the steps that the file has not seen."""
    if check(db, path) == max(steps()):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        version = check(db, path)  # again: another process may have been faster
        for step, name in steps().items():
            if step > version:
                for statement in statements(sql(name)):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {step}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
