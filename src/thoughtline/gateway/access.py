"""Who is it, and with which credential does the request go on.

Without configured client keys the client's own credential goes upstream, and its keyed hash is the
tenant. With them, a client shows its key here, and the upstream's configured key goes on in its
place: a client's gateway key never leaves. Credentials are compared in constant time and kept
only as keyed hashes.
"""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct

Headers = Sequence[tuple[bytes, bytes]]

CREDENTIALS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
"""Headers that hold a credential, in the dialects' various ways."""


class Visitor(Struct, frozen=True, kw_only=True):
    """Somebody at the door."""

    tenant: str
    credential: str = ""  # the client's own; empty when it was a gateway key
    client: str = ""  # the configured client's name


class Door:
    """Lets clients in and hands out credentials."""

    def __init__(
        self, secret: bytes, *, clients: Mapping[str, str] | None = None, admin_token: str = ""
    ) -> None:
        self._secret = secret
        self._clients = dict(clients or {})
        self._admin = admin_token

    @property
    def open(self) -> bool:
        """Whether anybody may come in with a credential of their own."""
        return not self._clients

    def fingerprint(self, credential: str) -> str:
        """The keyed hash under which a credential is known; nothing for no credential."""
        if not credential:
            return ""
        return blake2b(credential.encode(), key=self._secret[:64], digest_size=16).hexdigest()

    def admit(self, headers: Headers, query: str) -> Visitor | None:
        """The visitor, or None for a stranger where keys are configured."""
        credential = shown(headers, query)
        if self.open:
            return Visitor(tenant=self.fingerprint(credential), credential=credential)
        name = ""
        for client, key in self._clients.items():  # every key is compared: no early way out
            if hmac.compare_digest(key.encode(), credential.encode()):
                name = client
        return Visitor(tenant=f"client:{name}", client=name) if name else None

    def admits_admin(self, headers: Headers, peer: str) -> bool:
        """Whether this is the administrator: by token, or on loopback when there is none."""
        if not self._admin:
            return peer in ("127.0.0.1", "::1", "")
        return hmac.compare_digest(self._admin.encode(), shown(headers, "").encode())


def shown(headers: Headers, query: str) -> str:
    """The credential that a request shows, wherever its dialect puts it."""
    for name, value in headers:
        if name in CREDENTIALS:
            text = value.decode("latin-1").strip()
            scheme, _, token = text.partition(" ")
            return token.strip() if scheme.lower() == "bearer" else text
    if "key=" in query:
        return dict(parse_qsl(query)).get("key", "")
    return ""


def without_key(query: str) -> str:
    """A query string without the credential some clients put there."""
    if "key=" not in query:
        return query
    return urlencode([(name, value) for name, value in parse_qsl(query) if name != "key"])
