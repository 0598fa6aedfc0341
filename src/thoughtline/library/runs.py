"""A run: events to iterate over while it happens, an answer to await, and a way to cancel.

    run = chat.run("What is in a.txt?")
    async for event in run:   # deltas live, canonical events as they are written
        ...
    answer = await run        # also without iterating

It starts when it is first iterated over or awaited, and then goes on by itself: a slow or absent
listener does not hold it up. A cancelled run ends with what it has, and the log says so. If the
task that waits for a run is cancelled, so is the run.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from msgspec import Struct

from thoughtline.events import Delta, Event, Outcome, Usage
from thoughtline.library.records import Emit
from thoughtline.parts import Text, Thought
from thoughtline.turns import Turn


class Answer(Struct, frozen=True, kw_only=True):
    """What came of a run."""

    outcome: Outcome
    session: str
    turns: tuple[Turn, ...] = ()  # of this run, as they are logged
    reason: str = ""  # why it is not completed

    @property
    def text(self) -> str:
        """The final message; empty when there is none."""
        last = self.turns[-1].output if self.turns else ()
        return "".join(part.text for part in last if isinstance(part, Text))

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        """Everything that was thought on the way."""
        return tuple(thought for turn in self.turns for thought in turn.thoughts)

    @property
    def usage(self) -> Usage:
        """Tokens of all exchanges together, as far as the provider counted them."""
        counts = {
            name: [n for t in self.turns if t.usage and (n := getattr(t.usage, name)) is not None]
            for name in Usage.__struct_fields__
        }
        return Usage(**{name: sum(found) for name, found in counts.items() if found})

    @property
    def turn(self) -> str:
        """The last turn's id: where to fork, or to rewind to."""
        return self.turns[-1].id if self.turns else ""


Work = Callable[[Emit], Awaitable[Answer]]


class Run:
    """One run of a chat."""

    def __init__(self, work: Work, cancelled: Callable[[], Answer]) -> None:
        self._work = work
        self._cancelled = cancelled  # the answer of a run that was cancelled
        self._task: asyncio.Task[Answer] | None = None
        self._queue: asyncio.Queue[Event | Delta | None] | None = None
        self._cancel = False

    @property
    def done(self) -> bool:
        """Whether it is over."""
        return self._task is not None and self._task.done()

    @property
    def running(self) -> bool:
        """Whether it has started and is not over."""
        return self._task is not None and not self._task.done()

    def cancel(self) -> None:
        """Stop: tools and request are let go of, and the turn ends as aborted."""
        again, self._cancel = self._cancel, True
        if self._task is not None and not again:  # else it is about to write how it ended
            self._task.cancel()

    async def over(self) -> None:
        """Wait for its end, whatever that is."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def __aiter__(self) -> AsyncIterator[Event | Delta]:
        """Events from now on; ends with the run, and raises what it raises.

        Each event is given once: those who iterate at the same time share them.
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
        queue.put_nowait(None)  # for others who listen: they share what comes
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
        """Whoever waited is cancelled: so is the run, and the log knows before they go on."""
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
