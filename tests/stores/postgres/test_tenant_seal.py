"""What seals the rows of one tenant."""

import pytest

from stores.sealed_samples import keychain
from thoughtline.errors import KeyGone
from thoughtline.stores.postgres.tenant_seal import TenantSeal
from thoughtline.stores.sealing.envelope import FORMAT


def test_a_value_whose_key_was_deleted_says_whose_it_was():
    with pytest.raises(KeyGone, match="'acme' was deleted"):
        TenantSeal(b"acme", keychain=keychain()).open(FORMAT + bytes(40), b"s", b"r", "said")
