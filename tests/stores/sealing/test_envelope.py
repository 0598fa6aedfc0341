"""A sealed value says that it is one, and by which version of the key."""

from thoughtline.stores.sealing.cipher import TenantCipher
from thoughtline.stores.sealing.envelope import OVERHEAD, is_sealed, key_version


def test_a_value_says_its_format_and_key_and_is_31_bytes_longer():
    sealed = TenantCipher("T", {0: b"n" * 32}, {258: b"k" * 32}).seal(b"thought", "s", "b", "memo")
    assert is_sealed(sealed) and key_version(sealed) == 258
    assert len(sealed) - len(b"thought") == OVERHEAD == 31
    assert b"thought" not in sealed
    assert not is_sealed(b'{"a": 1}') and not is_sealed(b"")
