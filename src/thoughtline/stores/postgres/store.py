"""The store in PostgreSQL: what the port asks for, put together from the parts of this package.

Durability: when `append` returns, the batch is committed as the server commits. With its defaults
it survives a crash of the server, and a failover to a standby that is synchronous.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import asyncpg

from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import SealError, SecretMismatch, StoreError, Unavailable
from thoughtline.log.events import Event
from thoughtline.log.index import IndexEntry
from thoughtline.log.turn_counts import TurnCounts
from thoughtline.stores.base import (
    ALL_ENTRIES,
    ANY_SESSION,
    Batch,
    EntryFilter,
    EventPage,
    FiledEntry,
    Progress,
    SessionCursor,
    SessionListing,
    SessionQuery,
    SessionSummary,
    StoreStats,
    ThoughtEntry,
)
from thoughtline.stores.deletions import ERASE, FORGET, NotedDeletion
from thoughtline.stores.postgres import migrations, purge, queries, searches, stats
from thoughtline.stores.postgres.address import Address
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.deletion_log import DeletionLog
from thoughtline.stores.postgres.entries import EntryList
from thoughtline.stores.postgres.erasure import Erasure
from thoughtline.stores.postgres.feed import EventFeed
from thoughtline.stores.postgres.finder import Finder
from thoughtline.stores.postgres.hits import Hits
from thoughtline.stores.postgres.late_writer import LateWriter
from thoughtline.stores.postgres.rows import PackedBatch, pack
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.postgres.session_index import SessionIndex
from thoughtline.stores.postgres.turn_counts import TurnCountTable
from thoughtline.stores.postgres.writer import GroupWriter, Overtaken

if TYPE_CHECKING:
    from thoughtline.stores.postgres.vault import PostgresVault
    from thoughtline.stores.sealing.keychain import Keychain

BODY_BYTES = 64 << 20
"""Bytes of index entries that are kept in memory, unless told otherwise."""

TOUCH_EVERY = 3600.0
"""Seconds for which the use of a session by look-ups is not noted again: each note is a write."""

PATIENCE = 10.0
"""Seconds for which look-ups and appends wait for a server that restarts, unless told otherwise.

Callers may give up earlier: look-ups after `store.find_wait`, answers after `commit_wait`.
"""

_ISOLATION = "SHOW default_transaction_isolation"
_HOME = "SELECT * FROM home($1)"
_CONTINUED = "SELECT * FROM continued($1, $2)"
_TIME = "SELECT store_time(NULL)"
_LEASE = "SELECT lease($1, $2, $3)"
_SHOW = "SELECT show_running($1, $2)"
_LOOK = "SELECT * FROM look_at_running($1)"


class PostgresStore:
    """A store in a database, shared by all machines that are given its URL."""

    retention = 0.0
    shared = True
    trouble = ""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        poll: float = 0.25,  # seconds after which `watch` looks for other nodes' events
        body_bytes: int = BODY_BYTES,
        upgrade: bool = True,  # whether an older layout is brought up to date
        patience: float = PATIENCE,  # seconds for which a server that restarts is waited for
        fingerprint: bytes = b"",  # of the secret that all nodes share; empty: any
        keychain: "Keychain | None" = None,  # what seals the content of the rows
    ) -> None:
        self._clock = clock or SystemClock()
        self._own_time = not isinstance(self._clock, SystemClock)
        self._touch_every = 0.0 if self._own_time else TOUCH_EVERY
        self._upgrade = upgrade
        self._fingerprint = fingerprint
        self._patience = patience
        self._prepared = False  # the tables are there
        self._last_xid = 0  # of the last group that was written here
        self._connections = Connections(Address(url), self._greet)
        self._keychain = keychain
        self._seals = Seals(self._connections, keychain)
        self.damage = self._seals.damage
        self._writer = GroupWriter(
            self._connections,
            self._seals,
            self._clock,
            self._now,
            self._note_written,
            patience=patience,
        )
        self._counts = TurnCountTable(self._connections, self._seals, self._clock)
        self._hits = Hits(self._connections, self._now, every=self._touch_every)
        self._finder = Finder(
            self._connections,
            self._seals,
            self._hits,
            self._times,
            body_bytes=body_bytes,
            patience=patience,
        )
        self._entries = EntryList(self._connections, self._seals)
        self._erasure = Erasure(self._connections, self._seals, self._entries)
        self._index = SessionIndex(self._connections, self._seals, self._writer)
        self._deletions = DeletionLog(self._connections, self._clock, self._now, keychain)
        self._late = LateWriter(
            self._connections,
            self._writer,
            self._deletions,
            self._clock,
            self._finder.note_epoch,
            patience=patience,
        )
        self._feed = EventFeed(
            self._connections, self._seals, self._writer, self._own_place, poll=poll
        )
        self._node = self._clock.new_id()

    @property
    def learned(self) -> int:
        return self._finder.learned

    def _now(self) -> float | None:
        """Return the time for the database, whose own is meant unless a clock was given."""
        return self._clock.wall() if self._own_time else None

    def _times(self) -> tuple[float, float, float | None]:
        return self.retention, self._touch_every, self._now()

    async def _greet(self, connection: asyncpg.Connection) -> None:
        """Look at a database that was just connected to."""
        if not self._prepared:
            async with self._connections.briefly(connection):
                missing = await migrations.are_missing(connection, upgrade=self._upgrade)
            if missing:
                await migrations.migrate(connection)  # takes as long as it takes
            self._prepared = True
        async with self._connections.briefly(connection):
            if (isolation := await connection.fetchval(_ISOLATION)) != "read committed":
                raise StoreError(
                    f"this database runs transactions as `{isolation}` by default, in which nodes "
                    "do not see what others have just committed; set "
                    "`default_transaction_isolation` of the database or the role back to "
                    "'read committed'"
                )
            row = await connection.fetchrow(_HOME, self._fingerprint)
            await self._seals.greet(connection)
        if self._fingerprint and row["fingerprint"] != self._fingerprint:
            raise SecretMismatch(
                "this database belongs to nodes with another secret: under this one, none of its "
                "conversations would be found; give every node the same `store.secret`"
            )
        if row["era"] != self._finder.era:
            if self._finder.era:  # a failover: what was acknowledged lately may be lost there
                self._late.resend()
            self._last_xid = 0
            self._finder.begin_era(row["era"])

    def _note_written(self, group: Sequence[PackedBatch], xid: int) -> None:
        self._last_xid = max(self._last_xid, xid)
        self._counts.note([packed.batch for packed in group])
        self._feed.watchers.notify({packed.batch.session for packed in group}, xid)

    def _own_place(self) -> tuple[int, int]:
        """Return the era, and the number of the last transaction of this process."""
        return self._finder.era, self._last_xid

    # -- the hot path ----------------------------------------------------------------------------

    async def append(self, batch: Batch) -> int:
        began = self._clock.mono()
        if not batch.held:
            packed = pack(batch)
            packed.epoch = self._finder.epochs.get(packed.tenant)
            if packed.epoch is not None:
                with suppress(Overtaken):
                    return await self._writer.append(packed) + 1
        return await self._late.append(batch, began)

    async def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> Mapping[bytes, Sequence[IndexEntry]]:
        return await self._finder.find(tenant, keys)

    def touch(self, sessions: Collection[str]) -> None:
        for session in sessions:
            self._hits.add(session.encode())

    def changes(self) -> tuple[int, bool]:
        return self._finder.changes, False  # somebody may just have written: ask

    def epoch(self) -> int | None:
        return None

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        asked = [turn.encode() for turn in turns if turn]
        if not asked:
            return {}
        rows = await self._connections.patiently(
            self._patience, lambda: self._connections.read(_CONTINUED, tenant.encode(), asked)
        )
        return {row["turn"].decode(): row["depth"] for row in rows}

    # -- reading ---------------------------------------------------------------------------------

    async def read(self, session: str, *, after: int = -1, limit: int | None = None) -> list[Event]:
        return await queries.read(self._seals, session, max(after, -1), limit)

    def watch(
        self, session: str | None = None, *, after: int = -1, tenant: str | None = None
    ) -> AsyncIterator[Event]:
        return self._feed.watch(session, after, tenant)

    async def sessions(
        self, *, tenant: str | None = None, limit: int = 50, before: float | None = None
    ) -> list[SessionSummary]:
        await self._hits.try_to_write()
        return await queries.sessions(self._connections, tenant, limit, before)

    async def search(
        self,
        query: SessionQuery = ANY_SESSION,
        *,
        limit: int = 50,
        after: SessionCursor | None = None,
    ) -> SessionListing:
        await self._hits.try_to_write()
        return await searches.search(self._connections, self._seals, query, limit, after)

    async def history(
        self, types: Collection[str] | None, *, since: float = 0.0, after: int = 0, limit: int = 500
    ) -> EventPage:
        start = since if after <= 0 else float("-inf")
        page = await queries.history(
            self._seals,
            types,
            after=after,
            since=start,
            limit=limit,
            own=self._own_place(),
        )
        return queries.event_page(page)

    # -- upkeep ----------------------------------------------------------------------------------

    async def purge(
        self,
        *,
        session: str | None = None,
        tenant: str | None = None,
        untouched_since: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        if self._connections.closed:
            raise Unavailable("this store is closed; open it again")
        if session is None and tenant is None and untouched_since is None:
            return 0
        await self._hits.write()
        if untouched_since is None:
            await self._deletions.note_purge(session, tenant)
        elif not self._own_time:  # sessions are as old as the database says
            ((now,),) = await self._connections.read(_TIME)
            untouched_since += now - self._clock.wall()
        if tenant is not None and session is None and untouched_since is None:
            await self._seals.delete(tenant.encode())
        return await purge.purge(
            self._connections,
            self._seals,
            session=session,
            tenant=tenant,
            untouched_since=untouched_since,
            progress=progress,
        )

    async def entries(
        self,
        entry_filter: EntryFilter = ALL_ENTRIES,
        *,
        limit: int = 50,
        after: tuple[int, int] | None = None,
        offset: int = 0,
        thoughts: bool = False,
    ) -> list[ThoughtEntry]:
        await self._hits.try_to_write()
        return await self._entries.listed(
            entry_filter, limit=limit, after=after, offset=offset, thoughts=thoughts
        )

    async def _flush(self) -> None:
        """Wait until everything is written that was to be written before."""
        await self._late.finish()
        await self._writer.flush()

    async def forget(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        await self._flush()  # what was queued before is written, and can be read
        await self._deletions.note(FORGET, entry_filter)
        return await self._erasure.forget(entry_filter, progress)

    async def erase(self, entry_filter: EntryFilter, *, progress: Progress | None = None) -> int:
        await self._flush()
        await self._deletions.note(ERASE, entry_filter)
        return await self._erasure.erase(entry_filter, progress)

    async def deleted_since(self, tenant: str, moment: float) -> Sequence[NotedDeletion]:
        waited = max(self._clock.wall() - moment, 0.0)
        began = self._clock.mono() - int(waited * 1e9)
        return (await self._deletions.since(tenant, began))[0]

    async def count_calls(self, call: str) -> Mapping[str, int]:
        return await self._entries.count_calls(call)

    async def index(self, session: str) -> list[FiledEntry]:
        return await self._index.read(session)

    async def reindex(
        self, session: str, entries: Sequence[IndexEntry], *, remove: Collection[str] = ()
    ) -> None:
        owner = await queries.owner(self._connections, session)
        if owner is not None:
            await self._index.replace(session, owner, entries, remove)

    async def prune_index(self, *, dry_run: bool = False) -> int:
        return await self._index.prune(dry_run=dry_run)

    async def stats(self, *, tenant: str | None = None, sessions: bool = True) -> StoreStats:
        return await stats.stats(self._connections, tenant, sessions=sessions)

    async def turn_counts(self, *, seconds: int, since: float) -> list[TurnCounts]:
        return await self._counts.counts(seconds, since)

    @property
    def vault(self) -> "PostgresVault":
        """The keys of the database, for administration."""
        from thoughtline.stores.postgres.vault import PostgresVault

        return PostgresVault(self._connections, self._seals, self._keychain)

    async def lease(self, job: str, seconds: float) -> bool:
        rows = await self._connections.write(_LEASE, job, self._node, seconds)
        return bool(rows and rows[0][0])

    async def show_running(self, node: str, turns: bytes | None) -> bool:
        if turns is not None and self._keychain is not None:
            turns = self._keychain.seal_note(turns)
        ((looked_at,),) = await self._connections.read(_SHOW, node, turns)
        return bool(looked_at)

    async def look_at_running(self, node: str) -> Mapping[str, bytes]:
        rows = await self._connections.read(_LOOK, node)
        if self._keychain is None:
            return {row["node"]: row["data"] for row in rows}
        found: dict[str, bytes] = {}
        for row in rows:
            with suppress(SealError):  # a node with keys that this one has not got yet
                found[row["node"]] = self._keychain.open_note(row["data"])
        return found

    async def close(self) -> None:
        if self._connections.closed:
            return
        self._feed.watchers.close()
        await self._late.close()
        await self._writer.close()
        await self._counts.close()
        await self._hits.close()
        await self._connections.close()
