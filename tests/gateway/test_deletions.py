"""Deletions in the background: results, progress, errors, and the end of the gateway."""

import asyncio
import io

import pytest

from stores.samples import StillClock
from support.waiting import eventually
from thoughtline.errors import Unavailable
from thoughtline.gateway.deletions import LOG_EVERY, MAX_KEPT, Deletions
from thoughtline.gateway.telemetry import open_log


@pytest.fixture
def lines():
    return io.StringIO()


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def deletions(clock, lines):
    return Deletions(clock, open_log(style="json", stream=lines), wait=0.0)


async def over(deletion):
    await eventually(lambda: deletion.status != "running")


async def test_what_is_over_soon_is_answered_at_once(clock, lines):
    async def delete(progress):
        progress(5, 5)
        return 5

    done = await Deletions(clock, open_log(style="json", stream=lines), wait=60.0).run(
        "cache", delete
    )
    assert (done.status, done.deleted, done.done, done.total) == ("done", 5, 5, 5)


async def test_an_error_that_comes_soon_is_raised(clock, lines):
    async def delete(progress):
        raise Unavailable("the disk is gone")

    with pytest.raises(Unavailable, match="the disk is gone"):
        await Deletions(clock, open_log(style="json", stream=lines), wait=60.0).run("cache", delete)


async def test_what_takes_long_goes_on_and_is_logged(deletions, clock, lines):
    go = asyncio.Event()

    async def delete(progress):
        await go.wait()
        clock.now += LOG_EVERY + 1
        progress(1, 3)
        progress(2, 3)
        return 2

    deletion = await deletions.run("tenant", delete, tenant="t")
    assert deletion.status == "running"
    assert deletions.find(deletion.deletion) is deletion
    go.set()
    await over(deletion)
    assert (deletion.status, deletion.deleted, deletion.done) == ("done", 2, 3)
    await asyncio.sleep(0)  # lines are written when the loop comes round
    assert lines.getvalue().count("deleting") == 1


async def test_an_error_that_comes_late_is_kept(deletions, lines):
    go = asyncio.Event()

    async def delete(progress):
        await go.wait()
        raise Unavailable("the disk is gone")

    deletion = await deletions.run("log", delete)
    go.set()
    await over(deletion)
    await asyncio.sleep(0)
    assert (deletion.status, deletion.error) == ("failed", "the disk is gone")
    assert "the disk is gone" in lines.getvalue()


async def test_a_gateway_that_stops_ends_them(deletions):
    async def delete(progress):
        await asyncio.Event().wait()

    guard = asyncio.ensure_future(deletions.guard())
    deletion = await deletions.run("cache", delete)
    guard.cancel()
    await asyncio.gather(guard, return_exceptions=True)
    assert (deletion.status, deletion.error) == ("failed", "the gateway was stopped")


async def test_only_the_last_ones_are_kept(clock, lines):
    async def delete(progress):
        return 0

    deletions = Deletions(clock, open_log(style="json", stream=lines), wait=60.0)
    ids = [(await deletions.run("cache", delete)).deletion for _ in range(MAX_KEPT + 10)]
    assert deletions.find(ids[0]) is None
    assert deletions.known[0].deletion == ids[-1]
    assert len(deletions.known) <= MAX_KEPT + 1
