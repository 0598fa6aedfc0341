"""The keys of a tenant: random, wrapped by a master key, kept in the store as rows.

Versions above 0 are keys of values, of which the highest seals what is new. Version -N, and at
first 0, is the key of the look-up keys of entries that are sealed with version N or a later one.
Without these rows nothing of the tenant can be read.
"""

import secrets

from cryptography.exceptions import InvalidTag
from msgspec import Struct

from thoughtline.errors import SealError
from thoughtline.stores.sealing.ring import KEY_BYTES, KeyRing, MasterKey

LOOKUP_VERSION = 0
"""The version under which the first key of look-up keys is kept."""
MAX_VERSION = 0xFFFF
_MAX_FIRST = 0x4000
_PURPOSE = b"thoughtline: tenant keys"
_NONCE = 12


class KeyRow(Struct, frozen=True):
    """A wrapped key of a tenant, as a store keeps it."""

    tenant: str
    version: int
    master: str  # id of the master key that wraps it
    wrapped: bytes


def new_rows(tenant: str, master: MasterKey) -> tuple[KeyRow, ...]:
    """Make the first keys of a tenant.

    The versions begin anywhere: what is left of a tenant that was deleted, and came back, is not
    taken for its own.
    """
    first = 1 + secrets.randbelow(_MAX_FIRST)
    return tuple(new_row(tenant, version, master) for version in (LOOKUP_VERSION, first))


def new_row(tenant: str, version: int, master: MasterKey) -> KeyRow:
    """Make a key of a tenant."""
    return _wrap(tenant, version, master, secrets.token_bytes(KEY_BYTES))


def unwrap(row: KeyRow, ring: KeyRing) -> bytes:
    """Return the key of a row. Raises `SealError`, which says which master key is missing."""
    master = ring.get(row.master)
    nonce, text = row.wrapped[:_NONCE], row.wrapped[_NONCE:]
    try:
        return master.cipher(_PURPOSE).decrypt(nonce, text, _bound(row))
    except (InvalidTag, ValueError):
        raise SealError(
            f"the key {row.master} of the ring (fingerprint {master.fingerprint}) is not the one "
            f"that this store was sealed with under that id, or the row of tenant {row.tenant!r} "
            "was altered; `thoughtline keys check` compares"
        ) from None


def rewrap(row: KeyRow, ring: KeyRing, master: MasterKey) -> KeyRow:
    """Return the same key, wrapped by another master key."""
    return _wrap(row.tenant, row.version, master, unwrap(row, ring))


def _wrap(tenant: str, version: int, master: MasterKey, key: bytes) -> KeyRow:
    nonce = secrets.token_bytes(_NONCE)
    empty = KeyRow(tenant, version, master.id, b"")
    text = master.cipher(_PURPOSE).encrypt(nonce, key, _bound(empty))
    return KeyRow(tenant, version, master.id, nonce + text)


def _bound(row: KeyRow) -> bytes:
    """What a wrapped key is bound to: it opens for this tenant, version and master key only."""
    tenant, master = row.tenant.encode("utf-8", "surrogatepass"), row.master.encode()
    return b"%d:%b%d:%b%d" % (len(tenant), tenant, len(master), master, row.version)
