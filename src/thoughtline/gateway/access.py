"""Who is it, and with which credential does the request go on.

Without configured client keys the client's own credential goes upstream, and its keyed hash is the
tenant. With them, a client shows its key here, and the upstream's configured key goes on in its
place: a client's gateway key never leaves. Credentials are compared in constant time and kept
only as keyed hashes.

Where no key is asked for, being on this machine counts as one, and so a browser on it could be used
by any web page that it shows: a page from elsewhere is a stranger, unless it was named.
"""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from msgspec import Struct

from thoughtline.settings import is_loopback

Headers = Sequence[tuple[bytes, bytes]]

CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key"})
"""Headers that hold a credential, in the dialects' various ways."""
_BROWSERS = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode"})
"""Headers in which a browser says which page asks."""


class Visitor(Struct, frozen=True, kw_only=True):
    """Somebody at the door."""

    tenant: str
    account: str = ""  # its own credential's fingerprint; empty when it was a gateway key
    client: str = ""  # the configured client's name


class Door:
    """Lets clients in and hands out credentials."""

    def __init__(
        self,
        secret: bytes,
        *,
        clients: Mapping[str, str] | None = None,
        admin_token: str = "",
        origins: Sequence[str] = (),
    ) -> None:
        self._keyed = blake2b(key=secret[:64], digest_size=16)
        self._clients = dict(clients or {})
        self._admin = admin_token
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def fingerprint(self, credential: str) -> str:
        """The keyed hash under which a credential is known; nothing for no credential."""
        if not credential:
            return ""
        made = self._keyed.copy()
        made.update(credential.encode())
        return made.hexdigest()

    def admit(self, headers: Headers, query: str) -> Visitor | None:
        """The visitor, or None for a stranger where keys are configured."""
        if not self._clients:
            found = _all(headers, query)
            one = found[0] if len(found) == 1 else "\n".join(dict.fromkeys(found))
            account = self.fingerprint(one)
            return Visitor(tenant=account, account=account)
        credential, name = shown(headers, query), ""
        for client, key in self._clients.items():  # every key is compared: no early way out
            if hmac.compare_digest(key.encode(), credential.encode()):
                name = client
        return Visitor(tenant=f"client:{name}", client=name) if name else None

    def stranger(self, headers: Headers) -> str:
        """The web page from elsewhere that asks through a browser; empty: nobody of that kind."""
        return "" if self._clients else self._page(headers)

    def _page(self, headers: Headers) -> str:
        said = {name: value for name, value in reversed(headers) if name in _BROWSERS}
        if not said or "*" in self._origins:
            return ""
        if b"origin" not in said:
            return _embedding(said)
        origin = said[b"origin"].decode("latin-1").strip().lower()
        trusted = origin in self._origins or _is_local(origin)
        return "" if trusted else origin[:100] or "nowhere"

    @property
    def guarded(self) -> bool:
        """Whether the administrator has a token."""
        return bool(self._admin)

    def admits_admin(self, headers: Headers, peer: str) -> bool:
        """Whether this is the administrator: by token, or on loopback when there is none.

        A web page cannot come in by pointing its own name at this machine, nor can others through
        a proxy that runs here: what was forwarded, or asked for by another name, is not local.
        """
        if self._admin:
            return hmac.compare_digest(self._admin.encode(), shown(headers, "").encode())
        if not (peer == "" or _is_loopback(peer)) or self._page(headers):
            return False
        known = {name: value.decode("latin-1") for name, value in headers}
        return not _FORWARDED & known.keys() and _is_loopback(_bare(known.get(b"host", "")))


def _embedding(said: Mapping[bytes, bytes]) -> str:
    """A page that fetches without saying its name, as for an image; who follows a link may come."""
    foreign = said.get(b"sec-fetch-site", b"").strip().lower() == b"cross-site"
    return "another site" if foreign and said.get(b"sec-fetch-mode") != b"navigate" else ""


_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


def _bare(host: str) -> str:
    """A `Host` header without its port."""
    return host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host


def _is_local(origin: str) -> bool:
    """Whether a page comes from this machine, or from an application and no web site.

    `null` is what a page in a sandbox says, and any site can make one.
    """
    try:
        parts = urlsplit(origin)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        return is_loopback(host)
    return "://" in origin


def _is_loopback(host: str) -> bool:
    return not host or is_loopback(host)


def shown(headers: Headers, query: str) -> str:
    """The credential that a request shows, wherever its dialect puts it."""
    return next(iter(_all(headers, query)), "")


def _all(headers: Headers, query: str) -> list[str]:
    """All of them: which one counts is the upstream's to say, so all of them make the tenant."""
    found = [_bearer(value.decode("latin-1")) for name, value in headers if name in CREDENTIALS]
    if "key=" in query and (key := dict(parse_qsl(query)).get("key")):
        found.append(key)
    return found


def _bearer(text: str) -> str:
    """A header's credential, without the word before it."""
    text = text.strip()
    scheme, _, token = text.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else text


def without_key(query: str) -> str:
    """A query string without the credential some clients put there."""
    if "key=" not in query:
        return query
    parts = query.split("&")  # what stays, stays as it is written
    return "&".join(part for part in parts if unquote_plus(part.partition("=")[0]) != "key")
