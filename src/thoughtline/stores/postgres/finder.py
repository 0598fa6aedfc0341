"""Finds index entries by their keys, always in the database.

No answer is kept, and least of all that there is nothing. What a tenant's epoch stands for is kept:
the keys it has (`seals`) and the content of entries (`bodies`), until a look-up tells another one.
"""

import asyncio
import struct
import time
from collections.abc import Callable, Mapping, Sequence

import asyncpg

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.index import IndexEntry
from thoughtline.stores import rules
from thoughtline.stores.damage import damaged_entry
from thoughtline.stores.postgres.bodies import Body, BodyCache
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.hits import Hits
from thoughtline.stores.postgres.lookups import LookUp, LookUps
from thoughtline.stores.postgres.rows import unpack_memo, unpack_thoughts, with_refusals
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.tenant_seal import TenantSeal

MAX_KEYS = 4_000
"""Keys in one look-up. The numbers of their names have two bytes, and a key may have several names:
a plain one, and one for each key that `keys re-encrypt --names` has not replaced everywhere yet."""

SETTLING = 3.0
"""Seconds for which look-ups wait after a failover: until every node has connected again."""

_WHOSE = "SELECT id, session, turn FROM entries WHERE id = ANY ($1)"
_places = struct.Struct(">H").iter_unpack
"""Reads which of its names a look-up has matched."""


class Finder:
    """Looks keys up, and knows the epochs of the tenants it has looked for."""

    def __init__(
        self,
        connections: Connections,
        seals: Seals,
        hits: Hits,
        times: Callable[[], tuple[float, float, float | None]],
        *,
        body_bytes: int,
        patience: float,
    ) -> None:
        """`times` are the retention, how often uses are noted, and the time for the database."""
        self._connections = connections
        self._seals = seals
        self._hits = hits
        self._times = times
        self._patience = patience  # seconds for which a server that restarts is waited for
        self._bodies = BodyCache(body_bytes)
        self._look_ups = LookUps(connections, times)
        self._settled = 0.0  # when other nodes have said again what they wrote before a failover
        self.era = 0
        self.epochs: dict[bytes, int] = {}
        self.changes = 0  # how often something of a tenant was deleted or refused, or all was new
        self.learned = -1  # seq of the last lesson about an endpoint, as of the last look-up

    def begin_era(self, era: int) -> None:
        """Forget what was known: another server may have lost what was acknowledged lately."""
        if self.era:
            self._settled = time.monotonic() + SETTLING
        self.era = era
        self.epochs.clear()
        self._bodies.clear()
        self.changes += 1

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        """Return the entries of each key, as the database has them now."""
        if not keys:
            return {}
        if self._hits and self._times()[0]:
            await self._hits.try_to_write()  # or what was just used could count as expired
        owner = tenant.encode()
        keys = list(dict.fromkeys(keys))
        if len(keys) > MAX_KEYS:
            some = await self.find(tenant, keys[:MAX_KEYS])
            return {**some, **await self.find(tenant, keys[MAX_KEYS:])}
        while True:
            if self._settled:
                await self._until_settled()
            era = self.era
            found = await self._connections.patiently(
                self._patience, lambda: self._look_up(owner, keys)
            )
            if not era or era == self.era:
                return found  # else a failover was seen just now, and it may lack something

    async def _look_up(self, owner: bytes, keys: Sequence[bytes]) -> dict[bytes, list[IndexEntry]]:
        """Ask the database, with names of the keys that the tenant has now."""
        while True:
            seal = await self._seals.held(owner)
            names = seal.asked(keys)
            look_up = LookUp(owner, names, self._bodies.known(names))
            rows, known = await self._look_ups.ask(look_up)
            epoch, self.learned = rows[0][:2]
            if self.epochs.get(owner) != epoch:
                await self.note_epoch(owner, epoch)
            if seal.epoch == epoch or await self._seals.is_current(seal, epoch):
                damaged: dict[bytes, Damaged] = {}
                found = self._found(seal, keys, known, rows, damaged)
                return await self._with_damaged(found, damaged) if damaged else found

    def _found(
        self,
        seal: TenantSeal,
        keys: Sequence[bytes],
        known: Mapping[bytes, Body],
        rows: Sequence[asyncpg.Record],
        damaged: dict[bytes, Damaged],
    ) -> dict[bytes, list[IndexEntry]]:
        """Return the entries of a look-up, by key, and add those that are damaged, by id."""
        found: dict[bytes, list[IndexEntry]] = {}
        for row in rows[1:]:
            id, revision, matched, memo, thoughts, refusals = row[2:8]
            if memo is None:
                entry = known[id].entry
            else:
                try:
                    memo, version = seal.open_memo(id, memo)
                    entry = unpack_memo(memo)
                    entry = self._with_thoughts(seal, id, entry, thoughts)
                except KeyGone:  # the tenant was deleted, or is being deleted
                    continue
                except Damaged as error:
                    damaged[id] = error
                    entry = damaged_entry("", id.hex())
                else:
                    names = seal.names(entry.keys, version=version)
                    self._bodies.put(id, seal.tenant, revision, entry, names)
            if refusals is not None:
                entry = with_refusals(entry, refusals)
            for (place,) in _places(matched):  # a key may have a sealed name and a plain one
                key = keys[place % len(keys)]
                if key in found:
                    found[key].append(entry)
                else:
                    found[key] = [entry]
        return found

    def _with_thoughts(
        self, seal: TenantSeal, id: bytes, entry: IndexEntry, thoughts: Sequence[bytes] | None
    ) -> IndexEntry:
        try:
            stored = unpack_thoughts(seal.open_thoughts(id, thoughts or ()))
        except Damaged as error:
            self._seals.damage.note(entry.session, error)
            return rules.with_thoughts(entry, None)
        return rules.with_thoughts(entry, stored)

    async def _with_damaged(
        self, found: dict[bytes, list[IndexEntry]], damaged: Mapping[bytes, Damaged]
    ) -> dict[bytes, list[IndexEntry]]:
        """Return entries with the session and the turn of those that are damaged."""
        whose: dict[str, IndexEntry] = {}
        for id, session, turn in await self._connections.read(_WHOSE, list(damaged)):
            whose[id.hex()] = damaged_entry(session.decode(), turn.decode())
            self._seals.damage.note(session.decode(), damaged[id])
        return {
            key: [whose.get(entry.turn, entry) for entry in entries]
            for key, entries in found.items()
        }

    async def _until_settled(self) -> None:
        """Wait, after a failover, until nodes have written again what may have been lost in it."""
        await asyncio.sleep(max(self._settled - time.monotonic(), 0.0))
        self._settled = 0.0

    async def note_epoch(self, tenant: bytes, epoch: int) -> None:
        """Drop what is known of a tenant when something of it was deleted or refused."""
        if self.epochs.get(tenant) != epoch:
            await self._seals.refuse_sealed()
            if self.epochs.get(tenant, 0) != epoch:  # what waits here may be from before
                self._bodies.drop(tenant)
                self.changes += 1
            self.epochs[tenant] = epoch
