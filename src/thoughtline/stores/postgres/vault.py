"""The keys of a database, for administration: the port of a vault."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from thoughtline.errors import Damaged, KeyGone, SealError
from thoughtline.stores.base import Progress
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.rows import unpack_memo
from thoughtline.stores.postgres.sealed_rows import Values, entry_names, open_row, row_name
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.tenant_seal import TenantSeal
from thoughtline.stores.sealing.envelope import key_version
from thoughtline.stores.sealing.tenant_keys import KeyRow
from thoughtline.stores.sealing.vault import SealState, ValueCounts

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

PAGE = 100
"""Rows that are looked at, and sealed, in one go."""

_STATE = "SELECT master, plain FROM sealing"
_ROWS = "SELECT tenant, version, master, wrapped FROM tenant_keys ORDER BY tenant, version"
_COUNTS = """
SELECT tenant, substr(said, 1, 3) AS head, count(*) AS count FROM batches GROUP BY 1, 2
UNION ALL
SELECT tenant, substr(memo, 1, 3), 0 FROM entries GROUP BY 1, 2
"""
_PRIMARY = "SELECT set_primary($1)"
_ADD = "SELECT add_keys($1, $2, $3, $4)"
_REPLACE = "SELECT replace_keys($1, $2, $3, $4, $5)"
_TOTAL = "SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM entries)"
_BATCHES = """
SELECT tenant, session, id, nth, entry, said, thoughts FROM batches
WHERE (session, id, nth) > ($1::bytea, $2::bytea, $3::smallint)
  AND ($4::bytea IS NULL OR tenant = $4)
ORDER BY session, id, nth LIMIT $5
"""
_ENTRIES = """
SELECT tenant, session, id, filed, rev, memo FROM entries
WHERE id > $1::bytea AND ($2::bytea IS NULL OR tenant = $2) ORDER BY id LIMIT $3
"""
_RESEAL_BATCH = """
UPDATE batches SET said = $1, thoughts = $2
WHERE session = $3 AND id = $4 AND nth = $5 AND said = $6 AND thoughts IS NOT DISTINCT FROM $7
RETURNING true
"""
_RESEAL_ENTRY = "SELECT reseal_entry($1, $2, $3, $4, $5, $6)"
_BATCH = """
SELECT tenant, session, id, nth, entry, said, thoughts FROM batches
WHERE session = $1 AND id = $2 AND nth = $3
"""
_ENTRY = "SELECT tenant, session, id, filed, rev, memo FROM entries WHERE id = $1"
_NOTE_PLAIN = """
WITH noted AS (
    UPDATE sealing SET plain = true WHERE master <> '' AND NOT plain
    RETURNING raise_epoch(ARRAY[''::bytea])
)
"""  # in the transaction that opens the first row: from then on plain names are asked for
_NOTES = "SELECT tenant, epoch, what FROM gone"
_RESEAL_NOTE = "UPDATE gone SET what = $1 WHERE tenant = $2 AND epoch = $3 AND what = $4"
_FINISH = "SELECT finish_sealing($1)"
_CLAIM = "SELECT lease('re-encrypt', $1, $2)"
CLAIMED = 60.0
"""Seconds for which nobody may open what is being sealed, or seal what is being opened, after the
last sign of life."""
_SAMPLE = """
SELECT b.tenant, b.session, b.id, b.nth, b.entry, b.said, b.thoughts
FROM (SELECT DISTINCT tenant FROM sessions) AS t, LATERAL (
    SELECT * FROM batches AS b WHERE b.tenant = t.tenant LIMIT $1
) AS b
"""
_SAMPLE_ENTRIES = """
SELECT e.tenant, e.id, e.memo FROM unnest($1::bytea[]) AS t (tenant), LATERAL (
    SELECT * FROM entries AS e WHERE e.tenant = t.tenant LIMIT $2
) AS e
"""


class PostgresVault:
    """The keys of a database."""

    def __init__(self, connections: Connections, seals: Seals, keychain: "Keychain | None") -> None:
        self._connections = connections
        self._seals = seals
        self._keychain = keychain

    async def seal_state(self) -> SealState:
        (row,) = await self._connections.read(_STATE)
        return SealState(primary=row["master"], plain=row["plain"])

    async def key_rows(self) -> list[KeyRow]:
        return [
            KeyRow(row["tenant"].decode(), row["version"], row["master"], row["wrapped"])
            for row in await self._connections.read(_ROWS)
        ]

    async def value_counts(self) -> ValueCounts:
        plain = 0
        sealed: dict[tuple[str, int], int] = {}
        for row in await self._connections.slowly(_COUNTS):
            if version := key_version(row["head"]):
                place = (row["tenant"].decode(), version)
                sealed[place] = sealed.get(place, 0) + row["count"]
            else:
                plain += row["count"]
        return ValueCounts(plain=plain, sealed=sealed)

    async def set_primary(self, id: str) -> None:
        await self._connections.write(_PRIMARY, id)
        if self._keychain is not None:
            self._keychain.primary = id

    async def note_keys(self) -> set[str]:
        from thoughtline.stores.sealing.keychain import note_key

        notes = await self._connections.read(_NOTES)
        return {note_key(row["what"]) for row in notes} - {""}

    async def reseal_notes(self) -> int:
        from thoughtline.stores.sealing.keychain import note_key

        assert self._keychain is not None  # noqa: S101 (who has no ring does not rotate)
        count = 0
        for row in await self._connections.read(_NOTES):
            if note_key(row["what"]) not in {"", self._keychain.primary}:
                what = self._keychain.seal_note(self._keychain.open_note(row["what"]))
                await self._connections.write(_RESEAL_NOTE, what, *row)
                count += 1
        return count

    async def add_keys(self, rows: Sequence[KeyRow]) -> int:
        if not rows:
            return 0
        ((added,),) = await self._connections.write(
            _ADD,
            [row.tenant.encode() for row in rows],
            [row.version for row in rows],
            [row.master for row in rows],
            [row.wrapped for row in rows],
        )
        return int(added)

    async def replace_keys(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        return await self._replace([(old, new.master, new.wrapped) for old, new in rows])

    async def drop_keys(self, rows: Sequence[KeyRow]) -> int:
        return await self._replace([(row, row.master, None) for row in rows])

    async def _replace(self, rows: Sequence[tuple[KeyRow, str, bytes | None]]) -> int:
        if not rows:
            return 0
        ((changed,),) = await self._connections.write(
            _REPLACE,
            [old.tenant.encode() for old, _, _ in rows],
            [old.version for old, _, _ in rows],
            [old.wrapped for old, _, _ in rows],
            [master for _, master, _ in rows],
            [wrapped for _, _, wrapped in rows],
        )
        return int(changed)

    async def sample(self, limit: int) -> list[str]:
        problems: list[str] = []
        rows = await self._connections.slowly(_SAMPLE, limit)
        seals = await self._seals.of(row["tenant"] for row in rows)
        for row in rows:
            try:
                open_row(row, seals[row["tenant"]])
            except (SealError, Damaged) as error:
                problems.append(str(error))
        for row in await self._connections.slowly(_SAMPLE_ENTRIES, list(seals), limit):
            try:
                seals[row["tenant"]].open_memo(row["id"], row["memo"])
            except (SealError, Damaged) as error:
                problems.append(str(error))
        return problems

    # -- sealing again -------------------------------------------------------------------------

    async def reseal(
        self,
        *,
        tenant: str | None = None,
        plain: bool = False,
        rate: float = 0.0,
        progress: Progress | None = None,
    ) -> int:
        if self._keychain is None or self._keychain.seals is plain:
            raise SealError("the store was opened to write otherwise than this asks for")
        ((total,),) = await self._connections.slowly(_TOTAL)
        done = count = 0
        claimed = CLAIMED + (2 * PAGE / rate if rate else 0.0)
        of = None if tenant is None else tenant.encode()
        for page, resealed in (
            (self._batches, self._row_resealed),
            (self._entries, self._entry_resealed),
        ):
            here: tuple[Any, ...] = ()
            while True:
                await self._claim(claimed, plain=plain)
                rows, here = await page(here, of)
                seals = await self._seals_of(rows)
                changed = [await _named(row, resealed(row, seals[row["tenant"]])) for row in rows]
                count += sum(changed) if page == self._batches else 0
                done += len(rows)
                if progress is not None:
                    progress(min(done, total), total)
                await asyncio.sleep(sum(changed) / rate if rate else 0)
                if len(rows) < PAGE:
                    break
        if tenant is None:
            await self._connections.slowly(_FINISH, plain)
            if progress is not None:
                progress(total, total)
        await self._claim(0.0, plain=plain)
        return count

    async def _claim(self, seconds: float, *, plain: bool) -> None:
        """Keep others from going the other way; raises `SealError` where somebody does.

        Who opens everything deletes the keys at the end: what is sealed with them then is lost.
        """
        rows = await self._connections.write(_CLAIM, "open" if plain else "seal", seconds)
        if not (rows and rows[0][0]):
            what = "seals what this one would open" if plain else "opens what this one would seal"
            raise SealError(
                f"another `thoughtline keys re-encrypt` {what}; wait until it is done, or stop it "
                "and try again in a minute"
            )

    async def _seals_of(self, rows: Sequence[Values]) -> dict[bytes, TenantSeal]:
        tenants = {row["tenant"] for row in rows}
        assert self._keychain is not None  # noqa: S101 (`reseal` has looked)
        if self._keychain.seals:
            for tenant in tenants:
                await self._seals.sealing(tenant)  # makes its keys, if it has none
        return await self._seals.of(tenants)

    async def _batches(
        self, here: tuple[Any, ...], tenant: bytes | None
    ) -> tuple[Sequence[Values], tuple[Any, ...]]:
        rows = await self._connections.read(_BATCHES, *(here or (b"", b"", -1)), tenant, PAGE)
        last = rows[-1] if rows else None
        return rows, (last["session"], last["id"], last["nth"]) if last else here

    async def _entries(
        self, here: tuple[Any, ...], tenant: bytes | None
    ) -> tuple[Sequence[Values], tuple[Any, ...]]:
        rows = await self._connections.read(_ENTRIES, *(here or (b"",)), tenant, PAGE)
        return rows, (rows[-1]["id"],) if rows else here

    async def _row_resealed(self, row: Values, seal: TenantSeal) -> bool:
        """Seal a row, also one that changes meanwhile; whether that was needed."""
        while (done := await self._reseal_row(row, seal)) is None:
            found = await self._connections.read(_BATCH, row["session"], row["id"], row["nth"])
            if not found:  # it was deleted
                return False
            row, seal = found[0], (await self._seals_of(found))[row["tenant"]]
        return done

    async def _entry_resealed(self, row: Values, seal: TenantSeal) -> bool:
        """Seal an entry, also one that changes meanwhile; whether that was needed."""
        while (done := await self._reseal_entry(row, seal)) is None:
            found = await self._connections.read(_ENTRY, row["id"])
            if not found:
                return False
            row, seal = found[0], (await self._seals_of(found))[row["tenant"]]
        return done

    async def _reseal_row(self, row: Values, seal: TenantSeal) -> bool | None:
        """Seal a row, if that is needed; whether it was. None: it has changed meanwhile."""
        values = [value for value in (row["said"], row["thoughts"]) if value is not None]
        if not any(_is_stale(value, seal) for value in values):
            return False
        try:
            opened = open_row(row, seal)
        except KeyGone:  # of a tenant that is being deleted
            return False
        said = seal.seal(opened["said"], row["session"], row_name(row["id"], row["nth"]), "said")
        thoughts = opened["thoughts"]
        if thoughts is not None:
            thoughts = seal.seal_entry(thoughts, row["entry"], "thoughts")
        written = await self._connections.write(
            self._noting(_RESEAL_BATCH),
            *(said, thoughts, row["session"], row["id"], row["nth"], row["said"], row["thoughts"]),
        )
        return True if written else None

    async def _reseal_entry(self, row: Values, seal: TenantSeal) -> bool | None:
        """Seal an entry and file it again, if that is needed; None: it has changed meanwhile."""
        if not _is_stale(row["memo"], seal):
            return False
        try:
            memo, before = seal.open_memo(row["id"], row["memo"])
        except KeyGone:
            return False
        entry, sealed = unpack_memo(memo), seal.seal_entry(memo, row["id"], "memo")
        old, new = (entry_names(seal, entry, version=v) for v in (before, key_version(sealed)))
        ((written,),) = await self._connections.write(
            self._noting(_RESEAL_ENTRY),
            *(row["id"], row["rev"], sealed, row["filed"]),
            *(([], []) if old == new else (old, new)),
        )
        return True if written else None

    def _noting(self, statement: str) -> str:
        """Return a statement that writes a row, and notes that it may be plain."""
        assert self._keychain is not None  # noqa: S101 (`reseal` has looked)
        return statement if self._keychain.seals else _NOTE_PLAIN + statement


async def _named(row: Values, work: Awaitable[bool]) -> bool:
    """Say which session a damaged value is of."""
    try:
        return await work
    except Damaged as error:
        raise Damaged(f"session {row['session'].decode()!r}: {error}") from error


def _is_stale(value: bytes, seal: TenantSeal) -> bool:
    """Whether a value is not sealed with the newest key of its tenant, or not plain."""
    return key_version(value) != (seal.version if seal.seals else 0)
