"""Stores: where sessions and the look-up index are kept, behind one port (`base.Store`).

`open_store` opens the store of a URL. `memory://` is not written to disk; `sqlite:///file.db` is a
path relative to the working directory, `sqlite:////var/lib/file.db` an absolute one (three slashes
and four, as in SQLAlchemy). Options follow a question mark: `?synchronous=full&timeout=10`.
`postgresql://user:password@host:5432/database` is a database that many machines share; its options
are those of PostgreSQL, and `?prepared=off`.
"""

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.stores.base import Store
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

SUPPORTED = (
    "memory://, sqlite:///relative/path.db or sqlite:////absolute/path.db, "
    "or postgresql://user:password@host:5432/database"
)
SHARED = ("postgresql://", "postgres://")
"""How the URL of a store begins that many machines share."""
OPTIONS = ("synchronous", "timeout")


def is_shared(url: str) -> bool:
    """Whether a URL is that of a store that many machines share."""
    return url.startswith(SHARED)


def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    fingerprint: bytes = b"",
    upgrade: bool = True,
    keychain: "Keychain | None" = None,
) -> Store:
    """Make the store of a URL; it opens its file, or connects, when it is used.

    `fingerprint` is that of the secret behind the names of tenants: a shared store is refused that
    belongs to another one. `upgrade`: whether the tables of a shared store are brought up to date.
    With a `keychain`, what is written is sealed.
    """
    if is_shared(url):
        return _open_shared(
            url, clock=clock, fingerprint=fingerprint, upgrade=upgrade, keychain=keychain
        )
    address, _, query = url.partition("?")
    if address == "memory://" and not query:
        return MemoryStore(clock)
    path = address.removeprefix("sqlite:///")
    if path == address or not path or path.endswith("/"):
        scheme = url.partition(":")[0]  # without the rest: that may hold a password
        raise StoreError(f"this {scheme!r} URL names no store; expected {SUPPORTED}")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise StoreError(f"{name!r} is not an option of a store; use {' or '.join(OPTIONS)}")
    try:
        timeout = float(options.get("timeout", 5.0))
    except ValueError:
        raise StoreError("the `timeout` of a store must be a number of seconds") from None
    synchronous = options.get("synchronous", "normal")
    return SqliteStore(
        path, clock=clock, synchronous=synchronous, timeout=timeout, keychain=keychain
    )


def _open_shared(
    url: str,
    *,
    clock: Clock | None,
    fingerprint: bytes,
    upgrade: bool,
    keychain: "Keychain | None",
) -> Store:
    try:
        from thoughtline.stores.postgres import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(
            "a postgresql:// store needs the package asyncpg: install it beside Thoughtline"
        ) from None
    return PostgresStore(
        url, clock=clock, fingerprint=fingerprint, upgrade=upgrade, keychain=keychain
    )
