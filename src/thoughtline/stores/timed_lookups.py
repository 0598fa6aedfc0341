"""Look-ups that are answered in time, or given up.

The first look-up that a store does not answer waits for the whole time, and counts the store as
slow. Those after it wait only shortly, so that requests go on. Meanwhile the store is asked again
and again with the whole time, whether requests come or not: when it answers, it is not slow.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from thoughtline.errors import StoreError, Unavailable
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Store

SHORT_TIMEOUT = 0.05
"""Seconds for a look-up while the store is slow."""

Found = Mapping[bytes, Sequence[IndexEntry]]


class TimedLookUps:
    """Asks a store, within `timeout` seconds."""

    def __init__(self, store: Store, timeout: float, *, retry: float) -> None:
        """`retry` is how many seconds a slow store is left alone before it is asked again."""
        self._store = store
        self._timeout = timeout
        self._retry = retry
        self._trying: asyncio.Task[None] | None = None  # asks a slow store again
        self._late = f"the store did not answer within {timeout:g} s"

    @property
    def slow(self) -> str:
        """What the store did not do; empty: it answers in time."""
        return self._late if self._trying else ""

    async def find(self, tenant: str, keys: Sequence[bytes]) -> Found:
        """Ask the store; raises `Unavailable` when it does not answer in time."""
        try:
            async with asyncio.timeout(SHORT_TIMEOUT if self._trying else self._timeout):
                answer = await self._store.find(tenant, keys)
        except TimeoutError:
            if self._trying is None:
                self._trying = asyncio.ensure_future(self._try_again(tenant, keys))
            raise Unavailable(self._late) from None
        if self._trying is not None:
            self.close()
        return answer

    async def continued(self, tenant: str, turns: Sequence[str]) -> Mapping[str, int]:
        """Ask how far turns were continued, always with the whole time."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._store.continued(tenant, turns)
        except TimeoutError:
            raise Unavailable(self._late) from None

    async def _try_again(self, tenant: str, keys: Sequence[bytes]) -> None:
        """Ask until the store answers in time."""
        while True:
            await asyncio.sleep(self._retry)
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(self._timeout):
                    await self._store.find(tenant, keys)
                self._trying = None
                return

    def close(self) -> None:
        """Stop the background probe."""
        if self._trying is not None:
            self._trying.cancel()
            self._trying = None
