"""Index entries that were read before."""

from thoughtline.log.index import IndexEntry
from thoughtline.stores.postgres.bodies import BodyCache, token


def body(turn):
    return IndexEntry(session="s", turn=turn)


def test_bodies_are_known_by_any_of_their_names():
    cache = BodyCache(1 << 20)
    cache.put(b"1", b"T", 7, body("t1"), [b"a", b"b"])
    cache.put(b"2", b"T", 8, body("t2"), [b"b"])
    assert [b.entry.turn for b in cache.known([b"b", b"a"]).values()] == ["t1", "t2"]
    assert cache.known([b"c"]) == {}
    assert cache.known([b"a"])[b"1"].token == token(b"1", 7)


def test_a_newer_revision_takes_the_place_of_the_older():
    cache = BodyCache(1 << 20)
    cache.put(b"1", b"T", 7, body("old"), [b"a"])
    cache.put(b"1", b"T", 9, body("new"), [b"b"])
    assert cache.known([b"a"]) == {}
    assert cache.known([b"b"])[b"1"].entry.turn == "new"
    assert len(cache) == 1


def test_the_least_recently_used_go_first():
    cache = BodyCache(1)
    cache.put(b"1", b"T", 7, body("t1"), [b"a"])
    one = BodyCache(10_000)
    for n in range(3):
        one.put(b"%d" % n, b"T", n, body(f"t{n}"), [b"%d" % n])
        one.known([b"0"])
    for n in range(3, 12):
        one.put(b"%d" % n, b"T", n, body(f"t{n}"), [b"%d" % n])
        one.known([b"0"])
    assert len(cache) == 0 and cache.size == 0
    assert one.known([b"0"]) and not one.known([b"1"])
    assert one.size <= 10_000


def test_a_tenants_bodies_are_dropped_together():
    cache = BodyCache(1 << 20)
    cache.put(b"1", b"A", 7, body("t1"), [b"a"])
    cache.put(b"2", b"B", 7, body("t2"), [b"b"])
    cache.drop(b"A")
    assert not cache.known([b"a"]) and cache.known([b"b"])
    cache.clear()
    assert not cache.known([b"b"]) and cache.size == 0
