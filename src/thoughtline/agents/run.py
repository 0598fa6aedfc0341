"""A run of a chat: iterate over its events, await its answer, or cancel it.

    run = chat.run("What is in a.txt?")
    async for event in run:   # deltas live, canonical events as they are written
        ...
    answer = await run        # also without iterating

A run starts when it is first iterated over or awaited, and then goes on by itself: a slow reader
does not hold it up. A cancelled run ends with what it has, and the log says so. If the task that
waits for a run is cancelled, so is the run.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from msgspec import Struct

from thoughtline.agents.record import Emit
from thoughtline.errors import RunFailed
from thoughtline.log.events import Delta, Event, Outcome
from thoughtline.log.parts import Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.log.usage import Usage

_ENDED = {
    Outcome.FAILED: "failed",
    Outcome.CAPPED: "reached its limit without an answer",
    Outcome.ABORTED: "was cancelled",
}


class Answer(Struct, frozen=True, kw_only=True):
    """How a run ended, with its turns."""

    outcome: Outcome
    session: str
    turns: tuple[Turn, ...] = ()  # of this run, as the log has them
    reason: str = ""  # why the run did not complete

    @property
    def text(self) -> str:
        """The final message; empty when there is none."""
        last = self.turns[-1].output if self.turns else ()
        return "".join(part.text for part in last if isinstance(part, Text))

    def raise_for_outcome(self) -> "Answer":
        """Raise `RunFailed` unless the run completed; returns the answer itself.

        The error has the answer: its outcome (failed, capped or aborted), reason and turns.
        """
        if self.outcome is Outcome.COMPLETED:
            return self
        why = f": {self.reason}" if self.reason else ""
        raise RunFailed(f"the run {_ENDED[self.outcome]}{why}", answer=self)

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """The thoughts of all turns."""
        return tuple(thought for turn in self.turns for thought in turn.thoughts)

    @property
    def usage(self) -> Usage:
        """Tokens of all turns together, as far as the provider reported them."""
        counts = {
            name: [n for t in self.turns if t.usage and (n := getattr(t.usage, name)) is not None]
            for name in Usage.__struct_fields__
        }
        return Usage(**{name: sum(found) for name, found in counts.items() if found})

    @property
    def turn(self) -> str:
        """The last turn's id, to fork at or to rewind to."""
        return self.turns[-1].id if self.turns else ""


Work = Callable[[Emit], Awaitable[Answer]]


class Run:
    """One run of a chat. Made by `Chat.run`."""

    def __init__(self, work: Work, cancelled: Callable[[], Answer]) -> None:
        self._work = work
        self._cancelled = cancelled  # the answer of a run that was cancelled
        self._task: asyncio.Task[Answer] | None = None
        self._queue: asyncio.Queue[Event | Delta | None] | None = None
        self._cancel = False

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return self._task is not None and self._task.done()

    @property
    def running(self) -> bool:
        """Whether the run has started and is not over."""
        return self._task is not None and not self._task.done()

    def cancel(self) -> None:
        """Stop: tools and the request are cancelled, and the turn ends as aborted."""
        already, self._cancel = self._cancel, True
        if self._task is not None and not already:  # else it is writing how it ended
            self._task.cancel()

    async def over(self) -> None:
        """Wait for the run's end; raises nothing that the run raises."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def __aiter__(self) -> AsyncIterator[Event | Delta]:
        """Events from now on; ends with the run, and raises what the run raises.

        Each event is given once: several readers at the same time share the events among them.
        """
        queue = self._queue = self._queue or asyncio.Queue()
        task = self._begin()
        if task.done():
            queue.put_nowait(None)
        try:
            while (event := await queue.get()) is not None:
                yield event
        except asyncio.CancelledError:
            await self._stop(task)
            raise
        queue.put_nowait(None)  # for other readers of the same queue
        await asyncio.wait({task})
        task.result()

    async def _wait(self) -> Answer:
        task = self._begin()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self._stop(task)
            raise

    def _begin(self) -> asyncio.Task[Answer]:
        if self._task is None:
            self._task = asyncio.ensure_future(self._drive())
        return self._task

    async def _stop(self, task: asyncio.Task[Answer]) -> None:
        """Cancel the run because its reader was cancelled, and wait until the log says so."""
        if not task.done():
            self.cancel()
            await asyncio.wait({task})

    async def _drive(self) -> Answer:
        try:
            if self._cancel:
                return self._cancelled()
            return await self._work(self._emit)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._cancel or task is None:
                raise
            task.uncancel()
            return self._cancelled()
        finally:
            if self._queue is not None:
                self._queue.put_nowait(None)

    def _emit(self, event: Event | Delta) -> None:
        if self._queue is not None:
            self._queue.put_nowait(event)
