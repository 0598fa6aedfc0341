"""Which store a URL names.

`memory://` keeps nothing; `sqlite:///file.db` is a path relative to the working directory,
`sqlite:////var/lib/file.db` an absolute one (three slashes and four, as in SQLAlchemy). Options
follow a question mark: `?synchronous=full&timeout=10`.
"""

from urllib.parse import parse_qsl

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.stores.base import Store
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore

SUPPORTED = "memory://, sqlite:///relative/path.db or sqlite:////absolute/path.db"
OPTIONS = ("synchronous", "timeout")


def open_store(url: str, *, clock: Clock | None = None) -> Store:
    """The store of a URL. Nothing is opened yet: a store opens its file when it is used."""
    address, _, query = url.partition("?")
    if address == "memory://" and not query:
        return MemoryStore(clock)
    path = address.removeprefix("sqlite:///")
    if path == address or not path or path.endswith("/"):
        scheme = url.partition(":")[0]  # and no more: the rest may hold a password
        raise StoreError(f"a {scheme!r} URL like this one names no store; use {SUPPORTED}")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise StoreError(f"{name!r} is no option of a store; use {' or '.join(OPTIONS)}")
    try:
        timeout = float(options.get("timeout", 5.0))
    except ValueError:
        raise StoreError("the timeout of a store is a number of seconds") from None
    synchronous = options.get("synchronous", "normal")
    return SqliteStore(path, clock=clock, synchronous=synchronous, timeout=timeout)
