"""The ciphers of a process: unwrapped once, held for as long as the store has their rows.

A store reads a tenant's rows each time, which is cheap, and asks for the cipher of these rows. So a
key that was deleted or replaced elsewhere is not used a moment longer.
"""

import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag

from thoughtline.errors import SealError
from thoughtline.stores.sealing.cipher import TenantCipher
from thoughtline.stores.sealing.envelope import FORMAT, is_sealed
from thoughtline.stores.sealing.ring import KeyRing
from thoughtline.stores.sealing.tenant_keys import MAX_VERSION, KeyRow, unwrap

_HELD = 1024
_PURPOSE = b"thoughtline: spill files"
_NONCE = 12


class Keychain:
    """What a process needs to seal and to open: the ring, and ciphers made with it."""

    def __init__(self, ring: KeyRing, *, seals: bool = True, requires: bool = False) -> None:
        """Hold a ring.

        `seals`: what is written is sealed; otherwise it is only opened. `requires`: what is plain
        is refused.
        """
        self.ring = ring
        self.seals = seals
        self.requires = requires
        self.primary = ""  # the key that wraps what is new, as far as a store has told it
        self._ciphers: dict[str, tuple[tuple[bytes, ...], TenantCipher]] = {}

    def cipher(self, tenant: str, rows: Sequence[KeyRow]) -> TenantCipher:
        """Return the cipher of a tenant, of which the store has these rows."""
        marks = tuple(row.wrapped for row in rows)
        held = self._ciphers.get(tenant)
        if held is not None and held[0] == marks:
            return held[1]
        keys = {row.version: unwrap(row, self.ring) for row in rows}
        lookup_keys = {-version: key for version, key in keys.items() if version <= 0}
        keys = {version: key for version, key in keys.items() if version > 0}
        if not keys or min(lookup_keys, default=MAX_VERSION) > min(keys):
            raise SealError(f"the keys of tenant {tenant!r} are not complete in the store")
        made = TenantCipher(tenant, lookup_keys, keys)
        if len(self._ciphers) >= _HELD:
            self._ciphers.clear()
        self._ciphers[tenant] = (marks, made)
        return made

    def forget(self, tenant: str) -> None:
        """Drop a tenant's cipher."""
        self._ciphers.pop(tenant, None)

    # -- files beside a store --------------------------------------------------------------------

    def seal_line(self, text: bytes) -> tuple[str, bytes]:
        """Seal what waits beside a store that cannot be asked: returns the key's id and the rest.

        The tenant's keys are in the store, so this is sealed with a master key: with one that all
        processes have, as far as that is known.
        """
        master = self.ring.get(self.primary) if self.primary in self.ring else self.ring.newest
        nonce = secrets.token_bytes(_NONCE)
        return master.id, nonce + master.cipher(_PURPOSE).encrypt(nonce, text, master.id.encode())

    def seal_note(self, text: bytes) -> bytes:
        """Seal what nodes tell one another through a store; plain, if nothing is sealed."""
        if not self.seals:
            return text
        id, sealed = self.seal_line(text)
        return b"%b%b %b" % (FORMAT, id.encode(), sealed)

    def open_note(self, note: bytes) -> bytes:
        """Open what `seal_note` sealed."""
        if not is_sealed(note):
            return note
        _, _, sealed = note.partition(b" ")
        return self.open_line(note_key(note), sealed)

    def open_line(self, id: str, sealed: bytes) -> bytes:
        """Open what `seal_line` sealed."""
        cipher = self.ring.get(id).cipher(_PURPOSE)
        try:
            return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], id.encode())
        except (InvalidTag, ValueError):
            raise SealError(f"a line that was sealed with {id} was altered") from None


def note_key(note: bytes) -> str:
    """Return the id of the key that a note is sealed with; empty for a plain one."""
    return note[len(FORMAT) :].partition(b" ")[0].decode() if is_sealed(note) else ""
