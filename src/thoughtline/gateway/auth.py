"""Authentication: whose request it is, and which credential goes upstream with it.

Without configured client keys the client's own credential goes upstream, and its keyed hash is the
tenant. With them, a client shows its key here, and the upstream's configured key goes on in its
place: a client's gateway key never leaves. Credentials are compared in constant time and stored
only as keyed hashes. Where no key is asked for, being on this machine counts as one, so a web page
in a browser on it is refused unless it is local or listed in `access.origins`, and so is a request
under a name that `hosts` does not allow.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.secrets import CredentialHash
from thoughtline.gateway.asgi import RawHeaders
from thoughtline.gateway.credentials import chosen_accounts, credential, credentials
from thoughtline.gateway.errors import GatewayError, foreign_page, invalid_key
from thoughtline.gateway.hosts import AllowedHosts, hostname
from thoughtline.gateway.identity import Claims, read_claims
from thoughtline.gateway.settings import is_loopback
from thoughtline.log.handles import Handles
from thoughtline.stores.base import CLIENTS_OWN

_FROM_BROWSERS = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode"})
"""Headers in which a browser says which page asks."""
_FORWARDED = re.compile(
    rb"via|cdn-loop|(?:x-(?:original-)?)?forwarded(?:-.*)?|x-original-host|x-real-ip|x-proxy-.*"
    rb"|cf-(?:connecting-ip.*|ray|visitor|ipcountry|worker)|true-client-ip|x-azure-.*|x-envoy-.*"
    rb"|(?:[a-z]+-)*client-?ip|x-amzn-trace-id|x-amz-cf-id|x-cloud-trace-context|x-appengine-.*"
).fullmatch
"""Matches headers that proxies, tunnels and CDNs add to what they forward."""


_APPLICATIONS = frozenset(
    """app capacitor chrome-extension electron file ionic moz-extension safari-web-extension tauri
    vscode-file vscode-webview wails""".split()  # noqa: SIM905 (a list of a word per line is longer)
)
"""Schemes of pages that an application or an extension brings along, and no web site has."""


class Principal(Struct, frozen=True, kw_only=True):
    """The client that a request was authenticated as."""

    tenant: str
    account: str = ""  # its own credential's fingerprint; empty when it was a gateway key
    client: str = ""  # the configured client's name
    chosen: tuple[str, ...] = ()  # which of the accounts that its credential opens
    claims: Claims | None = None  # what it says about its account, which only a provider can check
    claimed: bool = False  # the tenant goes by that: a provider that refuses shows it wrong


_NOBODY = Principal(tenant="")


class Auth:
    """Authenticates clients and the administrator, and fingerprints credentials."""

    def __init__(
        self,
        secret: bytes,
        *,
        clients: Mapping[str, str] | None = None,
        admin_token: str = "",
        origins: Sequence[str] = (),
        hosts: AllowedHosts | None = None,
        identity_header: str = "",
    ) -> None:
        self.fingerprint = CredentialHash(secret)
        self.handles = Handles(secret)
        self._clients = dict(clients or {})
        self._admin_token = admin_token
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._hosts = hosts or AllowedHosts()
        self.identity_header = identity_header.strip().lower().encode("latin-1")

    def require_principal(self, headers: RawHeaders, query: str) -> Principal:
        """Authenticate a client. Raises `GatewayError` for a wrong key and for foreign pages."""
        principal = self.authenticate(headers, query)
        if principal is None:
            raise invalid_key()
        if origin := self.foreign_origin(headers):
            raise foreign_page(origin)
        return principal

    def authenticate(self, headers: RawHeaders, query: str) -> Principal | None:
        """The client; None where client keys are configured and the request shows none of them."""
        if not self._clients:
            if self.identity_header and (name := self._identity(headers)):
                return Principal(tenant=name, account=name)
            found = credentials(headers, query)
            alone = len(found) == 1
            one = found[0] if alone else "\n".join(dict.fromkeys(found))
            chosen = chosen_accounts(headers)
            account = self.fingerprint("\n".join((one, *chosen)) if chosen else one)
            claims = read_claims(one, headers) if alone else None
            return Principal(tenant=account, account=account, claims=claims, chosen=chosen)
        shown, name = credential(headers, query), ""
        for client, key in self._clients.items():  # every key is compared: constant time
            if hmac.compare_digest(key.encode(), shown.encode()):
                name = client
        if not name:
            return None
        return Principal(tenant=f"client:{name}", client=name, chosen=chosen_accounts(headers))

    def _identity(self, headers: RawHeaders) -> str:
        """The client that the configured header names; one that comes twice names nobody."""
        named = [value for name, value in headers if name == self.identity_header and value]
        if len(named) != 1:
            return ""
        header = self.identity_header.decode("latin-1")
        return self.fingerprint.identity("header", header, named[0].decode("latin-1"))

    def at_upstream(self, principal: Principal, upstream: Upstream) -> Principal:
        """The client as this upstream knows it: the same one when its token was renewed."""
        names = principal.claims.names(upstream) if principal.claims is not None else ()
        if not names:
            return principal
        name = self.fingerprint.identity("claims", *names, *principal.chosen)
        return Principal(tenant=name, account=name, chosen=principal.chosen, claimed=True)

    def account(self, principal: Principal, upstream: Upstream) -> str:
        """The account that an upstream serves a request for, as a fingerprint."""
        configured = [(name.lower().encode(), v.encode()) for name, v in upstream.headers.items()]
        chosen = chosen_accounts(configured) if configured else ()
        if not upstream.key and not chosen:
            return principal.account
        key = upstream.key or principal.account
        return self.fingerprint("\n".join((key, *(chosen or principal.chosen))))

    def known_account(self, upstream: Upstream) -> str | None:
        """The account of an upstream's requests, as far as that follows from its settings alone.

        `CLIENTS_OWN`: each client's. None: it depends on the client in another way.
        """
        if upstream.key:
            return self.account(_NOBODY, upstream)
        return CLIENTS_OWN if self.account(_NOBODY, upstream) == _NOBODY.account else None

    def foreign_origin(self, headers: RawHeaders) -> str:
        """The origin of an untrusted web page that asks through a browser; empty: there is none.

        Client keys make the check unnecessary: a foreign page does not have one.
        """
        return "" if self._clients else self._untrusted_origin(headers)

    def foreign_host(self, headers: RawHeaders) -> GatewayError | None:
        """The error for a request under a name that is not this machine's; None: it may come in.

        Client keys make this check unnecessary, too.
        """
        return None if self._clients else self._hosts.refusal(headers)

    def _untrusted_origin(self, headers: RawHeaders) -> str:
        sent = {name: value for name, value in reversed(headers) if name in _FROM_BROWSERS}
        if not sent or "*" in self._origins:
            return ""
        if b"origin" not in sent:
            return _embedding_site(sent)
        origin = sent[b"origin"].decode("latin-1").strip().lower()
        trusted = origin in self._origins or _is_local(origin)
        return "" if trusted else origin[:100] or "nowhere"

    @property
    def has_admin_token(self) -> bool:
        """Whether an admin token is configured."""
        return bool(self._admin_token)

    def is_admin(self, headers: RawHeaders, address: str, http_version: str = "") -> bool:
        """Whether this is the administrator: by token, or on loopback when there is none.

        A web page cannot come in by pointing its own name at this machine (DNS rebinding), nor can
        others through a proxy that runs here: a forwarded request, or one with another `Host`, is
        not local. nginx forwards without a trace by default, but it does so as HTTP/1.0.
        """
        if self._admin_token:
            shown = credential(headers, "")
            return hmac.compare_digest(self._admin_token.encode(), shown.encode())
        if not _is_loopback(address) or self._untrusted_origin(headers) or http_version == "1.0":
            return False
        if any(_FORWARDED(name) for name, _ in headers):
            return False
        known = {name: value.decode("latin-1") for name, value in headers}
        return _is_loopback(hostname(known.get(b"host", "")))


def _embedding_site(sent: Mapping[bytes, bytes]) -> str:
    """A foreign page that fetches without an `Origin`, as for an image; links may be followed."""
    foreign = sent.get(b"sec-fetch-site", b"").strip().lower() == b"cross-site"
    return "another site" if foreign and sent.get(b"sec-fetch-mode") != b"navigate" else ""


def _is_local(origin: str) -> bool:
    """Whether a page comes from this machine, or is of an application, which no web site can be.

    `null` is the origin of a sandboxed page, and any site can make one.
    """
    try:
        parts = urlsplit(origin)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        return is_loopback(host)
    return parts.scheme in _APPLICATIONS and "://" in origin


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine; no host at all is a local socket."""
    return not host or is_loopback(host)
