"""The keys of tenants in the database, and what seals and opens the rows of each.

A memo and the thoughts of a turn are bound to the tenant and to the entry's id, which is made of
session and turn; what else was said to the tenant, the session, the batch and the row. The keys of
a tenant are held until its epoch changes: whoever changes a key raises it, and look-ups tell it.
What is read otherwise is opened with keys that are read anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from thoughtline.errors import KeyGone, SealError
from thoughtline.log.index import IndexEntry
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.rows import (
    EntryRow,
    PackedBatch,
    Row,
    blind,
    call_name,
    distinct,
    tenant_mark,
)
from thoughtline.stores.sealing import GIVE_KEYS
from thoughtline.stores.sealing.envelope import is_sealed, key_version

if TYPE_CHECKING:
    from thoughtline.stores.sealing.cipher import TenantCipher
    from thoughtline.stores.sealing.keychain import Keychain

Values = Mapping[str, Any]
"""A row of an answer; one that was sealed has beside its columns the `versions` of its keys."""

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
_MAKE = "SELECT make_keys_1($1, $2, $3, $4)"


class TenantSeal:
    """Seals and opens the rows of one tenant; without a cipher, all of it is plain."""

    def __init__(
        self,
        tenant: bytes,
        cipher: "TenantCipher | None" = None,
        *,
        keychain: "Keychain | None" = None,
        plain: bool = True,
        epoch: int = -1,
    ) -> None:
        self.tenant = tenant
        self.epoch = epoch
        self.cipher = cipher
        self._keychain = keychain
        self.plain = plain  # whether some of it may be plain

    def same_as(self, other: "TenantSeal") -> bool:
        """Whether another one has the same keys."""
        return self.cipher is other.cipher and self.plain == other.plain

    @property
    def seals(self) -> bool:
        """Whether what is written is sealed."""
        return self.cipher is not None and self._keychain is not None and self._keychain.seals

    @property
    def version(self) -> int:
        """The version of the key that seals; 0: there is none; -1: it is plain on purpose."""
        if self._keychain is not None and not self._keychain.seals:
            return -1
        return self.cipher.version if self.cipher is not None else 0

    def seal(self, value: bytes, session: bytes, row: bytes, column: str) -> bytes:
        """Return a value as it is stored."""
        if self.cipher is None or not self.seals:
            return value
        return self.cipher.seal(value, session.hex(), row.hex(), column)

    def seal_entry(self, value: bytes, id: bytes, column: str) -> bytes:
        """Return a value of an index entry as it is stored."""
        return self.seal(value, entry_group(id), id, column)

    def reseal_entry(self, value: bytes, id: bytes, column: str, *, version: int) -> bytes:
        """Return a value as it is stored in place of one that is sealed with a version, or plain.

        It stays as it was: the entry is filed as its memo says.
        """
        if not version:
            return value
        if self.cipher is None:
            raise self._key_gone()
        return self.cipher.seal(value, entry_group(id).hex(), id.hex(), column, version)

    def open(self, value: bytes, session: bytes, row: bytes, column: str) -> bytes:
        """Return a value as it was given."""
        if is_sealed(value):
            if self.cipher is None:
                if self._keychain is None:
                    raise SealError(f"a row is sealed; {GIVE_KEYS}")
                raise self._key_gone()
            return self.cipher.open(value, session.hex(), row.hex(), column)
        if self._keychain is not None and self._keychain.requires:
            raise SealError(
                "a row is plain, and `store.require_sealed` is set; `thoughtline keys re-encrypt` "
                "seals what is plain"
            )
        return value

    def open_entry(
        self, id: bytes, memo: bytes, thoughts: Sequence[bytes] | None
    ) -> tuple[bytes, Sequence[bytes] | None, int]:
        """Return a memo and its thoughts as they were given, and the version it is sealed with."""
        version = key_version(memo)
        if version or self._requires:
            memo = self.open(memo, entry_group(id), id, "memo")
        if thoughts:
            thoughts = [self.open(one, entry_group(id), id, "thoughts") for one in thoughts]
        return memo, thoughts, version

    def names(
        self, keys: Sequence[bytes], calls: Sequence[str] = (), *, version: int
    ) -> list[bytes]:
        """Return the names of an entry that is sealed with a version, or plain."""
        if not version:
            return [*blind(self.tenant, keys), *(call_name(self.tenant, call) for call in calls)]
        if self.cipher is None or not self.cipher.has(version):
            return []
        mark, blinded = tenant_mark(self.tenant), self.cipher.blind(keys, version)
        if calls:
            blinded += self.cipher.blind(_call_words(calls), version)
        return [mark + name for name in blinded]

    def asked(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the names that look-up keys may have, all of one kind after all of another."""
        if self.cipher is None:
            return blind(self.tenant, keys)
        mark = tenant_mark(self.tenant)
        found = [mark + name for name in self.cipher.asked(keys)]
        if self.plain and not self._requires:
            found += blind(self.tenant, keys)
        return found

    def asked_calls(self, call: str) -> list[bytes]:
        """Return the names under which the entries of a tool call may be filed."""
        mark, plain = tenant_mark(self.tenant), [call_name(self.tenant, call)]
        if self.cipher is None:
            return plain
        return [*(mark + name for name in self.cipher.asked(_call_words([call]))), *plain]

    def _key_gone(self) -> KeyGone:
        from thoughtline.stores.sealing.cipher import key_gone

        return key_gone(self.tenant.decode())

    @property
    def _requires(self) -> bool:
        return self._keychain is not None and self._keychain.requires


def entry_group(id: bytes) -> bytes:
    """Return what an entry shares the key of its values with: one in 256 of its tenant's entries.

    A look-up does not know their sessions, and one key for all would seal more values than random
    nonces allow.
    """
    return id[:1]


def _call_words(calls: Sequence[str]) -> list[bytes]:
    return [b"call " + call.encode("utf-8", "surrogatepass") for call in calls]


class Seals:
    """The keys of all tenants, as this process knows them."""

    def __init__(self, connections: Connections, keychain: "Keychain | None") -> None:
        self._connections = connections
        self._keychain = keychain
        self._held: dict[bytes, TenantSeal] = {}

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
        """Return what seals these tenants, with keys that are read anew."""
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
        """Let go of keys that are not current any more."""
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
            await self._connections.write("SELECT drop_keys_1($1)", tenant)
            self.forget([tenant])

    # -- rows ------------------------------------------------------------------------------------

    async def opened(
        self,
        rows: Sequence[asyncpg.Record],
        *,
        entry: str = "entry",
        seals: Mapping[bytes, TenantSeal] | None = None,
    ) -> Sequence[Values]:
        """Return rows with their content opened; those of a tenant that was deleted are left out.

        `entry` is the column with the id of the index entry. `seals` are those of the tenants, if
        they are known.
        """
        requires = self._keychain is not None and self._keychain.requires
        closed = [row for row in rows if requires or _is_sealed(row)]
        if not closed:
            return rows
        if seals is None:
            seals = await self.of(row["tenant"] for row in closed)
        found: list[Values] = []
        for row in rows:
            with suppress(KeyGone):
                is_closed = requires or _is_sealed(row)
                found.append(open_row(row, seals[row["tenant"]], entry) if is_closed else row)
        return found


_CONTENT = ("memo", "thoughts", "said")


def _is_sealed(row: Values) -> bool:
    for column in _CONTENT:
        value = row.get(column)
        if value and any(map(is_sealed, value if isinstance(value, list) else [value])):
            return True
    return False


def open_row(row: Values, seal: TenantSeal, entry: str = "entry") -> Values:
    """Return a row with its content opened."""
    values, versions = {**row}, {}
    if row.get("memo"):
        values["memo"] = seal.open(row["memo"], entry_group(row[entry]), row[entry], "memo")
        versions["memo"] = key_version(row["memo"])
    if thoughts := row.get("thoughts"):
        several = thoughts if isinstance(thoughts, list) else [thoughts]
        group = entry_group(row[entry])
        opened = [seal.open(one, group, row[entry], "thoughts") for one in several]
        values["thoughts"] = opened if isinstance(thoughts, list) else opened[0]
        versions["thoughts"] = key_version(several[0])
    if row.get("said"):
        name = row_name(row["id"], row["nth"])
        values["said"] = seal.open(row["said"], row["session"], name, "said")
    values["versions"] = versions
    return values


def sealed_with(row: Values, column: str) -> int:
    """Return the version that a value of an opened row is sealed with; 0: it is plain."""
    return int(row.get("versions", {}).get(column, 0))


def row_name(batch: bytes, nth: int) -> bytes:
    """Return what a row is called within its session."""
    return b"%d %b" % (nth, batch)


def entry_names(seal: TenantSeal, entry: IndexEntry, *, version: int) -> list[bytes]:
    """Return the names under which an entry is filed, each once."""
    return list(dict.fromkeys(seal.names(entry.keys, entry.calls, version=version)))


def seal_batch(packed: PackedBatch, seal: TenantSeal) -> PackedBatch:
    """Return a batch with its content sealed, if that is switched on."""
    if not seal.seals:
        same = packed.key == seal.version
        return packed if same else msgspec.structs.replace(packed, key=seal.version)
    entries, names = seal_entries(packed.entries, packed.batch.index, seal)
    return msgspec.structs.replace(
        packed,
        rows=[_sealed_row(row, packed, seal) for row in packed.rows],
        entries=entries,
        names=names,
        key=seal.version,
    )


def _sealed_row(row: Row, packed: PackedBatch, seal: TenantSeal) -> Row:
    nth, *about, said, thoughts = row
    said = seal.seal(said, packed.session, row_name(packed.id, nth), "said")
    if thoughts is not None:
        thoughts = seal.seal_entry(thoughts, row[5] or b"", "thoughts")
    return (nth, *about, said, thoughts)  # type: ignore[return-value]


def seal_entries(
    entries: Sequence[EntryRow], index: Sequence[IndexEntry], seal: TenantSeal
) -> tuple[list[EntryRow], list[list[bytes]]]:
    """Return packed entries as they are stored, and the names of each."""
    version = seal.version if seal.seals else 0
    names = [entry_names(seal, entry, version=version) for entry in distinct(index)]
    return [(*row[:8], seal.seal_entry(row[8], row[0], "memo")) for row in entries], names
