"""Keys of tenants: wrapped for one tenant, version and master key, and for nothing else."""

from itertools import product

import pytest
from msgspec.structs import replace

from thoughtline.errors import SealError
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sealing.tenant_keys import new_row, new_rows, rewrap, unwrap

ONE, TWO = MasterKey("one", b"1" * 32), MasterKey("two", b"2" * 32)
RING = KeyRing([ONE, TWO])


def test_a_tenant_begins_with_a_key_for_look_ups_and_one_for_values():
    rows = new_rows("T", ONE)
    assert rows[0].version == 0 < rows[1].version and {row.master for row in rows} == {"one"}
    keys = {unwrap(row, RING) for row in rows + new_rows("T", ONE)}
    assert len(keys) == 4 and all(len(key) == 32 for key in keys)
    assert all(key not in row.wrapped for key, row in product(keys, rows))


def test_a_key_that_is_wrapped_again_is_the_same_key():
    row = new_row("T", 3, ONE)
    other = rewrap(row, RING, TWO)
    assert other.master == "two" and unwrap(other, RING) == unwrap(row, RING)
    assert unwrap(other, KeyRing([TWO])) == unwrap(row, RING)


@pytest.mark.parametrize("change", [{"tenant": "U"}, {"version": 2}, {"master": "two"}])
def test_a_row_that_was_moved_does_not_open(change):
    with pytest.raises(SealError):
        unwrap(replace(new_row("T", 1, ONE), **change), RING)


def test_a_master_key_that_is_lost_or_another_one_is_named():
    row = new_row("T", 1, ONE)
    with pytest.raises(SealError, match="the key one is not in the ring"):
        unwrap(row, KeyRing([TWO]))
    with pytest.raises(SealError, match="the key one of the ring"):
        unwrap(row, KeyRing([MasterKey("one", b"x" * 32)]))
    with pytest.raises(SealError):
        unwrap(replace(row, wrapped=b""), RING)
