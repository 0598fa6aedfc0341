"""A store that does not answer in time: requests go on, and it is asked again."""

import asyncio

import pytest

from stores.samples import turn
from support.fragile_store import A, B, Fragile
from thoughtline.errors import Unavailable
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.timed_lookups import SHORT_TIMEOUT, TimedLookUps


async def test_a_store_that_hangs_is_a_store_that_is_down(fragile, loop_clock):
    """Requests flow from memory, and only the first one has waited."""
    hot = CachedStore(fragile, timeout=5.0, retry=60.0)
    await hot.append(turn("s", "t1", keys=(A,)))
    answered = fragile.find
    fragile.find = lambda tenant, keys: asyncio.Event().wait()
    for patience in (5.0, SHORT_TIMEOUT):
        finding = asyncio.create_task(hot.find("T", [A, B]))
        await loop_clock.advance(patience * 0.9)
        assert not finding.done()
        await loop_clock.advance(patience * 0.1)
        assert finding.done()
        assert [m.turn for m in (await finding)[A]] == ["t1"]
    assert "did not answer" in hot.trouble
    fragile.find = answered
    assert [m.turn for m in (await hot.find("T", [A, B]))[A]] == ["t1"]
    assert hot.trouble == ""


def answer_after(store, clock, seconds):
    """Let look-ups take so long from now on; returns how long they wanted to take."""
    answered, waits = Fragile.find, []

    async def slow(tenant, keys):
        waits.append(seconds)
        await clock.pause(seconds)
        return await answered(store, tenant, keys)

    store.find = slow
    return waits


async def gives_up(finding, clock, seconds):
    """Wait so long for a look-up, and hear that the store did not answer."""
    asking = asyncio.ensure_future(finding)
    await clock.advance(seconds)
    with pytest.raises(Unavailable, match=f"within {seconds:g} s"):
        await asking


async def test_a_store_that_answers_again_is_given_its_time_again(fragile, loop_clock):
    """Also when nobody looks anything up meanwhile."""
    hot = CachedStore(fragile, timeout=5.0, retry=1.0)
    await hot.append(turn("s", "t1", keys=(A,)))
    answer_after(fragile, loop_clock, 60.0)
    finding = asyncio.create_task(hot.find("T", [A, B]))
    await loop_clock.advance(5.0)
    await finding
    assert "did not answer" in hot.slow
    answer_after(fragile, loop_clock, SHORT_TIMEOUT * 2)
    await loop_clock.advance(1.0)
    await loop_clock.advance(SHORT_TIMEOUT * 2)
    assert not hot.slow
    finding = asyncio.create_task(hot.find("T", [A, B]))
    await loop_clock.advance(SHORT_TIMEOUT * 2)
    await finding
    assert (hot.slow, hot.trouble) == ("", "")


async def test_a_store_that_fails_is_asked_again_until_it_answers(fragile, loop_clock):
    look_ups = TimedLookUps(fragile, 5.0, retry=1.0)
    answer_after(fragile, loop_clock, 60.0)
    await gives_up(look_ups.find("T", [A]), loop_clock, 5.0)
    fragile.down = True
    asked = answer_after(fragile, loop_clock, 0.0)
    for count in (1, 2, 3):
        await loop_clock.advance(1.0)
        assert len(asked) == count
    assert look_ups.slow
    fragile.down = False
    await loop_clock.advance(1.0)
    assert not look_ups.slow


async def test_an_answer_in_the_short_time_will_do(fragile, loop_clock):
    look_ups = TimedLookUps(fragile, 5.0, retry=60.0)
    answer_after(fragile, loop_clock, 60.0)
    await gives_up(look_ups.find("T", [A]), loop_clock, 5.0)
    answer_after(fragile, loop_clock, 0.0)
    assert await look_ups.find("T", [A]) == {}
    assert not look_ups.slow


async def test_a_store_that_is_closed_is_not_asked_any_more(fragile, loop_clock):
    hot = CachedStore(fragile, timeout=5.0, retry=1.0)
    asked = answer_after(fragile, loop_clock, 60.0)
    await gives_up(hot.find("T", [A]), loop_clock, 5.0)
    await hot.close()
    count = len(asked)
    await loop_clock.advance(60.0)
    assert len(asked) == count
