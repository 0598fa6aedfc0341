"""A store that does not answer in time: requests go on, and it is asked again."""

import asyncio

import pytest

from stores.samples import turn
from support.fragile_store import A, B, Fragile
from thoughtline.errors import Unavailable
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.timed_lookups import SHORT_TIMEOUT, TimedLookUps


async def test_a_store_that_hangs_is_a_store_that_is_down(fragile):
    """Requests flow from memory, and only the first one has waited."""
    hot = CachedStore(fragile, timeout=0.1)
    await hot.append(turn("s", "t1", keys=(A,)))
    answered, waits = fragile.find, []

    async def stuck(tenant, keys):
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        finally:
            waits.append(asyncio.get_running_loop().time() - began)

    fragile.find = stuck
    async with asyncio.timeout(60):
        for _ in range(2):
            assert [m.turn for m in (await hot.find("T", [A, B]))[A]] == ["t1"]
    assert "did not answer" in hot.trouble
    assert waits[1] < waits[0]
    fragile.find = answered
    assert [m.turn for m in (await hot.find("T", [A, B]))[A]] == ["t1"]
    assert hot.trouble == ""


async def test_a_store_that_answers_again_is_given_its_time_again(fragile):
    """Also when nobody looks anything up meanwhile."""
    hot = CachedStore(fragile, timeout=0.2, retry=0.001)
    await hot.append(turn("s", "t1", keys=(A,)))
    answered, late = fragile.find, 60.0

    async def slow(tenant, keys):
        await asyncio.sleep(late)
        return await answered(tenant, keys)

    fragile.find = slow
    await hot.find("T", [A, B])
    assert "did not answer" in hot.slow
    late = SHORT_TIMEOUT * 2
    async with asyncio.timeout(60):
        while hot.slow:
            await asyncio.sleep(0.001)
    await hot.find("T", [A, B])
    assert (hot.slow, hot.trouble) == ("", "")


def answer_after(store, seconds):
    """Let look-ups take so long from now on; returns how long they wanted to take."""
    answered, waits = Fragile.find, []

    async def slow(tenant, keys):
        waits.append(seconds)
        await asyncio.sleep(seconds)
        return await answered(store, tenant, keys)

    store.find = slow
    return waits


async def until_fast(slow):
    async with asyncio.timeout(60):
        while slow():
            await asyncio.sleep(0.001)


async def test_a_store_that_fails_is_asked_again_until_it_answers(fragile):
    look_ups = TimedLookUps(fragile, 0.1, retry=0.001)
    answer_after(fragile, 60.0)
    with pytest.raises(Unavailable, match=r"within 0\.1 s"):
        await look_ups.find("T", [A])
    fragile.down = True
    asked = answer_after(fragile, 0.0)
    async with asyncio.timeout(60):
        while len(asked) < 3:
            await asyncio.sleep(0.001)
    assert look_ups.slow
    fragile.down = False
    await until_fast(lambda: look_ups.slow)


async def test_an_answer_in_the_short_time_will_do(fragile):
    look_ups = TimedLookUps(fragile, 0.1, retry=60)
    answer_after(fragile, 60.0)
    with pytest.raises(Unavailable):
        await look_ups.find("T", [A])
    answer_after(fragile, 0.0)
    assert await look_ups.find("T", [A]) == {}
    assert not look_ups.slow


async def test_a_store_that_is_closed_is_not_asked_any_more(fragile):
    hot = CachedStore(fragile, timeout=0.01, retry=0.001)
    asked = answer_after(fragile, 60.0)
    with pytest.raises(Unavailable):
        await hot.find("T", [A])
    await hot.close()
    count = len(asked)
    await asyncio.sleep(0.05)
    assert len(asked) == count
