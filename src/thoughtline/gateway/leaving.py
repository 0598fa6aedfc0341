"""The end, as soon as it is near: when the process is asked to stop, not when all have left.

A server that is asked to stop waits for its streams, and tells an application of it only
afterwards. A stream that never ends by itself, such as a live feed, would hold it up; so whoever
keeps one open is told when the signal comes. The server's own handlers are called as before.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def before_the_end(tell: Callable[[], None]) -> None:
    """Call this, in the running event loop, when the process is asked to stop."""
    if threading.current_thread() is not threading.main_thread():
        return  # whoever runs us in a thread ends us in their own way
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _after(loop, tell, handler))


def _after(
    loop: asyncio.AbstractEventLoop,
    tell: Callable[[], None],
    handler: Callable[[int, FrameType | None], object],
) -> Callable[[int, FrameType | None], None]:
    def heard(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell)
        handler(number, frame)

    return heard
