"""Deletions that go on in the background, and how far they are.

A deletion of very much takes minutes: it is done in slices, and requests go on meanwhile. A client
gets the result if it is there soon, and else an id to ask again with. The deletion goes on when the
client hangs up; when the gateway stops, what is not deleted yet stays.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.gateway.telemetry import Log
from thoughtline.stores.base import Progress

WAIT = 2.0
"""Seconds for which a request waits for the result."""

MAX_KEPT = 50
"""Deletions that are over and can still be asked for."""

LOG_EVERY = 5.0
"""Seconds between two log lines about one deletion."""

Delete = Callable[[Progress], Awaitable[int]]
"""Deletes, tells how far it is, and returns how much was deleted."""


class Deletion(Struct, kw_only=True, rename="camel"):
    """A deletion: what it is about and how far it is."""

    deletion: str  # its id
    what: str
    upstreams: tuple[str, ...] = ()  # whose entries, where they cannot be told apart
    status: str = "running"  # or done, failed
    done: int = 0  # how much of the total is worked through
    total: int = 0
    deleted: int | None = None  # how much was deleted, once it is over
    error: str | None = None
    started_at: float = 0.0


class Deletions:
    """All deletions of a gateway that run, and the last ones that are over."""

    def __init__(self, clock: Clock, log: Log, *, wait: float | None = WAIT) -> None:
        """Let requests wait for `wait` seconds; None: until it is over."""
        self._clock = clock
        self._log = log
        self._wait = wait
        self._known: dict[str, Deletion] = {}
        self._tasks: dict[str, asyncio.Task[int]] = {}

    async def run(
        self, what: str, delete: Delete, *, upstreams: tuple[str, ...] = (), **said: Any
    ) -> Deletion:
        """Begin a deletion and wait for it a while; `what` and `said` are for the log line.

        Raises what the deletion raises, if that is soon.
        """
        deletion = Deletion(
            deletion=self._clock.new_id(),
            what=what,
            upstreams=upstreams,
            started_at=self._clock.wall(),
        )
        self._known[deletion.deletion] = deletion
        self._drop_old()
        task = asyncio.ensure_future(self._delete(deletion, delete, said))
        self._tasks[deletion.deletion] = task
        task.add_done_callback(lambda _: self._tasks.pop(deletion.deletion, None))
        await asyncio.wait({task}, timeout=self._wait)
        if task.done():
            task.result()
        else:
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return deletion

    async def _delete(self, deletion: Deletion, delete: Delete, said: dict[str, Any]) -> int:
        told = self._clock.mono()

        def progress(done: int, total: int) -> None:
            nonlocal told
            deletion.done, deletion.total = done, total
            if self._clock.mono() - told > LOG_EVERY * 1e9:
                told = self._clock.mono()
                self._log.info("deleting", what=deletion.what, done=done, total=total, **said)

        try:
            deletion.deleted = await delete(progress)
        except BaseException as error:
            deletion.status = "failed"
            deletion.error = str(error) or "the gateway was stopped"
            self._log.warning("deleting", what=deletion.what, reason=deletion.error, **said)
            raise
        deletion.status = "done"
        deletion.done = deletion.total = max(deletion.total, deletion.done)
        return deletion.deleted

    def find(self, id: str) -> Deletion | None:
        """The deletion of this id; None: there is none, or it was long ago."""
        return self._known.get(id)

    @property
    def known(self) -> list[Deletion]:
        """Those that run and the last ones that are over, the newest first."""
        return list(self._known.values())[::-1]

    def _drop_old(self) -> None:
        over = [id for id, one in self._known.items() if one.status != "running"]
        for id in over[:-MAX_KEPT]:
            del self._known[id]

    async def guard(self) -> None:
        """Run until cancelled, and then stop what runs: the store is about to be closed."""
        try:
            await asyncio.Event().wait()
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
