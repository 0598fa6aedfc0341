"""Seals the rows of a file again, a few at a time: with new keys, or for the first time, or not.

A reader looks for rows that are not as they should be, by the first three bytes of their columns,
which say the version of the key; the writer opens and seals those, each group in a transaction of
its own. With its memo, an entry is filed under the names that belong to the new key.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from thoughtline.errors import Damaged, KeyGone, SealError
from thoughtline.stores.row import RowPlace, entry_names, open_entry
from thoughtline.stores.sealing.envelope import FORMAT, key_version
from thoughtline.stores.sealing.vault import ValueCounts
from thoughtline.stores.sqlite import filed_entries, key_tables
from thoughtline.stores.sqlite.connection import Connection
from thoughtline.stores.sqlite.packed import row_place

PAGE = 500
"""Rows that are looked at by one statement."""
CHUNK = 32
"""Rows that are sealed in one transaction."""
_HEADS = """
SELECT b.position, t.tenant,
    substr(b.memo, 1, 3), substr(b.thoughts, 1, 3), substr(b.said, 1, 3)
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE b.position > ?1 AND (?2 IS NULL OR t.tenant = ?2) ORDER BY b.position LIMIT ?3
"""
_VALUES = """
SELECT t.number, t.tenant, s.session, CASE b.id WHEN '' THEN b.turn ELSE b.id END,
    b.memo, b.thoughts, b.said
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE b.position = ?
"""
_UPDATE = "UPDATE batches SET memo = ?, thoughts = ?, said = ? WHERE position = ?"
_SEALED = """
SELECT EXISTS (
    SELECT 1 FROM batches
    WHERE ?1 IN (substr(memo, 1, 1), substr(thoughts, 1, 1), substr(said, 1, 1))
)
"""
_NEWEST = "SELECT coalesce(max(position), 0) FROM batches"
_COUNTS = """
SELECT t.tenant, substr(CASE WHEN b.memo <> x'' THEN b.memo ELSE b.said END, 1, 3), count(*)
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN tenants AS t ON t.number = s.tenant
GROUP BY 1, 2
"""
_SAMPLE = """
SELECT b.position FROM tenants AS t
CROSS JOIN sessions AS s ON s.tenant = t.number
CROSS JOIN batches AS b ON b.session = s.number
WHERE t.tenant = ? LIMIT ?
"""


class StalePage(Struct, frozen=True):
    """Rows of a page that are not as they should be."""

    positions: list[int]
    last: int  # where the next page begins
    newest: int
    more: bool


def stale_page(db: Connection, after: int, tenant: str | None, *, plain: bool) -> StalePage:
    """Look for rows that are plain or sealed with an older key; or, `plain`, for sealed ones."""
    db.execute("BEGIN")
    try:
        return _stale_page(db, after, tenant, plain=plain)
    finally:
        db.execute("ROLLBACK")


def _stale_page(db: Connection, after: int, tenant: str | None, *, plain: bool) -> StalePage:
    found = db.execute(_HEADS, (after, tenant, PAGE)).fetchall()
    (newest,) = db.execute(_NEWEST).fetchone()
    keys = {row.tenant: row.version for row in key_tables.read_all(db)}  # the newest comes last
    positions = [
        position
        for position, owner, *heads in found
        if any(
            head and key_version(head) != (0 if plain else keys.get(owner, -1)) for head in heads
        )
    ]
    more = len(found) == PAGE
    return StalePage(positions, found[-1][0] if more else newest, newest, more)


def reseal(db: Connection, positions: Sequence[int]) -> int:
    """Seal rows as the connection seals what is new; returns how many."""
    key_tables.check_writer(db)
    return sum(_reseal(db, position) for position in positions)


def _reseal(db: Connection, position: int) -> bool:
    found = db.execute(_VALUES, (position,)).fetchone()
    if found is None:  # it was deleted meanwhile
        return False
    number, *names, memo, thoughts, said = found
    place = row_place(*names)
    try:
        values = [
            bytearray(db.cipher.seal(db.cipher.open(value, place, column), place, column))
            if value
            else bytearray()
            for column, value in (("memo", memo), ("thoughts", thoughts), ("said", said))
        ]
        if memo:
            _refile(db, (number, position), place, memo, bytes(values[0]))
    except KeyGone:  # of a tenant that is being deleted
        return False
    except Damaged as error:
        raise Damaged(f"session {place.session!r}: {error}") from error
    db.execute(_UPDATE, (*values, position))
    return True


def _refile(
    db: Connection, numbers: tuple[int, int], place: RowPlace, memo: bytes, new_memo: bytes
) -> None:
    """File an entry under other names, if its new memo has others.

    `numbers` are the tenant's and the entry's position.
    """
    names = entry_names(open_entry(memo, place, db.cipher))
    versions = key_version(memo), key_version(new_memo)
    old, new = (db.cipher.filed(place.tenant, names, version=one) for one in versions)
    if old != new:
        tenant, position = numbers
        filed_entries.delete_keys(db, _key_rows(tenant, old, position))
        filed_entries.insert_keys(db, _key_rows(tenant, new, position))


def _key_rows(tenant: int, names: Sequence[bytes], position: int) -> list[Any]:
    return [value for name in names for value in (tenant, bytearray(name), position)]


def finish(db: Connection, after: int, *, plain: bool) -> bool:
    """Note that all rows are sealed, or plain, if that is so; returns whether it is."""
    page = _stale_page(db, after, None, plain=plain)
    if page.positions or page.more:
        return False
    if plain:
        # Somebody may have sealed an earlier row since it was looked at: its keys have to stay.
        if db.execute(_SEALED, (FORMAT,)).fetchone()[0]:
            return False
        key_tables.clear(db)
    else:
        key_tables.set_plain(db, plain=False)
    return True


def count_values(db: Connection) -> ValueCounts:
    """Count the rows by key."""
    plain, sealed = 0, {}
    for tenant, head, count in db.execute(_COUNTS).fetchall():
        if version := key_version(head):
            sealed[tenant, version] = count
        else:
            plain += count
    return ValueCounts(plain=plain, sealed=sealed)


def sample(db: Connection, limit: int) -> list[str]:
    """Open a few rows of each tenant; returns what went wrong."""
    problems: list[str] = []
    for (tenant,) in db.execute("SELECT tenant FROM tenants").fetchall():
        for (position,) in db.execute(_SAMPLE, (tenant, limit)).fetchall():
            _, *names, memo, thoughts, said = db.execute(_VALUES, (position,)).fetchone()
            for column, value in (("memo", memo), ("thoughts", thoughts), ("said", said)):
                try:
                    db.cipher.open(value, row_place(*names), column)
                except (SealError, Damaged) as error:
                    problems.append(str(error))
    return problems
