"""Settled beginnings are found by their bytes, and bounded."""

from types import SimpleNamespace

import pytest

from thoughtline.engine.prefix_cache import PrefixCache

ME = ("me", "chat")
HEAD = b'{"messages":['


def prefix(body, end=None, *, owner=ME, size=None):
    """A beginning of this body."""
    size = len(body) if size is None else size
    end = len(body) if end is None else end
    kept = {"owner": owner, "body": body, "start": len(HEAD), "end": end, "size": size}
    return Hashable(**kept, cost=0, parts=0)


class Hashable(SimpleNamespace):
    """By identity, as the real one is."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def element(text):
    return b'{"role":"user","content":"%b"}' % text


def body(*texts):
    return HEAD + b",".join(map(element, texts)) + b"]}"


def settled(*texts):
    """The beginning of a body with one more element."""
    whole = body(*texts, b"more")
    return prefix(whole, whole.index(element(b"more")))


@pytest.fixture
def cache():
    return PrefixCache(100_000, min_size=0)


def test_the_longest_beginning_is_found_and_left_out(cache):
    for known in (settled(b"one"), settled(b"one", b"two"), settled(b"other")):
        cache.put(known)
    found = cache.resume(ME, body(b"one", b"two", b"three", b"four"))
    assert found.prefix.body == body(b"one", b"two", b"more")
    assert found.text == body(b"three", b"four")
    assert found.body == body(b"one", b"two", b"three", b"four")


def test_every_byte_counts_and_nobody_else_finds_it(cache):
    cache.put(settled(b"one"))
    asked = body(b"one", b"two")
    assert cache.resume(ME, asked)
    assert cache.resume(("you", "chat"), asked) is None
    assert cache.resume(("me", "messages"), asked) is None
    assert cache.resume(ME, body(b"One", b"two")) is None
    assert cache.resume(ME, asked.replace(b"},{", b"}, {")) is None


def test_there_must_be_an_element_behind_it(cache):
    """A comma and no element is no JSON: without the beginning it would look like some."""
    known = settled(b"one")
    cache.put(known)
    assert cache.resume(ME, known.body[: known.end] + b"]}") is None


def test_one_of_many_conversations_is_found(cache):
    many = [settled(b"the same words %d" % n, b"and more") for n in range(200)]
    for known in many:
        cache.put(known)
    for n in (0, 99, 199):
        found = cache.resume(ME, body(b"the same words %d" % n, b"and more", b"now"))
        assert found.prefix is many[n]


def test_a_longer_one_takes_the_place_of_the_one_before(cache):
    first, second = settled(b"one"), settled(b"one", b"two")
    cache.put(first)
    cache.put(second, before=first)
    assert len(cache) == 1
    assert cache.size == second.size
    cache.put(second, before=second)
    cache.remove(first)
    assert cache.resume(ME, body(b"one", b"two", b"three")).prefix is second


def test_the_least_recently_used_goes_first():
    cache = PrefixCache(300, min_size=0)
    one, two, three = (
        prefix(body(name, b"more"), len(HEAD) + len(element(name)) + 1, size=120)
        for name in (b"1", b"2", b"3")
    )
    cache.put(one)
    cache.put(two)
    assert cache.resume(ME, body(b"1", b"x")).prefix is one
    cache.put(three)
    assert cache.resume(ME, body(b"2", b"x")) is None
    assert cache.resume(ME, body(b"1", b"x")).prefix is one
    assert cache.size == 240
    cache.put(prefix(body(b"4", b"more"), size=301))
    assert len(cache) == 2
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)
    assert cache.resume(ME, body(b"1", b"x")) is None


def test_two_with_the_same_body_are_told_apart(cache):
    one, two = settled(b"one"), settled(b"one")
    cache.put(one)
    cache.put(two)
    cache.remove(one)
    assert cache.resume(ME, body(b"one", b"two")).prefix is two


def test_short_bodies_are_not_looked_for():
    cache = PrefixCache(1 << 20)
    cache.put(settled(b"one"))
    assert cache.resume(ME, body(b"one", b"two")) is None
    assert cache.resume(ME, body(b"one", b"t" * 4096))


def test_what_may_be_too_complex_as_a_whole_is_not_resumed(cache):
    known = settled(b"x" * 20_000)
    known.parts = 50_000
    cache.put(known)
    assert cache.resume(ME, body(b"x" * 20_000, b"two")) is None
