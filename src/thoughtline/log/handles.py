"""Handles: what a client of another dialect is given in place of a sealed thought.

A translated answer shows its thoughts in the client's dialect, where something opaque is expected
beside them. A handle stands there: it names the turn in the log, is bound to its tenant by a keyed
hash, and holds nothing of the thought. A client that echoes it says which turn it means. Handles
are plain base64, because some clients decode what stands there, and never go to a provider.
"""

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import blake2b

_MAGIC = b"\x7bTL\x01"
_TURN = 16
_MAC = 18  # so that nothing is padded, and every letter counts
_SIZE = len(_MAGIC) + _TURN + 1 + _MAC
_LENGTH = 4 * -(-_SIZE // 3)
_BEGINNING = b64encode(_MAGIC).decode()[:5]


class Handles:
    """Makes handles under one secret, and recognises them."""

    def __init__(self, secret: bytes) -> None:
        self._keyed = blake2b(key=secret[:64], digest_size=_MAC, person=b"handle")

    def make(self, tenant: str, turn: str, nth: int) -> str:
        """The handle of a turn's nth thought; the same one every time."""
        named = bytes.fromhex(turn)[:_TURN].ljust(_TURN, b"\0") + bytes([min(nth, 255)])
        return b64encode(_MAGIC + named + self._mac(tenant, named)).decode()

    def turn(self, tenant: str, handle: str) -> str:
        """The turn that a handle names; empty for what is not a handle of this tenant."""
        value = _decoded(handle)
        if len(value) != _SIZE or not value.startswith(_MAGIC):
            return ""
        named, mac = value[len(_MAGIC) : -_MAC], value[-_MAC:]
        return named[:_TURN].hex() if hmac.compare_digest(mac, self._mac(tenant, named)) else ""

    def _mac(self, tenant: str, named: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(named + tenant.encode())
        return keyed.digest()


def is_handle(value: str) -> bool:
    """Whether a value looks like a handle of any gateway: no provider can read it."""
    if len(value) != _LENGTH or not value.startswith(_BEGINNING):
        return False  # of nearly all values, at once
    decoded = _decoded(value)
    return len(decoded) == _SIZE and decoded.startswith(_MAGIC)


def _decoded(value: str) -> bytes:
    try:
        return b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except (NotBase64, ValueError):
        return b""
