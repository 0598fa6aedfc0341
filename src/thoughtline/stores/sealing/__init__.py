"""Sealing: what a store writes is encrypted per value, under keys per tenant.

A ring of master keys (`ring`), which the operator holds, wraps random keys of each tenant
(`tenant_keys`), which the store holds; with those a `TenantCipher` seals values and blinds look-up
keys. Nothing here touches a store: the stores do, at their row boundary.
What a plain store needs of it, the form of a sealed value, is in `envelope`; the rest imports the
library of ciphers, and only a process that has keys imports that.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from thoughtline.errors import SealError
from thoughtline.stores.base import Store

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain
    from thoughtline.stores.sealing.ring import KeyRing
    from thoughtline.stores.sealing.vault import KeyVault

GIVE_KEYS = (
    "name them in `store.keys` (or $THOUGHTLINE_STORE__KEYS), for example file:thoughtline.keys, "
    "or give the settings that do with `--config`"
)
"""What to do about a sealed store that is opened without its keys."""


def open_keychain(
    source: str, env: Mapping[str, str], *, seals: bool = True, requires: bool = False
) -> "Keychain | None":
    """Read the keys that a source names (see `sources`); None where it names none."""
    if not source:
        return None
    from thoughtline.stores.sealing.keychain import Keychain
    from thoughtline.stores.sealing.sources import read_ring

    return Keychain(read_ring(source, env), seals=seals, requires=requires)


def vault_of(store: Store) -> "KeyVault":
    """Return the keys of a store; raises `SealError` for one that cannot be sealed."""
    from thoughtline.stores.memory import MemoryStore
    from thoughtline.stores.sealing.vault import VaultStore

    if isinstance(store, MemoryStore) or not isinstance(store, VaultStore):
        raise SealError("a store in memory is not sealed: nothing of it is written to disk")
    return store.vault


async def refuse_lost(vault: "KeyVault", ring: "KeyRing") -> None:
    """Raise `SealError`, which names them, where a store needs keys that are not in the ring."""
    from thoughtline.stores.sealing.administration import lost_keys

    if problems := await lost_keys(vault, ring):
        raise SealError("; ".join(problems))
