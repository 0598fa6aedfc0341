"""Deletes sessions, some at a time: a fork before the session that it goes on from."""

from collections.abc import Sequence
from contextlib import suppress

from thoughtline.errors import Damaged, SealError
from thoughtline.stores.base import INTERNAL_PREFIX, Progress
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.rows import unpack_memo
from thoughtline.stores.postgres.sealed_rows import entry_names
from thoughtline.stores.postgres.seals import Seals

PAGE = 200
"""Sessions that are deleted in one transaction."""

_NEWEST = """
SELECT max(created) FROM sessions
WHERE ($1::bytea IS NULL OR session = $1) AND ($2::bytea IS NULL OR tenant = $2)
"""
_DOOMED = """
SELECT s.session FROM sessions AS s
WHERE ($1::bytea IS NULL OR s.session = $1) AND ($2::bytea IS NULL OR s.tenant = $2)
  AND ($3::float8 IS NULL OR s.touched < $3) AND ($6::float8 IS NULL OR s.created <= $6)
  AND ($1 IS NOT NULL OR $2 IS NOT NULL
       OR NOT s.kept AND substr(s.session, 1, length($4::bytea)) <> $4)
  AND NOT EXISTS (
      SELECT FROM pointers AS p
      WHERE p.about = s.session AND p.kind = 'f' AND p.session <> s.session
  )
ORDER BY s.touched DESC, s.session LIMIT $5
"""
_ENTRIES = "SELECT id, tenant, filed, memo FROM entries WHERE session = ANY ($1)"
_PURGE = "SELECT purge($1, $2, $3, $4)"


async def purge(
    connections: Connections,
    seals: Seals,
    *,
    session: str | None,
    tenant: str | None,
    untouched_since: float | None,
    progress: Progress | None,
) -> int:
    """Delete the sessions that match every condition; returns how many.

    Those that are begun meanwhile stay: who deletes a tenant that goes on talking comes to an end.
    """
    which = [None if name is None else name.encode() for name in (session, tenant)]
    newest: float | None = None
    if untouched_since is None:
        ((newest,),) = await connections.slowly(_NEWEST, *which)
    count = 0
    while True:
        rows = await connections.read(
            _DOOMED, *which, untouched_since, INTERNAL_PREFIX.encode(), PAGE, newest
        )
        deleted = await _delete(connections, seals, [row[0] for row in rows], untouched_since)
        count += deleted
        if progress is not None:
            progress(count, count)
        if not deleted:
            return count


async def _delete(
    connections: Connections, seals: Seals, sessions: Sequence[bytes], untouched_since: float | None
) -> int:
    if not sessions:
        return 0
    names: list[bytes] = []
    filed: list[int] = []
    rows = await connections.read(_ENTRIES, sessions)
    owners = await seals.of(row["tenant"] for row in rows)
    for row in rows:
        seal = owners[row["tenant"]]
        with suppress(SealError, Damaged):  # names of what does not open: `prune_index`
            memo, version = seal.open_memo(row["id"], row["memo"])
            own = entry_names(seal, unpack_memo(memo), version=version)
            names += own
            filed += [row["filed"]] * len(own)
    ((deleted,),) = await connections.slowly(_PURGE, sessions, untouched_since, names, filed)
    return int(deleted)
