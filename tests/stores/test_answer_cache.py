"""Answers in memory: bounded, the oldest out first, and of one tenant."""

from stores.samples import turn
from support.fragile_store import A
from thoughtline.stores.answer_cache import AnswerCache
from thoughtline.stores.cached import CachedStore


async def test_tenants_do_not_share_memory(fragile):
    hot = CachedStore(fragile)
    await hot.append(turn("s", "t1", keys=(A,)))
    assert await hot.find("T", [A])
    assert not await hot.find("other", [A])


async def test_oldest_out_first_and_hits_promoted(fragile):
    hot = CachedStore(fragile, entries=2)
    keys = [bytes([n]) * 16 for n in range(3)]
    for number, name in enumerate(keys):
        await hot.append(turn("s", f"t{number}", keys=(name,)))
    await hot.find("T", [keys[0]])
    await hot.find("T", [keys[1]])
    await hot.find("T", [keys[0]])  # promoted
    await hot.find("T", [keys[2]])  # pushes out names[1]
    asked = len(fragile.asked)
    await hot.find("T", [keys[0]])
    assert len(fragile.asked) == asked
    await hot.find("T", [keys[1]])
    assert len(fragile.asked) == asked + 1
    assert hot.remembered <= 2


async def test_bytes_are_bounded(fragile):
    hot = CachedStore(fragile, size=3000)
    for number in range(20):
        name = bytes([number]) * 16
        await hot.append(turn("s", f"t{number}", keys=(name,)))
        await hot.find("T", [name])
    assert hot.remembered < 7


def test_what_is_found_what_is_known_to_be_nowhere_and_what_is_not_known():
    cache = AnswerCache(100, 1 << 20)
    keys = [bytes([n]) * 16 for n in range(4)]
    [entry] = turn("s", "t1", keys=keys[:2]).index
    cache.put("T", keys[:3], {keys[0]: [entry], keys[1]: [entry]})
    assert cache.find("T", keys) == ({keys[0]: (entry,), keys[1]: (entry,)}, [keys[3]])
    assert cache.find("T", keys[1:3]) == ({keys[1]: (entry,)}, [])
    assert cache.find("U", keys[:1]) == ({}, keys[:1])
    assert cache.find("T", []) == ({}, [])


def test_what_was_found_is_the_last_to_go():
    cache = AnswerCache(100, 4 * 300)
    keys = [bytes([n]) * 16 for n in range(6)]
    cache.put("T", keys[:4], {})
    cache.find("T", [keys[0], keys[5]])  # of which one is not known
    cache.find("T", [keys[1]])
    cache.put("T", keys[4:], {})
    assert cache.find("T", keys)[1] == keys[2:4]
