"""The wrapped keys of tenants in the file, and which master key wraps what is new.

Everything here runs with a connection, inside the transaction of its caller: keys that are read
beside the values are those that the values were sealed with.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from thoughtline.errors import SealError
from thoughtline.stores.row import PLAIN
from thoughtline.stores.sealing import GIVE_KEYS
from thoughtline.stores.sqlite.connection import Connection

if TYPE_CHECKING:
    from thoughtline.stores.sealing.cipher import TenantCipher
    from thoughtline.stores.sealing.keychain import Keychain
    from thoughtline.stores.sealing.tenant_keys import KeyRow
    from thoughtline.stores.sealing.vault import SealState

_NOT_SEALED = '["",'
_STATE = "SELECT json_array(master, plain, changes) FROM sealing"
_PRIMARY = """
UPDATE sealing SET
    plain = CASE WHEN master = '' THEN EXISTS (SELECT 1 FROM sessions) ELSE plain END,
    master = ?, changes = changes + 1
"""
_OF_TENANT = "SELECT version, master, wrapped FROM tenant_keys WHERE tenant = ? ORDER BY version"
_OF_ALL = "SELECT tenant, version, master, wrapped FROM tenant_keys ORDER BY tenant, version"
_WRAPPED_BY = "SELECT tenant, version, master, wrapped FROM tenant_keys WHERE master = ? LIMIT 1"
_NEWEST = "SELECT max(version) FROM tenant_keys WHERE tenant = ?"
_ADD = "INSERT INTO tenant_keys (tenant, version, master, wrapped) VALUES (?, ?, ?, ?)"
_REPLACE = """
UPDATE tenant_keys SET master = ?, wrapped = ? WHERE tenant = ? AND version = ? AND wrapped = ?
"""
_DROP = "DELETE FROM tenant_keys WHERE tenant = ? AND version = ? AND wrapped = ?"


class FileState(NamedTuple):
    """Whether a file is sealed, and how often its keys were changed."""

    master: str  # the key that wraps what is new; empty: nothing is sealed
    plain: int  # whether some of it may be plain
    changes: int


_file_state = msgspec.json.Decoder(FileState)


def file_state(db: Connection) -> FileState:
    """Return the state of the file."""
    return _file_state.decode(db.execute(_STATE).fetchone()[0])


def read_state(db: Connection) -> "SealState":
    """Return whether the file is sealed, and with what."""
    from thoughtline.stores.sealing.vault import SealState

    state = file_state(db)
    return SealState(primary=state.master, plain=bool(state.plain))


def set_primary(db: Connection, id: str) -> None:
    """Say which master key wraps what is new; what was written before the first one is plain."""
    db.execute(_PRIMARY, (id,))


def set_plain(db: Connection, *, plain: bool) -> None:
    """Note whether there may be plain values."""
    db.execute("UPDATE sealing SET plain = ?, changes = changes + 1", (int(plain),))


def read_rows(db: Connection, tenant: str) -> "list[KeyRow]":
    """Return the wrapped keys of a tenant."""
    from thoughtline.stores.sealing.tenant_keys import KeyRow

    return [KeyRow(tenant, *row) for row in db.execute(_OF_TENANT, (tenant,)).fetchall()]


def read_all(db: Connection) -> "list[KeyRow]":
    """Return the wrapped keys of all tenants."""
    from thoughtline.stores.sealing.tenant_keys import KeyRow

    return [KeyRow(*row) for row in db.execute(_OF_ALL).fetchall()]


def cipher(db: Connection, keychain: "Keychain", tenant: str) -> "TenantCipher | None":
    """Return the cipher of a tenant; None for one that has no keys: nothing of it is sealed."""
    found = read_rows(db, tenant)
    return keychain.cipher(tenant, found) if found else None


def sealing_cipher(db: Connection, keychain: "Keychain", tenant: str) -> "TenantCipher":
    """Return the cipher that seals what is written; makes the keys of a tenant that is new."""
    from thoughtline.stores.sealing.tenant_keys import KeyRow, new_rows, unwrap

    found = read_rows(db, tenant)
    if not found:
        primary = read_state(db).primary
        if not primary:
            primary = keychain.ring.newest.id
            set_primary(db, primary)
        for row in db.execute(_WRAPPED_BY, (primary,)).fetchall():
            unwrap(KeyRow(*row), keychain.ring)  # another key of this id would lock others out
        _insert(db, new_rows(tenant, keychain.ring.get(primary)))
        found = read_rows(db, tenant)
    return keychain.cipher(tenant, found)


def add_rows(db: Connection, rows: "Sequence[KeyRow]") -> int:
    """Write keys that are newer than those that a tenant has; returns how many.

    A tenant that has none was deleted meanwhile, and gets none.
    """
    newest = {tenant: db.execute(_NEWEST, (tenant,)).fetchone()[0] for tenant in _tenants(rows)}
    fresh = [
        row
        for row in rows
        if newest[row.tenant] is not None and abs(row.version) > newest[row.tenant]
    ]
    _insert(db, fresh)
    return len(fresh)


def _insert(db: Connection, rows: "Iterable[KeyRow]") -> None:
    for row in rows:
        db.execute(_ADD, (row.tenant, row.version, row.master, row.wrapped))


def _tenants(rows: "Iterable[KeyRow]") -> set[str]:
    return {row.tenant for row in rows}


def replace_rows(db: Connection, rows: "Sequence[tuple[KeyRow, KeyRow]]") -> int:
    """Replace rows that are still the same; returns how many."""
    return sum(
        db.execute(
            _REPLACE, (new.master, new.wrapped, old.tenant, old.version, old.wrapped)
        ).rowcount
        for old, new in rows
    )


def drop_rows(db: Connection, rows: "Iterable[KeyRow]") -> int:
    """Delete rows that are still the same; returns how many."""
    return sum(db.execute(_DROP, (row.tenant, row.version, row.wrapped)).rowcount for row in rows)


def drop_tenant(db: Connection, tenant: str) -> int:
    """Delete the keys of a tenant: nothing of it can be read any more.

    The connection holds them until `release_tenant`, to find what is filed under blinded names.
    """
    db.cipher.hold(tenant)
    return db.execute("DELETE FROM tenant_keys WHERE tenant = ?", (tenant,)).rowcount


def release_tenant(db: Connection, tenant: str) -> None:
    """Drop the keys of a deleted tenant."""
    db.cipher.release(tenant)


def clear(db: Connection) -> None:
    """Delete all keys: nothing is sealed any more."""
    db.execute("DELETE FROM tenant_keys")
    db.execute("UPDATE sealing SET master = '', plain = 0, changes = changes + 1")


def refuse_sealed(db: Connection, path: object) -> None:
    """Raise `SealError` for a process without keys, if the file is sealed."""
    if master := file_state(db).master:
        raise SealError(
            f"{path} is sealed with the key {master}, and no keys are given; {GIVE_KEYS}"
        )


def is_current(db: Connection, sealing: str) -> bool:
    """Whether keys are as the connection knows them; `sealing` is the state in JSON.

    Raises `SealError` where a process without keys finds that the file was sealed meanwhile.
    """
    if db.cipher is not PLAIN:
        return db.cipher.is_current(_file_state.decode(sealing))
    if not sealing.startswith(_NOT_SEALED):
        master = _file_state.decode(sealing).master
        raise SealError(f"the store was sealed with the key {master} meanwhile; {GIVE_KEYS}")
    return True


def check_writer(db: Connection, sealing: str = "") -> None:
    """Note that a sealed file gets something plain; a process without keys is refused.

    `sealing` is the state in JSON; it is read where it is not given.
    """
    sealing = sealing or db.execute(_STATE).fetchone()[0]
    is_current(db, sealing)
    if db.cipher is PLAIN or db.cipher.seals:
        return
    state = _file_state.decode(sealing)
    if state.master and not state.plain:
        set_plain(db, plain=True)
