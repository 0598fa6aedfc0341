"""The keys of tenants in the database: read, held, made and deleted.

The keys of a tenant are held until its epoch changes: a change of keys raises it, and look-ups
tell it. What is read otherwise is opened with keys that are read again.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

from thoughtline.errors import KeyGone, SealError
from thoughtline.stores.damage import DamagedSessions
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.sealed_rows import Values, is_sealed_row, open_row
from thoughtline.stores.postgres.tenant_seal import TenantSeal
from thoughtline.stores.sealing import GIVE_KEYS

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

MAX_HELD = 1024
"""Tenants whose keys are held."""

_KEYS = """
SELECT asked.tenant, k.version, k.master, k.wrapped, s.plain, s.master AS primary,
    coalesce(
        (SELECT max(t.epoch) FROM tenants AS t WHERE t.tenant IN (asked.tenant, '')), 0
    ) AS epoch
FROM sealing AS s, unnest($1::bytea[]) AS asked (tenant)
LEFT JOIN tenant_keys AS k ON k.tenant = asked.tenant
ORDER BY asked.tenant, k.version
"""
_STATE = "SELECT master FROM sealing"
_WRAPPED_BY = "SELECT tenant, version, master, wrapped FROM tenant_keys WHERE master = $1 LIMIT 1"
_MAKE = "SELECT make_keys($1, $2, $3, $4)"


class ReadRows(NamedTuple):
    """Rows as they are stored, and with their content opened, if their tenants have keys."""

    stored: Sequence[asyncpg.Record]
    opened: Sequence[Values]


class Seals:
    """The keys of all tenants, as this process knows them."""

    def __init__(self, connections: Connections, keychain: "Keychain | None") -> None:
        self._connections = connections
        self._keychain = keychain
        self._held: dict[bytes, TenantSeal] = {}
        self.damage = DamagedSessions()

    async def greet(self, connection: asyncpg.Connection) -> None:
        """Refuse a sealed database, if there are no keys."""
        master = await connection.fetchval(_STATE)
        if self._keychain is not None:
            self._keychain.primary = master
        elif master:
            raise SealError(
                f"the store is sealed with the key {master}, and no keys are given; {GIVE_KEYS}"
            )

    async def refuse_sealed(self) -> None:
        """Raise `SealError` where a process without keys finds that the database was sealed."""
        if self._keychain is None:
            ((master,),) = await self._connections.read(_STATE)
            if master:
                raise SealError(
                    f"the store was sealed with the key {master} meanwhile; {GIVE_KEYS}"
                )

    # -- keys ------------------------------------------------------------------------------------

    async def of(self, tenants: Iterable[bytes]) -> dict[bytes, TenantSeal]:
        """Return what seals these tenants, with keys that are read again."""
        keychain, asked = self._keychain, sorted(set(tenants))
        if keychain is None or not asked:
            return {tenant: TenantSeal(tenant) for tenant in asked}
        from thoughtline.stores.sealing.tenant_keys import KeyRow

        found: dict[bytes, list[asyncpg.Record]] = {}
        for row in await self._connections.read(_KEYS, asked):
            found.setdefault(row["tenant"], []).append(row)
        seals: dict[bytes, TenantSeal] = {}
        for tenant, rows in found.items():
            name = tenant.decode()
            keychain.primary = rows[0]["primary"]
            keys = [
                KeyRow(name, row["version"], row["master"], row["wrapped"])
                for row in rows
                if row["version"] is not None
            ]
            seals[tenant] = TenantSeal(
                tenant,
                keychain.cipher(name, keys) if keys else None,
                keychain=keychain,
                plain=rows[0]["plain"],
                epoch=rows[0]["epoch"],
            )
        return seals

    async def held(self, tenant: bytes) -> TenantSeal:
        """Return what seals a tenant, as far as is known: look-ups tell whether it has changed."""
        found = self._held.get(tenant)
        if found is None:
            found = (await self.of([tenant]))[tenant]
            if len(self._held) >= MAX_HELD:
                self._held.clear()
            self._held[tenant] = found
        return found

    async def is_current(self, seal: TenantSeal, epoch: int) -> bool:
        """Whether keys are still as they were, in this epoch of the tenant."""
        if seal.epoch == epoch or self._keychain is None:
            return True
        self._held.pop(seal.tenant, None)
        return (await self.held(seal.tenant)).same_as(seal)

    def forget(self, tenants: Iterable[bytes]) -> None:
        """Drop keys that are not current any more."""
        for tenant in tenants:
            self._held.pop(tenant, None)

    async def sealing(self, tenant: bytes) -> TenantSeal:
        """Return what seals what a tenant writes; makes its keys if it has none."""
        found = await self.held(tenant)
        if self._keychain is None or not self._keychain.seals:
            return found
        while not found.seals:
            await self._make(tenant)
            self._held.pop(tenant, None)
            found = await self.held(tenant)
        return found

    async def _make(self, tenant: bytes) -> None:
        from thoughtline.stores.sealing.tenant_keys import KeyRow, new_rows, unwrap

        assert self._keychain is not None  # noqa: S101 (the caller has looked)
        ((master,),) = await self._connections.read(_STATE)
        key = self._keychain.ring.get(master) if master else self._keychain.ring.newest
        for owner, *row in await self._connections.read(_WRAPPED_BY, key.id):
            unwrap(KeyRow(owner.decode(), *row), self._keychain.ring)  # it would lock others out
        rows = new_rows(tenant.decode(), key)
        await self._connections.write(
            _MAKE, tenant, key.id, [row.version for row in rows], [row.wrapped for row in rows]
        )

    async def delete(self, tenant: bytes) -> None:
        """Delete the keys of a tenant: nothing of it can be read any more.

        The names of its entries stay behind, and lead nowhere: `prune_index` deletes them.
        """
        if self._keychain is not None:
            await self._connections.write("SELECT drop_keys($1)", tenant)
            self.forget([tenant])

    # -- rows ------------------------------------------------------------------------------------

    async def read(self, statement: str, *args: Any, entry: str = "entry") -> ReadRows:
        """Read rows and open their content, as `opened` does."""
        stored = await self._connections.read(statement, *args)
        opened = await self.opened(stored, entry=entry)
        if len(opened) < len(stored):  # or they were sealed again before the keys were read
            stored = await self._connections.read(statement, *args)
            opened = await self.opened(stored, entry=entry)
        return ReadRows(stored, opened)

    async def opened(
        self,
        rows: Sequence[asyncpg.Record],
        *,
        entry: str = "entry",
        seals: Mapping[bytes, TenantSeal] | None = None,
    ) -> Sequence[Values]:
        """Return rows with their content opened; those of a tenant that was deleted are left out.

        What is damaged is empty.
        `entry` is the column with the id of the index entry. `seals` are those of the tenants, if
        they are known.
        """
        closed = [row for row in rows if self._is_closed(row)]
        if not closed:
            return rows
        if seals is None:
            seals = await self.of(row["tenant"] for row in closed)
        found: list[Values] = []
        for row in rows:
            with suppress(KeyGone):
                is_closed = self._is_closed(row)
                if is_closed:
                    found.append(open_row(row, seals[row["tenant"]], entry, self.damage))
                else:
                    found.append(row)
        return found

    def _is_closed(self, row: asyncpg.Record) -> bool:
        """Whether a row has to be opened, or refused."""
        requires = self._keychain is not None and self._keychain.requires
        return is_sealed_row(row) or (requires and row["tenant"] is not None)
