"""Numbered migrations from an empty database to the current tables and functions.

A migration is a file `sql/NNNN_name.sql`. All that are missing run in one transaction, under a lock
that all nodes know. `thoughtline_layout.version` is the number of the last one, `works_from` the
oldest layout whose code may go on. So nodes of two releases work on one database during an upgrade,
and only a node that is too old refuses.
"""

from collections.abc import Set as AbstractSet
from functools import cache
from importlib.resources import files

import asyncpg

from thoughtline.errors import StoreError

SQL = files("thoughtline.stores.postgres") / "sql"

WORKS_FROM = 1
"""The oldest layout whose code works with the tables that these migrations make."""

_LOCK = "SET LOCAL lock_timeout = '5s'; SELECT pg_advisory_xact_lock(7305, 0)"
_LAYOUT = "SELECT version, works_from FROM thoughtline_layout"
_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
_UNRELEASED = {"layout", "home", "batches"}
"""Tables that only layouts from before the first release have together."""


@cache
def steps() -> dict[int, str]:
    """Return the migrations: number → name of the file."""
    names = [entry.name for entry in SQL.iterdir()]
    return {int(name[:4]): name for name in sorted(names) if name[:4].isdigit()}


def load(name: str) -> str:
    """Return the text of a file in `sql/`."""
    return (SQL / name).read_text("utf-8")


def call(function: str, arguments: int) -> str:
    """Return the statement that calls a function of the layout with this number of arguments."""
    return f"SELECT * FROM {function}({', '.join(f'${n + 1}' for n in range(arguments))})"  # noqa: S608


async def version(connection: asyncpg.Connection) -> int:
    """Return the layout of a database, 0 for an empty one; raises for one that is not usable."""
    tables = {row["relname"] for row in await connection.fetch(_TABLES)}
    if not tables:
        return 0
    if "thoughtline_layout" not in tables:
        raise _foreign(tables)
    found, works_from = await connection.fetchrow(_LAYOUT)
    if works_from > max(steps()):
        raise StoreError(
            f"the database was changed by a newer Thoughtline (layout {found}, which works with "
            f"code from {works_from} on; this one knows {max(steps())}); upgrade this node"
        )
    return int(found)


def _foreign(tables: AbstractSet[str]) -> StoreError:
    """Say what tables of others these are."""
    if tables >= _UNRELEASED:
        return StoreError(
            "the database was made before Thoughtline 0.1.0, in a layout that is not read any "
            "more; it was left as it is. Export its sessions with the version that made it and "
            "import them here (`thoughtline export`, `thoughtline import`); choose an empty "
            "database or schema"
        )
    return StoreError(
        "the database holds tables of another program; choose another database or schema"
    )


async def migrate(connection: asyncpg.Connection) -> list[str]:
    """Run the migrations that the database does not have yet; returns their names."""
    done: list[str] = []
    async with connection.transaction():
        await connection.execute(_LOCK)
        known = await version(connection)
        for step, name in steps().items():
            if step > known:
                await connection.execute(load(name))
                done.append(name)
        if done:
            await connection.execute(
                "UPDATE thoughtline_layout SET version = $1, works_from = $2",
                max(steps()),
                WORKS_FROM,
            )
    return done


async def are_missing(connection: asyncpg.Connection, *, upgrade: bool = True) -> bool:
    """Whether migrations are to be run; raises for older tables that may not be changed."""
    known = await version(connection)
    if known and known < max(steps()) and not upgrade:
        raise StoreError(
            f"the database has layout {known}, and {max(steps())} is needed; "
            "run `thoughtline store migrate`"
        )
    return known < max(steps())
