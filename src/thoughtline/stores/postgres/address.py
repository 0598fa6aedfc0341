"""Where the database is, by a `postgresql://` URL, and how it is connected to."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from thoughtline.errors import StoreError

CONNECT_TIMEOUT = 5.0


def _hosts(location: str) -> list[str]:
    """The servers that a URL names, in order; raises `ValueError` for a port that is none."""
    named = [urlsplit(f"//{one}") for one in location.rpartition("@")[2].split(",")]
    return [f"{one.hostname or 'localhost'}:{one.port or 5432}" for one in named]


class Address:
    """A URL, with our own options taken out of it.

    It may name several servers, separated by commas: the one that takes writes is used.
    `prepared=off` does without prepared statements, for a pgbouncer before 1.21. All other options
    are PostgreSQL's own.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            hosts = _hosts(parts.netloc)
            options = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:  # it quotes the URL, which may hold a password
            raise StoreError(
                "this postgresql URL cannot be read; expected postgresql://user:password@host:5432/"
                "database, where other characters than letters and digits are written as %2F"
            ) from None
        prepared = options.pop("prepared", "on")
        if prepared not in ("on", "off"):
            raise StoreError("the option `prepared` of a postgresql URL is `on` or `off`")
        if not parts.path.strip("/") and "dbname" not in options and "database" not in options:
            raise StoreError(
                "this postgresql URL names no database; "
                "expected postgresql://user:password@host:5432/database"
            )
        self.prepared = prepared == "on"
        options.setdefault("target_session_attrs", "read-write")
        self._dsn = urlunsplit(parts._replace(query=urlencode(options)))
        name = parts.path.strip("/") or options.get("dbname", "")
        self.label = f"{','.join(hosts)}/{name}"

    def __repr__(self) -> str:
        return f"<Address {self.label}>"

    async def connect(self) -> asyncpg.Connection:
        """Open a connection."""
        return await asyncpg.connect(
            self._dsn, timeout=CONNECT_TIMEOUT, statement_cache_size=100 if self.prepared else 0
        )
