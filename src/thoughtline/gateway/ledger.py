"""The ledger: finished turns, written in one transaction each.

The end of a response waits for its turn, but not for ever: a store that is slow or down costs a
bounded moment, and whoever watches hears what could not be written.
"""

import asyncio
from typing import Any, Protocol

from thoughtline.errors import StoreError, ThoughtlineError
from thoughtline.exchanges import Exchange
from thoughtline.gateway.refusals import fault


class Watcher(Protocol):
    """Who wants to know what was not written."""

    def lost(self, exchange: Exchange, error: Exception) -> None: ...


class Ledger:
    """Writes turns; a write that has begun goes on, whatever becomes of the one who asked."""

    def __init__(self, watcher: Watcher, patience: float) -> None:
        self._watcher = watcher
        self._patience = patience
        self._writes: set[asyncio.Task[Any]] = set()

    async def write(self, exchange: Exchange, reason: str = "") -> None:
        """Write the turn; wait for it as long as there is patience."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task = loop.create_task(self._write(exchange, reason))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        task.add_done_callback(lambda _: _release(over))
        late = loop.call_later(self._patience, _release, over)
        try:
            await over
        finally:
            late.cancel()

    async def _write(self, exchange: Exchange, reason: str) -> None:
        try:
            await exchange.finish(reason=reason)
        except StoreError as error:
            self._watcher.lost(exchange, error)
        except Exception as error:  # noqa: BLE001 (a turn less, and not an answer less)
            self._watcher.lost(exchange, ThoughtlineError(fault(error)))

    async def settled(self) -> None:
        """Returns when nothing is being written."""
        if self._writes:
            await asyncio.wait(set(self._writes))


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
