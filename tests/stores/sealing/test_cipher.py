"""A sealed value opens where it was sealed, and nowhere else; blinded keys keep their neighbours."""

import threading

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.keys import KEY_SIZE, SHARED_BYTES
from thoughtline.stores.sealing.cipher import TenantCipher
from thoughtline.stores.sealing.envelope import key_version

texts = st.text(st.characters(codec=None), max_size=12)
places = st.tuples(texts, texts, texts, st.sampled_from(["memo", "thoughts", "said"]))
keys = st.binary(min_size=KEY_SIZE, max_size=KEY_SIZE)


def cipher(tenant="T", version=1, *, secret=b"k" * 32):
    return TenantCipher(tenant, {0: b"n" * 32}, {version: secret})


@given(place=places, other=places, value=st.binary(max_size=200))
def test_a_value_opens_in_its_place_only(place, other, value):
    tenant, *where = place
    sealed = cipher(tenant).seal(value, *where)
    assert cipher(tenant).open(sealed, *where) == value
    assume(place != other)
    moved, *there = other
    with pytest.raises(Damaged):
        cipher(moved).open(sealed, *there)


@given(value=st.binary(max_size=100), at=st.integers(0), bit=st.integers(0, 7))
def test_a_value_that_was_altered_does_not_open(value, at, bit):
    sealed = bytearray(cipher().seal(value, "s", "b", "memo"))
    sealed[at % len(sealed)] ^= 1 << bit
    with pytest.raises((Damaged, KeyGone)):  # of a key that this tenant does not have
        cipher().open(bytes(sealed), "s", "b", "memo")


@given(value=st.binary(max_size=100), cut=st.integers(0, 130))
def test_a_value_that_was_cut_does_not_open(value, cut):
    sealed = cipher().seal(value, "s", "b", "memo")
    assume(cut < len(sealed))
    with pytest.raises(Damaged):
        cipher().open(sealed[:cut], "s", "b", "memo")


def test_equal_values_are_sealed_differently():
    sealed = {cipher().seal(b"x", "s", "b", "memo")[:15] for _ in range(1000)}
    assert len(sealed) == 1000


def test_the_newest_key_seals_and_older_ones_still_open():
    old = cipher().seal(b"x", "s", "b", "memo")
    both = TenantCipher("T", {0: b"n" * 32}, {1: b"k" * 32, 2: b"l" * 32})
    assert both.open(old, "s", "b", "memo") == b"x"
    assert key_version(both.seal(b"x", "s", "b", "memo")) == 2
    with pytest.raises(KeyGone, match="tenant 'T' was deleted"):
        cipher(version=2).open(old, "s", "b", "memo")


def test_more_sessions_than_are_held_ready():
    one = cipher()
    sealed = [one.seal(b"x", f"s{n}", "b", "memo") for n in range(5000)]
    assert one.open(sealed[0], "s0", "b", "memo") == b"x"
    with pytest.raises(Damaged):
        one.open(sealed[0], "s1", "b", "memo")


@given(st.lists(keys, max_size=12, unique=True))
def test_blinded_keys_stay_apart_and_keep_their_neighbours(names):
    blinded = cipher().blind(names)
    assert cipher().blind(names) == blinded
    assert len(set(blinded)) == len(names) and all(len(one) == KEY_SIZE for one in blinded)
    heads = {
        name[:SHARED_BYTES]: hidden[:SHARED_BYTES]
        for name, hidden in zip(names, blinded, strict=True)
    }
    for name, hidden in zip(names, blinded, strict=True):
        assert hidden[:SHARED_BYTES] == heads[name[:SHARED_BYTES]]
        assert hidden != name


def test_tenants_have_different_blinded_keys_and_words():
    names = [bytes(range(n, n + KEY_SIZE)) for n in range(5)]
    other = TenantCipher("T", {0: b"m" * 32}, {1: b"k" * 32})
    assert not set(cipher().blind(names)) & set(other.blind(names))
    assert cipher().blind([b"call_1"]) != other.blind([b"call_1"])
    assert cipher().blind([b"call_1"]) == cipher().blind([b"call_1"]) != cipher().blind([b"call_2"])


def test_a_new_key_of_values_does_not_change_what_is_looked_up():
    assert cipher(version=2, secret=b"z" * 32).blind([b"x" * 16]) == cipher().blind([b"x" * 16])


def test_threads_may_share_a_cipher():
    one, names = cipher(), [bytes([n]) * KEY_SIZE for n in range(50)]
    expected, wrong = one.blind(names), []

    def work():
        wrong.extend(1 for _ in range(300) if one.blind(names) != expected)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
