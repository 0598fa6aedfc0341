import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.clock import Clock, SystemClock, time_of_id, uuid7
from thoughtline.testing import FrozenClock


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=20))
def test_ids_are_uuids_of_version_7(milliseconds, entropy):
    made = uuid7(milliseconds, entropy)
    assert len(made) == 32
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert int(made[:12], 16) == milliseconds


@given(st.integers(0, 2**48 - 2), st.binary(min_size=10, max_size=10), st.binary(min_size=10))
def test_ids_sort_by_time(milliseconds, one, other):
    assert uuid7(milliseconds, one) < uuid7(milliseconds + 1, other)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_an_id_tells_when_it_was_made(milliseconds, entropy):
    assert time_of_id(uuid7(milliseconds, entropy)) == milliseconds


@pytest.mark.parametrize("id", ["", "s1.0", "x" * 12 + "7" + "0" * 19, "0" * 32, "7" * 31])
def test_other_ids_tell_no_time(id):
    assert time_of_id(id) is None


@given(st.binary(min_size=10, max_size=10))
def test_randomness_is_kept_but_for_version_and_variant(entropy):
    made = bytes.fromhex(uuid7(0, entropy))[6:]
    mask = bytes([0x0F, 0xFF, 0x3F] + [0xFF] * 7)
    assert [a & m for a, m in zip(made, mask, strict=True)] == [
        a & m for a, m in zip(entropy, mask, strict=True)
    ]


def test_the_system_clock():
    clock: Clock = SystemClock()
    assert clock.mono() <= clock.mono()
    assert clock.wall() > 1_700_000_000
    ids = [clock.new_id() for _ in range(1000)]
    assert len({id[12:] for id in ids}) == 1000
    assert {(len(id), uuid.UUID(id).version, uuid.UUID(id).variant) for id in ids} == {
        (32, 7, uuid.RFC_4122)
    }
    assert int(ids[0][:12], 16) > 1_700_000_000_000


def test_a_frozen_clock_stands_still_until_told():
    clock: Clock = FrozenClock(wall=100.0, mono=7)
    assert (clock.wall(), clock.mono()) == (clock.wall(), clock.mono()) == (100.0, 7)
    clock.advance(1.5)
    assert (clock.wall(), clock.mono()) == (101.5, 1_500_000_007)


def test_frozen_ids_are_the_same_in_every_run_and_sortable():
    def ids():
        clock = FrozenClock()
        for _ in range(300):
            yield clock.new_id()
            clock.advance(0.0004)

    first = [*ids()]
    assert first == [*ids()]
    assert first == sorted(set(first))
    assert all(uuid.UUID(id).version == 7 for id in first)


def test_time_does_not_go_back():
    with pytest.raises(ValueError, match="go back"):
        FrozenClock().advance(-1)
