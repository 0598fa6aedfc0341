"""Pieces of work that are counted exactly, in instructions or in lines that they touch.

Each is prepared first; counted is only what is said here, for one client that asks one request
after the other, so that the same happens in every run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import NamedTuple

from benchmarks.conversations import begin, streamed
from benchmarks.growing import GROWTHS, Conversation
from benchmarks.loads import Connection, connected, load_on
from benchmarks.stands import Stand

Prepared = Callable[[], Awaitable[object]]
Counting = Callable[[Prepared, int], Coroutine[None, None, None]]
"""Counts while it does what was prepared, which is so many pieces of work."""

REQUESTS = 16
CHUNKS, PAUSE = 100, 0.03
"""Chunks come one by one, also where counting makes the gateway slow."""


class Work(NamedTuple):
    """What is counted."""

    prepare: Callable[[Stand, Connection], Coroutine[None, None, tuple[Prepared, int]]]
    piece: str


async def _small(stand: Stand, connection: Connection) -> tuple[Prepared, int]:
    asked = await begin(stand, [connection], REQUESTS)
    return lambda: load_on([connection], asked, REQUESTS), REQUESTS


async def _translated(stand: Stand, connection: Connection) -> tuple[Prepared, int]:
    asked = await begin(stand, [connection], REQUESTS, dialect="messages")
    return lambda: load_on([connection], asked, REQUESTS), REQUESTS


async def _streamed(stand: Stand, connection: Connection) -> tuple[Prepared, int]:
    return lambda: load_on([connection], streamed(stand, CHUNKS, PAUSE), 1), CHUNKS


async def _growing(stand: Stand, connection: Connection) -> tuple[Prepared, int]:
    growth = GROWTHS[0]
    talk, last = Conversation(stand, growth, connection), 5
    for _ in range(growth.messages // 2 - last):
        await talk.ask()

    async def go_on() -> None:
        for _ in range(last):
            await talk.ask()

    return go_on, last


WORK: Mapping[str, Work] = {
    "small": Work(_small, "small request, the second of a conversation"),
    "growing": Work(_growing, f"request of {GROWTHS[0].messages} messages, 100 KB"),
    "streamed": Work(_streamed, f"chunk of a stream of {CHUNKS}, with its start and end"),
    "translated": Work(_translated, "small request in Messages, translated, streamed"),
}


def do(stand: Stand, name: str, counting: Counting, times: int = 1) -> None:
    """Do a piece of work, and let it be counted, so many times."""

    async def run() -> None:
        async with connected(stand.port, 1) as connections:
            for _ in range(times):
                prepared, pieces = await WORK[name].prepare(stand, connections[0])
                await counting(prepared, pieces)

    asyncio.run(run())
