"""Numbered migrations from an empty file to the current tables.

A migration is a file `sql/NNNN_name.sql`, run once and in order, all that are missing in one
transaction; the number of the last one is the file's `user_version`. A file that was written by a
newer version, before the first release or by another program is refused with an explanation and not
touched.
"""

import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from thoughtline.errors import StoreError
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.statements import SQL, load

APPLICATION = 0x54484C31
"""The `application_id` that `0001_initial.sql` gives to a file."""

UNRELEASED = 0x54484C4E
"""That of files from before the first release, whose layouts are not read."""


class NotMigrated(StoreError):
    """The file is missing or has an older layout: a writer has to create or migrate it first."""


@cache
def steps() -> dict[int, str]:
    """Return the migrations: number → name of the file."""
    names = [entry.name for entry in SQL.iterdir()]
    return {int(name[:4]): name for name in sorted(names) if name[:4].isdigit()}


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one (`executescript` would commit in between)."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _marks(db: sqlite3.Connection) -> tuple[int, int, int]:
    """Return the application id, the version and the number of tables, in one transaction.

    Read one by one, another process that is creating the file could commit in between: a file
    with tables and no application id looks like one of another program.
    """
    own_transaction = not db.in_transaction
    if own_transaction:
        db.execute("BEGIN")
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    finally:
        if own_transaction:
            db.execute("COMMIT")
    return application, version, tables


def check(db: sqlite3.Connection, path: Path, *, complete: bool = False) -> int:
    """Return the version of the file; raises for files of other programs or newer versions."""
    application, version, tables = _marks(db)
    newest = max(steps())
    if application == UNRELEASED:
        raise StoreError(
            f"{path} was written before Thoughtline 0.1.0, in a layout that is not read any more; "
            "it was left as it is. Export its sessions with the version that wrote it and import "
            "them here (`thoughtline export`, `thoughtline import`), or choose another place for "
            "the store"
        )
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
        raise NotMigrated(f"{path} has layout {version}, and layout {newest} is needed")
    return int(version)


def is_behind(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has content of an earlier version."""
    return 0 < check(db, path) < max(steps())


def migrate(db: Connection, path: Path) -> list[str]:
    """Run the migrations that the file does not have yet; returns their names."""
    done: list[str] = []
    if check(db, path) == max(steps()):
        return done
    db.execute("BEGIN IMMEDIATE")
    try:
        version = check(db, path)  # again: another process may have migrated it
        for step, name in steps().items():
            if step > version:
                for statement in statements(load(name)):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {step}")
                done.append(name)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return done
