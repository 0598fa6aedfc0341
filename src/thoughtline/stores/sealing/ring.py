"""The ring of master keys: 32 random bytes each, known by an id.

Its text is one `ID:KEY` per word, the key in base64; what follows a `#` on a line is a comment. The
same text lies in a file, stands in a variable, or is printed by a command. The order does not
matter: which key wraps what is new is written in the store, so that all processes agree.
"""

import base64
import binascii
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from thoughtline.errors import SealError

KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-|$)")
_EXPECTED = "expected `ID:KEY`, as `thoughtline keys generate` prints it"


class MasterKey:
    """A master key: used and never shown."""

    __slots__ = ("_ciphers", "_secret", "id")

    def __init__(self, id: str, secret: bytes) -> None:
        if not _ID.fullmatch(id):
            raise SealError(
                f"{id!r} cannot be the id of a key; use letters, digits, `.`, `_` and `-`"
            )
        if len(secret) != KEY_BYTES:
            raise SealError(f"the key {id} has {len(secret)} bytes, expected {KEY_BYTES}")
        self.id = id
        self._secret = secret
        self._ciphers: dict[bytes, AESGCM] = {}

    def cipher(self, purpose: bytes) -> AESGCM:
        """Return the cipher of this key for one purpose."""
        found = self._ciphers.get(purpose)
        if found is None:
            derived = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose)
            found = self._ciphers[purpose] = AESGCM(derived.derive(self._secret))
        return found

    @property
    def fingerprint(self) -> str:
        """Eight letters that tell two keys of one id apart, and say nothing about them."""
        return blake2b(b"fingerprint", key=self._secret, digest_size=4).hexdigest()

    @property
    def made(self) -> datetime | None:
        """The day it was made, where its id begins with one."""
        found = _DAY.match(self.id)
        try:
            return datetime.fromisoformat(found[1]).replace(tzinfo=UTC) if found else None
        except ValueError:
            return None

    def line(self) -> str:
        """Return the key as it stands in a ring; never for a log line."""
        return f"{self.id}:{base64.b64encode(self._secret).decode()}"

    def __repr__(self) -> str:
        return f"MasterKey({self.id!r})"


class KeyRing:
    """Master keys by id."""

    def __init__(self, keys: Iterable[MasterKey]) -> None:
        self._keys: dict[str, MasterKey] = {}
        for key in keys:
            if key.id in self._keys:
                raise SealError(f"the ring has two keys called {key.id}; remove one of them")
            self._keys[key.id] = key
        if not self._keys:
            raise SealError(f"the ring has no key; {_EXPECTED}")

    @classmethod
    def parse(cls, text: str) -> "KeyRing":
        """Read a ring; an error names the place and never the key."""
        words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
        return cls(_parse_key(nth, word) for nth, word in enumerate(words, 1))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in the order of the ring."""
        return tuple(self._keys)

    @property
    def newest(self) -> MasterKey:
        """The key that stands last: `keys generate` adds at the end."""
        return self._keys[self.ids[-1]]

    def __contains__(self, id: object) -> bool:
        return id in self._keys

    def get(self, id: str) -> MasterKey:
        """Return a key; raises `SealError`, which names it, when it is not there."""
        found = self._keys.get(id)
        if found is None:
            raise SealError(
                f"the key {id} is not in the ring (it has {', '.join(self.ids)}), and what is "
                "stored is sealed with it; put it back into what `store.keys` names"
            )
        return found

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self.ids)})"


def new_key(taken: Iterable[str] = (), *, now: datetime | None = None) -> MasterKey:
    """Make a key whose id begins with today's date."""
    day, others = (now or datetime.now(UTC)).date().isoformat(), set(taken)
    while True:
        id = f"{day}-{secrets.token_hex(2)}"
        if id not in others:
            return MasterKey(id, secrets.token_bytes(KEY_BYTES))


def _parse_key(nth: int, word: str) -> MasterKey:
    id, colon, text = word.partition(":")
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not colon or not _ID.fullmatch(id) or len(secret) != KEY_BYTES:
        raise SealError(
            f"key {nth} of the ring is not one of {KEY_BYTES} bytes in base64; {_EXPECTED}"
        )
    return MasterKey(id, secret)
