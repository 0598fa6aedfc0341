"""A store that does not answer in time: requests go on, and it is asked again."""

import asyncio

from stores.samples import turn
from support.fragile_store import A, B
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.timed_lookups import SHORT_TIMEOUT


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
