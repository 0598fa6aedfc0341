"""The cipher of a connection to a sealed file: each value with the keys of its tenant.

The keys are read with the connection itself, once for each piece of work (`renew`): what another
process has deleted or replaced is not used a moment longer.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from thoughtline.errors import Damaged, KeyGone
from thoughtline.stores.row import RowPlace
from thoughtline.stores.sealing.cipher import TenantCipher, key_gone
from thoughtline.stores.sealing.envelope import is_sealed
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sqlite import key_tables
from thoughtline.stores.sqlite.key_tables import FileState

if TYPE_CHECKING:
    from thoughtline.stores.sqlite.connection import Connection


_UNKNOWN = FileState("", 1, -1)


class SealingCipher:
    """Seals what a connection writes, and opens what it reads; plain values are read as they are.

    A connection has one user at a time, and so has its cipher.
    """

    def __init__(self, db: "Connection", keychain: Keychain) -> None:
        self._db = db
        self._keychain = keychain
        self._known: dict[str, TenantCipher | None] = {}
        self._held: dict[str, TenantCipher] = {}
        self._state = _UNKNOWN  # as it was when the keys were read
        self._checked = False  # whether that is the state of this piece of work

    @property
    def seals(self) -> bool:
        """Whether what is written is sealed."""
        return self._keychain.seals

    def renew(self) -> None:
        """Begin another piece of work: whether keys have changed is asked when one is needed."""
        self._checked = False

    def is_current(self, state: object) -> bool:
        """Whether keys are as they were when they were read; takes note of the state that is."""
        self._checked = True
        if state == self._state:
            return True
        assert isinstance(state, FileState)  # noqa: S101 (`key_tables` made it)
        self._state = state
        self._keychain.primary = state.master
        self._known.clear()
        return False

    def hold(self, tenant: str) -> None:
        """Keep the keys of a tenant that are about to be deleted, to delete the rest of it."""
        if (found := self._of(tenant)) is not None:
            self._held[tenant] = found

    def release(self, tenant: str) -> None:
        """Drop the keys of a tenant."""
        self._held.pop(tenant, None)

    def seal(self, value: bytes, place: RowPlace, column: str) -> bytes:
        """Seal a value, if that is switched on."""
        if not self._keychain.seals:
            return value
        cipher = self._sealing(place.tenant)
        return cipher.seal(value, place.session, place.row, column)

    def open(self, value: bytes, place: RowPlace, column: str) -> bytes:
        """Open a value, or return a plain one."""
        if not is_sealed(value):
            if self._keychain.requires and value:
                raise Damaged(
                    "a row is plain, and `store.require_sealed` is set; `thoughtline keys "
                    "re-encrypt` seals what is plain"
                )
            return value
        where = (place.session, place.row, column)
        for cipher in self._ciphers(place.tenant):
            try:
                return cipher.open(value, *where)
            except KeyGone:
                continue
        raise key_gone(place.tenant)

    def reseal(self, value: bytes, place: RowPlace, column: str, *, version: int) -> bytes:
        """Seal a value with the key of the one whose place it takes; a plain one stays plain."""
        if not version:
            return value
        cipher = self._sealing(place.tenant)
        return cipher.seal(value, place.session, place.row, column, version)

    def blind(self, tenant: str, names: Sequence[bytes]) -> list[bytes]:
        """Return what names are filed under that are new."""
        if not self._keychain.seals:
            return list(names)
        return self._sealing(tenant).blind(names)

    def asked(
        self, tenant: str, names: Sequence[bytes], *, check: bool = True
    ) -> dict[bytes, bytes]:
        """Return what names may be filed under: blinded, and plain while something may be plain."""
        known = self._known.get(tenant)
        cipher = known if known is not None and not check else self._of(tenant)
        found = {} if cipher is None else dict(zip(cipher.asked(names), cycle(names), strict=False))
        if cipher is None or (self._state.plain and not self._keychain.requires):
            found |= {name: name for name in names}
        return found

    def filed(self, tenant: str, names: Sequence[bytes], *, version: int) -> list[bytes]:
        """Return what names are filed under that are there already, sealed or plain."""
        if not version:
            return list(names)
        ciphers = [one for one in (self._of(tenant), self._held.get(tenant)) if one is not None]
        return [
            name
            for cipher in ciphers
            if cipher.has(version)
            for name in cipher.blind(names, version)
        ]

    def _ciphers(self, tenant: str) -> Iterator[TenantCipher]:
        """Yield what may open a value of a tenant: its keys, those that came since, those held."""
        if (found := self._of(tenant)) is not None:
            yield found
        self._checked = False
        if (found := self._of(tenant)) is not None:
            yield found
        if tenant in self._held:
            yield self._held[tenant]

    def _of(self, tenant: str) -> TenantCipher | None:
        if not self._checked:
            self.is_current(key_tables.file_state(self._db))
        if tenant not in self._known:
            self._known[tenant] = key_tables.cipher(self._db, self._keychain, tenant)
        return self._known[tenant]

    def _sealing(self, tenant: str) -> TenantCipher:
        found = self._of(tenant)
        if found is None:
            found = key_tables.sealing_cipher(self._db, self._keychain, tenant)
            self._known[tenant] = found
            self._state = _UNKNOWN  # the keys may be rolled back: the next work reads them again
        return found
