"""The ciphers of a process follow the rows of the store; lines beside a store name their key."""

import pytest

from thoughtline.errors import SealError
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.sealing.tenant_keys import new_row, new_rows, rewrap

ONE, TWO = MasterKey("one", b"1" * 32), MasterKey("two", b"2" * 32)
RING = KeyRing([ONE, TWO])


def test_a_cipher_is_made_once_for_the_same_rows():
    chain, rows = Keychain(RING), new_rows("T", ONE)
    assert chain.cipher("T", rows) is chain.cipher("T", list(rows))
    changed = [*rows, new_row("T", 0x8000, TWO)]
    assert chain.cipher("T", changed).version == 0x8000


def test_what_was_wrapped_again_opens_what_was_sealed_before():
    chain, rows = Keychain(RING), new_rows("T", ONE)
    sealed = chain.cipher("T", rows).seal(b"x", "s", "b", "memo")
    again = chain.cipher("T", [rewrap(row, RING, TWO) for row in rows])
    assert again.open(sealed, "s", "b", "memo") == b"x"


def test_rows_that_are_not_complete_are_refused():
    for rows in ([], new_rows("T", ONE)[:1], new_rows("T", ONE)[1:]):
        with pytest.raises(SealError, match="not complete"):
            Keychain(RING).cipher("T", rows)


def test_more_tenants_than_are_held():
    chain, rows = Keychain(RING), {}
    for n in range(1100):
        rows[n] = new_rows(f"t{n}", ONE)
        chain.cipher(f"t{n}", rows[n])
    assert chain.cipher("t0", rows[0]).tenant == "t0"


def test_a_line_beside_the_store_names_its_key():
    id, sealed = Keychain(RING).seal_line(b"a batch")
    assert id == "two" and b"a batch" not in sealed
    assert Keychain(KeyRing([TWO])).open_line(id, sealed) == b"a batch"
    with pytest.raises(SealError, match="the key two is not in the ring"):
        Keychain(KeyRing([ONE])).open_line(id, sealed)
    for wrong in (sealed[:-1], b""):
        with pytest.raises(SealError, match="altered"):
            Keychain(RING).open_line(id, wrong)
