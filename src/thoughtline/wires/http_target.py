"""Where an HTTP request goes: its address, the proxy on the way, and the head that is sent."""

from base64 import b64encode
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound

PoolKey = tuple[str, int, bool, str]
"""Host, port, whether TLS is spoken, and the proxy's URL (empty: none): one pool for each."""

_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class HttpProxy(Struct, frozen=True):
    """A proxy that takes HTTP requests, and tunnels for TLS."""

    host: str
    port: int
    tls: bool
    url: str  # for messages: without user name and password
    variable: str  # the environment variable that names it
    authorization: str = ""


class HttpTarget(Struct, frozen=True):
    """Where a URL leads."""

    pool_key: PoolKey
    authority: str  # as the `host` header says it
    path: str  # as the request line says it: with the query, or absolute for a proxy
    authorization: str = ""  # where the URL holds a user name
    proxy: HttpProxy | None = None

    @property
    def host(self) -> str:
        """The host's name or address."""
        return self.pool_key[0]

    @property
    def port(self) -> int:
        """The port."""
        return self.pool_key[1]

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.pool_key[2]


@lru_cache(maxsize=256)
def parse_url(url: str) -> HttpTarget:
    """The target of a URL. Raises `ValueError` for anything that is no HTTP URL."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL with http:// or https:// and a host")
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode()
    authority = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if tls else 80)
    if parts.port and parts.port != (443 if tls else 80):
        authority += f":{parts.port}"
    path = parts.path or "/"
    authorization = ""
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(login.encode()).decode()}"
    return HttpTarget(
        (host, port, tls, ""),
        authority,
        f"{path}?{parts.query}" if parts.query else path,
        authorization,
    )


def redacted(url: str) -> str:
    """The URL without its query and its password, which are secrets."""
    scheme, separator, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return scheme + separator + authority.rpartition("@")[2] + slash + path


def request_head(request: Outbound, target: HttpTarget) -> bytes:
    """The request line and the headers, up to and with the empty line."""
    head = _head(request.method, tuple(request.headers), target)
    if request.body or request.method not in _BODILESS:
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))
    return head + b"\r\n"


@lru_cache(maxsize=128)
def _head(method: str, headers: tuple[tuple[str, str], ...], target: HttpTarget) -> bytes:
    """The head without a length: the same for all requests of one client to one place."""
    lines = [f"{method} {target.path} HTTP/1.1"]
    known = dict(headers)
    if "host" not in known and "Host" not in known:
        lines.append(f"host: {target.authority}")
    lines += [f"{name}: {value}" for name, value in headers]
    if target.authorization and not any(name.lower() == "authorization" for name in known):
        lines.append(f"authorization: {target.authorization}")
    if target.proxy is not None and target.proxy.authorization and not target.tls:
        lines.append(f"proxy-authorization: {target.proxy.authorization}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
        raise WireError("a header holds a line break; expected values of one line each")
    try:
        return (text + "\r\n").encode("latin-1")
    except UnicodeEncodeError:
        return (text + "\r\n").encode()
