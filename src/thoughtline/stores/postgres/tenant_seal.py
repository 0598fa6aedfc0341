"""Seals and opens what is stored of one tenant, and makes the names that its entries are found by.

A memo and the thoughts of a turn are bound to the tenant and to the entry's id, which is made of
session and turn; what else was said to the tenant, the session, the batch and the row.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thoughtline.errors import Damaged, KeyGone, SealError
from thoughtline.stores.postgres.rows import blind, call_name, tenant_mark
from thoughtline.stores.sealing import GIVE_KEYS
from thoughtline.stores.sealing.envelope import is_sealed, key_version

if TYPE_CHECKING:
    from thoughtline.stores.sealing.cipher import TenantCipher
    from thoughtline.stores.sealing.keychain import Keychain


class TenantSeal:
    """Seals and opens the rows of one tenant; without a cipher, all of it is plain."""

    def __init__(
        self,
        tenant: bytes,
        cipher: "TenantCipher | None" = None,
        *,
        keychain: "Keychain | None" = None,
        plain: bool = True,
        epoch: int = -1,
    ) -> None:
        self.tenant = tenant
        self.epoch = epoch
        self.cipher = cipher
        self._keychain = keychain
        self.plain = plain  # whether some of it may be plain

    def same_as(self, other: "TenantSeal") -> bool:
        """Whether another one has the same keys."""
        return self.cipher is other.cipher and self.plain == other.plain

    @property
    def seals(self) -> bool:
        """Whether what is written is sealed."""
        return self.cipher is not None and self._keychain is not None and self._keychain.seals

    @property
    def version(self) -> int:
        """The version of the key that seals; 0: there is none; -1: it is plain on purpose."""
        if self._keychain is not None and not self._keychain.seals:
            return -1
        return self.cipher.version if self.cipher is not None else 0

    def seal(self, value: bytes, session: bytes, row: bytes, column: str) -> bytes:
        """Return a value as it is stored."""
        if self.cipher is None or not self.seals:
            return value
        return self.cipher.seal(value, session.hex(), row.hex(), column)

    def seal_entry(self, value: bytes, id: bytes, column: str) -> bytes:
        """Return a value of an index entry as it is stored."""
        return self.seal(value, entry_group(id), id, column)

    def reseal_entry(self, value: bytes, id: bytes, column: str, *, version: int) -> bytes:
        """Return a value as it is stored in place of one that is sealed with a version, or plain.

        It stays as it was: the entry is filed as its memo says.
        """
        if not version:
            return value
        if self.cipher is None:
            raise self._key_gone()
        return self.cipher.seal(value, entry_group(id).hex(), id.hex(), column, version)

    def open(self, value: bytes, session: bytes, row: bytes, column: str) -> bytes:
        """Return a value as it was given."""
        if is_sealed(value):
            if self.cipher is None:
                if self._keychain is None:
                    raise SealError(f"a row is sealed; {GIVE_KEYS}")
                raise self._key_gone()
            return self.cipher.open(value, session.hex(), row.hex(), column)
        if self._keychain is not None and self._keychain.requires:
            raise Damaged(
                "a row is plain, and `store.require_sealed` is set; `thoughtline keys re-encrypt` "
                "seals what is plain"
            )
        return value

    def open_memo(self, id: bytes, memo: bytes) -> tuple[bytes, int]:
        """Return a memo as it was given, and the version it is sealed with."""
        version = key_version(memo)
        if version or self._requires:
            memo = self.open(memo, entry_group(id), id, "memo")
        return memo, version

    def open_thoughts(self, id: bytes, thoughts: Sequence[bytes]) -> Sequence[bytes]:
        """Return the thoughts of an entry as they were given."""
        return [self.open(one, entry_group(id), id, "thoughts") for one in thoughts]

    def names(
        self, keys: Sequence[bytes], calls: Sequence[str] = (), *, version: int
    ) -> list[bytes]:
        """Return the names of an entry that is sealed with a version, or plain."""
        if not version:
            return [*blind(self.tenant, keys), *(call_name(self.tenant, call) for call in calls)]
        if self.cipher is None or not self.cipher.has(version):
            return []
        mark, blinded = tenant_mark(self.tenant), self.cipher.blind(keys, version)
        if calls:
            blinded += self.cipher.blind(_call_words(calls), version)
        return [mark + name for name in blinded]

    def asked(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the names that look-up keys may have, all of one kind after all of another."""
        if self.cipher is None:
            return blind(self.tenant, keys)
        mark = tenant_mark(self.tenant)
        found = [mark + name for name in self.cipher.asked(keys)]
        if self.plain and not self._requires:
            found += blind(self.tenant, keys)
        return found

    def asked_calls(self, call: str) -> list[bytes]:
        """Return the names under which the entries of a tool call may be filed."""
        mark, plain = tenant_mark(self.tenant), [call_name(self.tenant, call)]
        if self.cipher is None:
            return plain
        return [*(mark + name for name in self.cipher.asked(_call_words([call]))), *plain]

    def _key_gone(self) -> KeyGone:
        from thoughtline.stores.sealing.cipher import key_gone

        return key_gone(self.tenant.decode())

    @property
    def _requires(self) -> bool:
        return self._keychain is not None and self._keychain.requires


def entry_group(id: bytes) -> bytes:
    """Return what an entry shares the key of its values with: one in 256 of its tenant's entries.

    A look-up does not know their sessions, and one key for all would seal more values than random
    nonces allow.
    """
    return id[:1]


def _call_words(calls: Sequence[str]) -> list[bytes]:
    return [b"call " + call.encode("utf-8", "surrogatepass") for call in calls]
