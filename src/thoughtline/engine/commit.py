"""Writes finished turns, each in one transaction.

The end of an answer waits for its turn to be written, but within a limit: a store that is slow or
down costs a bounded time, and the observer is told what could not be written.
"""

import asyncio
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from thoughtline.engine.offload import run_aside
from thoughtline.engine.recording import Recording
from thoughtline.errors import StoreError, ThoughtlineError, fault
from thoughtline.stores.base import Batch, Store


class CommitObserver(Protocol):
    """Who is told which turn was not written."""

    def lost(self, recording: Recording, error: Exception) -> None: ...


class TurnWriter:
    """Writes turns; a write that has begun goes on, whatever becomes of the one who asked."""

    def __init__(self, store: Store, observer: CommitObserver, timeout: float) -> None:
        self._store = store
        self._observer = observer
        self._timeout = timeout
        self._writes: dict[asyncio.Future[None], asyncio.Task[None]] = {}  # by who waits for it

    async def write(self, recording: Recording, reason: str = "", *, stopped: bool = False) -> None:
        """Write the turn of an answer that is over; wait for it, at most the timeout.

        `stopped`: the client left, or the gateway was stopped.
        """
        if recording.finished and not recording.has_late:
            return
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        writing = self._write(recording, over, reason, stopped=stopped)
        self._writes[over] = loop.create_task(writing)
        late = loop.call_later(self._timeout, _release, over)
        try:
            await over
        finally:
            late.cancel()

    async def _write(
        self, recording: Recording, over: "asyncio.Future[None]", reason: str, *, stopped: bool
    ) -> None:
        try:
            if recording.heavy:
                batch = await run_aside(partial(_finished, recording, reason, stopped=stopped))
                batch = batch and replace(batch, heavy=True)
            else:
                batch = _finished(recording, reason, stopped=stopped)
            if batch is not None:
                await self._store.append(batch)
        except StoreError as error:
            self._observer.lost(recording, error)
        except Exception as error:  # noqa: BLE001 (a turn less, and not an answer less)
            self._observer.lost(recording, ThoughtlineError(fault(error)))
        finally:
            recording.written = True
            del self._writes[over]
            _release(over)

    async def settled(self) -> None:
        """Returns when nothing is being written."""
        if self._writes:
            await asyncio.wait(self._writes.values())


def _finished(recording: Recording, reason: str, *, stopped: bool) -> Batch | None:
    """The batch of a finished recording, or of output after its end."""
    if recording.has_late:
        return recording.finish_late()
    return recording.finish(reason, stopped=stopped)


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
