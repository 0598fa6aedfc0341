"""Sealing: what a store writes is encrypted per value, under keys per tenant.

A ring of master keys (`ring`), which the operator holds, wraps random keys of each tenant
(`tenant_keys`), which the store holds; with those a `TenantCipher` seals values and blinds look-up
keys. Nothing here touches a store: the stores do, at their row boundary.
What a plain store needs of it, the form of a sealed value, is in `envelope`; the rest imports the
library of ciphers, and only a process that has keys imports that.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

KINDS = ("file:", "env:", "exec:")
EXPECTED = 'expected "file:PATH", "env:NAME" or "exec:COMMAND"'


def is_source(text: str) -> bool:
    """Whether a text says where keys are."""
    return any(text.startswith(kind) and text.removeprefix(kind).strip() for kind in KINDS)


def open_keychain(
    source: str, env: Mapping[str, str], *, seals: bool = True, requires: bool = False
) -> "Keychain | None":
    """Read the keys that a source names (see `sources`); None where it names none."""
    if not source:
        return None
    from thoughtline.stores.sealing.keychain import Keychain
    from thoughtline.stores.sealing.sources import read_ring

    return Keychain(read_ring(source, env), seals=seals, requires=requires)
