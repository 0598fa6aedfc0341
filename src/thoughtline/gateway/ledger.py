"""The ledger: finished turns, written in one transaction each.

The end of a response waits for its turn, but not for ever: a store that is slow or down costs a
bounded moment, and whoever watches hears what could not be written.
"""

import asyncio
from typing import Protocol

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
        self._writes: dict[asyncio.Future[None], asyncio.Task[None]] = {}  # by who waits for it

    async def write(self, exchange: Exchange, reason: str = "") -> None:
        """Write the turn; wait for it as long as there is patience."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        self._writes[over] = loop.create_task(self._write(exchange, reason, over))
        late = loop.call_later(self._patience, _release, over)
        try:
            await over
        finally:
            late.cancel()

    async def _write(self, exchange: Exchange, reason: str, over: "asyncio.Future[None]") -> None:
        try:
            await exchange.finish(reason=reason)
        except StoreError as error:
            self._watcher.lost(exchange, error)
        except Exception as error:  # noqa: BLE001 (a turn less, and not an answer less)
            self._watcher.lost(exchange, ThoughtlineError(fault(error)))
        finally:
            del self._writes[over]
            _release(over)

    async def settled(self) -> None:
        """Returns when nothing is being written."""
        if self._writes:
            await asyncio.wait(self._writes.values())


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
