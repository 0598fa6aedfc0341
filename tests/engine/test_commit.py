"""Turns are written: who asks waits a bounded time, and a write that has begun goes on."""

import asyncio

import pytest

from support.gateway_server import RecordingObserver
from thoughtline.engine.commit import TurnWriter
from thoughtline.errors import Unavailable
from thoughtline.gateway.asgi import InFlight


class Taken:
    """A recording, and the store that takes its turn when it may."""

    finished = written = has_late = heavy = False

    def __init__(self, error=None):
        self.may = asyncio.Event()
        self.error = error
        self.turns = []

    def finish(self, reason="", *, stopped=False):
        return reason

    async def append(self, reason):
        await self.may.wait()
        if self.error:
            raise self.error
        self.turns.append(reason)


async def test_patience_has_an_end_and_the_write_goes_on():
    turn = Taken()
    writer = TurnWriter(turn, RecordingObserver(), 0.01)
    async with asyncio.timeout(60):
        await writer.write(turn, "slow")
        assert not turn.turns
        turn.may.set()
        await writer.settled()
    assert turn.turns == ["slow"]


async def test_nor_does_it_end_with_the_one_who_asked():
    turn = Taken()
    writer = TurnWriter(turn, RecordingObserver(), 60)
    asking = asyncio.ensure_future(writer.write(turn))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    turn.may.set()
    async with asyncio.timeout(60):
        await writer.settled()
    assert turn.turns == [""]


@pytest.mark.parametrize("error", [Unavailable("the disk"), ValueError("a fault of ours")])
async def test_what_fails_is_told_and_nobody_waits_for_it(error):
    notes, turn = RecordingObserver(), Taken(error)
    writer = TurnWriter(turn, notes, 60)
    turn.may.set()
    async with asyncio.timeout(60):
        await writer.write(turn)
        await writer.settled()
    assert len(notes.losses) == 1
    assert not turn.turns


async def test_who_waits_until_nobody_is_left_hears_of_the_last_one():
    in_flight = InFlight()
    await in_flight.wait_until_idle(60)  # nobody is there
    with in_flight, in_flight:
        await in_flight.wait_until_idle(0.001)
        assert in_flight.count == 2
        waiting = [asyncio.ensure_future(in_flight.wait_until_idle(60)) for _ in range(2)]
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)
    assert in_flight.count == 0
