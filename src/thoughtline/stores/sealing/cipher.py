"""Seals the values of one tenant, opens them, and blinds its look-up keys.

A sealed value is a format byte, two bytes with the version of the tenant's key, a nonce, the
ciphertext and its tag: 31 bytes more than the plain one. It is bound to the tenant, the session,
the batch (or what a store has in its place) and the column, so that it opens nowhere else. Each
session has a key of its own, derived from the tenant's: random nonces never come near their limit.

A look-up key is blinded by AES: four bytes from the block of its first four, twelve from the block
of the whole. Keys that share their beginning still do, so an index keeps them on one page.
The key for that may be replaced: one serves the entries that are sealed with a certain version of
the key of values, and with later ones. So an entry's memo says under which names it is filed.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from struct import iter_unpack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from thoughtline.errors import Damaged, KeyGone
from thoughtline.log.keys import KEY_SIZE, SHARED_BYTES
from thoughtline.stores.sealing.envelope import (
    FORMAT,
    HEAD,
    NONCE,
    OVERHEAD,
    is_sealed,
    key_version,
)

_SESSIONS = 4096  # whose ciphers are held ready

_PAD = bytes(KEY_SIZE - SHARED_BYTES)
_HEADS = f"{SHARED_BYTES}s{KEY_SIZE - SHARED_BYTES}x"
_TAILS = f"{KEY_SIZE - SHARED_BYTES}s{SHARED_BYTES}x"


def key_gone(tenant: str) -> KeyGone:
    """Return the error for a value whose key the store does not have."""
    return KeyGone(
        f"the key of a value of tenant {tenant!r} was deleted: the value cannot be read any more"
    )


class TenantCipher:
    """The keys of one tenant, ready to be used; safe to share between threads."""

    def __init__(
        self, tenant: str, lookup_keys: Mapping[int, bytes], keys: Mapping[int, bytes]
    ) -> None:
        """Hold the keys of values by version, and those of look-up keys by the first they serve."""
        self.tenant = tenant
        self.version = max(keys)
        self._keys = dict(keys)
        self._blinders = [
            (since, Blinder(lookup_keys[since])) for since in sorted(lookup_keys, reverse=True)
        ]
        self._bound = _sized(tenant)
        self._sessions: dict[tuple[int, str], tuple[AESGCM, bytes]] = {}

    def seal(
        self, value: bytes, session: str, batch: str, column: str, version: int | None = None
    ) -> bytes:
        """Seal a value for this place only, with the newest key or with that of a version."""
        version = version or self.version
        cipher, bound = self._of_session(version, session)
        nonce = os.urandom(NONCE)
        bound = b"%b%b%b" % (bound, _sized(batch), column.encode())
        text = cipher.encrypt(nonce, value, bound)
        return b"%b%b%b%b" % (FORMAT, version.to_bytes(2, "big"), nonce, text)

    def open(self, value: bytes, session: str, batch: str, column: str) -> bytes:
        """Open a value that was sealed for this place. Raises `Damaged` for any other."""
        if not is_sealed(value) or len(value) < OVERHEAD:
            raise Damaged(f"a value ({column}) is not one that was sealed")
        cipher, bound = self._of_session(key_version(value), session)
        bound = b"%b%b%b" % (bound, _sized(batch), column.encode())
        start = HEAD + NONCE
        try:
            return cipher.decrypt(value[HEAD:start], value[start:], bound)
        except InvalidTag:
            raise Damaged(
                f"a value ({column}) was altered, or put there from elsewhere: it does not open"
            ) from None

    def has(self, version: int) -> bool:
        """Whether a key of values is there."""
        return version in self._keys

    def blind(self, keys: Sequence[bytes], version: int | None = None) -> list[bytes]:
        """Return the names of look-up keys, of an entry that is sealed with a version."""
        for since, blinder in self._blinders:
            if version is None or since <= version:
                return blinder.blind(keys)
        return []

    def asked(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return all names that look-up keys may have, those of the newest key first."""
        blinders = self._blinders
        if len(blinders) == 1:
            return blinders[0][1].blind(keys)
        return [name for _, blinder in blinders for name in blinder.blind(keys)]

    def _of_session(self, version: int, session: str) -> tuple[AESGCM, bytes]:
        place = (version, session)
        found = self._sessions.get(place)
        if found is None:
            key = self._keys.get(version)
            if key is None:
                raise key_gone(self.tenant)
            bound = b"%b%b" % (self._bound, _sized(session))
            derived = blake2b(bound, key=key, digest_size=32).digest()
            found = (AESGCM(derived), bound)
            if len(self._sessions) >= _SESSIONS:
                self._sessions.clear()
            self._sessions[place] = found
        return found


class Blinder:
    """Makes names of look-up keys, with one key; safe to share between threads."""

    def __init__(self, key: bytes) -> None:
        self._blocks_key = blake2b(b"look-up keys", key=key, digest_size=32).digest()
        self._words_key = blake2b(b"words", key=key, digest_size=32).digest()
        self._threads = threading.local()

    def blind(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the names of these look-up keys; other words are hashed as a whole."""
        if not keys:
            return []
        if any(len(key) != KEY_SIZE for key in keys):
            return [self._blind_one(key) for key in keys]
        block = self._block_cipher()
        heads = block.update(b"".join([key[:SHARED_BYTES] + _PAD for key in keys]))
        tails = block.update(b"".join(keys))
        pairs = zip(iter_unpack(_HEADS, heads), iter_unpack(_TAILS, tails), strict=True)
        return [head + tail for (head,), (tail,) in pairs]

    def _blind_one(self, key: bytes) -> bytes:
        if len(key) == KEY_SIZE:
            return self.blind([key])[0]
        return blake2b(key, key=self._words_key, digest_size=KEY_SIZE).digest()

    def _block_cipher(self) -> CipherContext:
        """Return AES itself; a context is not for two threads at once."""
        found: CipherContext | None = getattr(self._threads, "block", None)
        if found is None:
            # One block at a time of what is a hash already: equal keys have to stay equal.
            mode = modes.ECB()  # noqa: S305
            found = self._threads.block = Cipher(algorithms.AES(self._blocks_key), mode).encryptor()
        return found


def _sized(text: str) -> bytes:
    """Return a text with its length, so that no two sequences of texts are the same bytes."""
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)
