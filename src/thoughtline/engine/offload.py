"""Work beside the event loop: what may take long runs in a thread, one thing after the other.

One thread is enough, and bounds the memory: it is for the rare large text, not for throughput.
Meanwhile the interpreter switches threads more often, so that the event loop does not wait for it.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from thoughtline.dialects.limits import is_heavy

SWITCH_INTERVAL = 0.0005
"""Seconds after which the thread gives way to the event loop."""
Value = TypeVar("Value")


class HeavyThread:
    """The thread; it starts with the first work."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="thoughtline-heavy")
        self._running = 0
        self._usual_interval = 0.0

    async def run(self, function: Callable[[], Value]) -> Value:
        """Run a function in the thread; what it raises is raised here."""
        if not self._running:
            self._usual_interval = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_INTERVAL, self._usual_interval))
        self._running += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, _run, function)
        finally:
            self._running -= 1
            if not self._running:
                sys.setswitchinterval(self._usual_interval)


def _run(function: Callable[[], Value]) -> Value:
    """Run a function; no future takes a `StopIteration`, and its caller would never wake."""
    try:
        return function()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


_THREAD = HeavyThread()


async def run_aside(function: Callable[[], Value]) -> Value:
    """Run a function beside the event loop; other requests go on in the meantime."""
    return await _THREAD.run(function)


async def run_for(text: bytes, function: Callable[[], Value]) -> Value:
    """Run a function that reads or writes this text: beside the event loop if it is heavy."""
    return await run_aside(function) if is_heavy(text) else function()
