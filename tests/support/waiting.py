"""Waiting for what happens: the one place where a test lets time pass.

There is no time here that a test could depend on: what is waited for has a minute, which only ends
a hang.
"""

import asyncio
import contextlib
import fcntl
import inspect
import itertools
import select
import socket
import sys
import termios
import time

import httpx2

from thoughtline.errors import Unavailable

LIMIT = 60.0
AT_ONCE, SHORTEST, LONGEST = 50, 0.0005, 0.02


async def eventually(condition):
    """What a condition gives, once it gives something; asked in the loop, and may be awaited."""
    given, pauses, end = await _asked(condition), _pauses(), time.monotonic() + LIMIT
    while not given:
        assert time.monotonic() < end, never(condition)
        await _pass(next(pauses))
        given = await _asked(condition)
    return given


async def _pass(seconds):
    """Not by a timer of the loop, whose clock a test may have stopped."""
    await (asyncio.to_thread(time.sleep, seconds) if seconds else asyncio.sleep(0))


async def _asked(condition):
    given = condition()
    return await given if inspect.isawaitable(given) else given


async def patiently(call):
    """Do what somebody does who is told to try again."""

    async def done():
        with contextlib.suppress(Unavailable):
            return (await call(),)

    return (await eventually(done))[0]


def until(condition):
    """What a condition gives, once it gives something: of another thread, or another process."""
    pauses, end = _pauses(), time.monotonic() + LIMIT
    while not (given := condition()):
        assert time.monotonic() < end, never(condition)
        time.sleep(next(pauses))
    return given


def delivered(sender):
    """Whether the system of who receives has all that was sent; a busy one takes its time."""
    place = sender.fileno()
    if place < 0 or not sys.platform.startswith("linux"):
        return True
    look = select.poll()
    look.register(place, 0)
    if look.poll(0):
        return True  # the connection is over
    return not int.from_bytes(fcntl.ioctl(place, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def listens(port):
    """Whether somebody takes connections at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def answers(url):
    """Whether a server answers there, and that all is well."""
    try:
        return httpx2.get(url, timeout=LIMIT).status_code == 200
    except httpx2.TransportError:
        return False


def never(condition):
    """What a hang leaves: what did not happen, in the words of the test."""
    return f"within {LIMIT:.0f} s this did not happen: {inspect.getsource(condition).strip()}"


def _pauses():
    """Whoever is ready runs; then a moment, and longer ones."""
    yield from itertools.repeat(0.0, AT_ONCE)
    pause = SHORTEST
    while True:
        yield pause
        pause = min(LONGEST, pause * 1.5)
