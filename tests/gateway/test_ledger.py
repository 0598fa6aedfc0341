"""The ledger: who asks waits a bounded moment, and what is being written is written."""

import asyncio

import pytest

from gateways import Notes
from thoughtline.errors import Unavailable
from thoughtline.gateway.ledger import Ledger
from thoughtline.gateway.presence import Presence


class Turn:
    """An exchange whose turn is written when it may be."""

    def __init__(self, error=None):
        self.may = asyncio.Event()
        self.error = error
        self.written = []

    async def finish(self, *, reason=""):
        await self.may.wait()
        if self.error:
            raise self.error
        self.written.append(reason)


async def test_patience_has_an_end_and_the_write_goes_on():
    turn, ledger = Turn(), Ledger(Notes(), 0.01)
    async with asyncio.timeout(5):
        await ledger.write(turn, "slow")
        assert not turn.written
        turn.may.set()
        await ledger.settled()
    assert turn.written == ["slow"]


async def test_nor_does_it_end_with_the_one_who_asked():
    turn, ledger = Turn(), Ledger(Notes(), 60)
    asking = asyncio.ensure_future(ledger.write(turn))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    turn.may.set()
    async with asyncio.timeout(5):
        await ledger.settled()
    assert turn.written == [""]


@pytest.mark.parametrize("error", [Unavailable("the disk"), ValueError("a fault of ours")])
async def test_what_fails_is_told_and_nobody_waits_for_it(error):
    notes, turn = Notes(), Turn(error)
    ledger = Ledger(notes, 60)
    turn.may.set()
    async with asyncio.timeout(5):
        await ledger.write(turn)
        await ledger.settled()
    assert len(notes.losses) == 1
    assert not turn.written


async def test_who_waits_until_nobody_is_left_hears_of_the_last_one():
    present = Presence()
    await present.over(60)  # nobody is there
    with present, present:
        await present.over(0.001)
        assert present.count == 2
        waiting = [asyncio.ensure_future(present.over(60)) for _ in range(2)]
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert present.count == 0
