"""The keys of a SQLite file, for administration: the port of a vault."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from thoughtline.errors import SealError, Unavailable
from thoughtline.stores.base import Progress
from thoughtline.stores.sealing.tenant_keys import KeyRow
from thoughtline.stores.sealing.vault import SealState, ValueCounts
from thoughtline.stores.sqlite import key_tables, resealing, upkeep
from thoughtline.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

T = TypeVar("T")
Work = Callable[[Connection], T]


ATTEMPTS = 3
"""How often the log is to be emptied that others read: each waits as long as for a lock."""


class Runner(Protocol):
    """Runs a function with a connection."""

    def __call__(self, work: Work[T]) -> Awaitable[T]: ...


class SqliteVault:
    """The keys of a file."""

    def __init__(self, read: Runner, write: Runner, keychain: "Keychain | None") -> None:
        self._read = read
        self._write = write
        self._keychain = keychain

    async def seal_state(self) -> SealState:
        return await self._read(key_tables.read_state)

    async def key_rows(self) -> list[KeyRow]:
        return await self._read(key_tables.read_all)

    async def value_counts(self) -> ValueCounts:
        return await self._read(resealing.count_values)

    async def sample(self, limit: int) -> list[str]:
        return await self._read(partial(resealing.sample, limit=limit))

    async def note_keys(self) -> set[str]:
        return set()  # what processes tell one another about a file has no content

    async def reseal_notes(self) -> int:
        return 0

    async def set_primary(self, id: str) -> None:
        await self._write(partial(key_tables.set_primary, id=id))

    async def add_keys(self, rows: Sequence[KeyRow]) -> int:
        return await self._write(partial(key_tables.add_rows, rows=rows))

    async def replace_keys(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        return await self._write(partial(key_tables.replace_rows, rows=rows))

    async def drop_keys(self, rows: Sequence[KeyRow]) -> int:
        dropped = await self._write(partial(key_tables.drop_rows, rows=rows))
        await self._read(upkeep.truncate_log)
        return dropped

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
        after, count, more = 0, 0, True
        while more:
            page = await self._read(
                partial(resealing.stale_page, after=after, tenant=tenant, plain=plain)
            )
            for start in range(0, len(page.positions), resealing.CHUNK):
                some = page.positions[start : start + resealing.CHUNK]
                count += await self._write(partial(resealing.reseal, positions=some))
                await asyncio.sleep(len(some) / rate if rate else 0)
            after, more = page.last, page.more
            if progress is not None:
                progress(min(after, page.newest), page.newest)
            if not more and tenant is None:  # rows may have come since
                more = not await self._write(partial(resealing.finish, after=after, plain=plain))
                after = 0 if plain else after
        # Until the log is copied into the file, that has what was plain.
        for _ in range(ATTEMPTS):
            if await self._read(upkeep.truncate_log):
                break
        else:
            raise Unavailable(
                "all rows are written again, but another process still reads the file as it was "
                "before, which keeps the old content in it; when that has ended (a backup?), run "
                "this once more"
            )
        return count
