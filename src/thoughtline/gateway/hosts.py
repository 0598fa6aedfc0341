"""The Host rule: under which names the gateway answers while it asks for no client keys.

Without client keys, being able to connect counts as a key, and so a web page could come in by
pointing its own name at this machine (DNS rebinding). Its requests have that name as their `Host`.
Names of loopback, names that public DNS never holds for a gateway that others can reach, and the
names of `access.hosts` are answered; everything else is refused.
"""

import ipaddress
from collections.abc import Iterable
from fnmatch import fnmatchcase

from thoughtline.gateway.asgi import RawHeaders
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.settings import is_loopback

_PRIVATE = ".internal"
"""Reserved for private networks, never in public DNS: `host.docker.internal` and its kin."""
_LOCAL_NAMES = frozenset({"localhost.localdomain", "ip6-localhost", "ip6-loopback"})
"""What `/etc/hosts` calls loopback beside `localhost`."""
_MAX_REMEMBERED = 256


class AllowedHosts:
    """Decides by its `Host` whether a request is answered."""

    def __init__(self, hosts: Iterable[str] = (), *, listening: str = "127.0.0.1") -> None:
        """`hosts` are names, or patterns such as `*.example.com`; `*` allows every name."""
        self._patterns = tuple(host.strip("[]").rstrip(".").lower() for host in hosts)
        self._listening = listening.strip("[]").lower()
        self._exposed = not is_loopback(listening)
        self._allowed: set[bytes] = set()  # headers that were allowed before

    def refusal(self, headers: RawHeaders) -> GatewayError | None:
        """The error for a request whose host is not allowed; None where it is."""
        for name, value in headers:
            if name == b"host":
                return None if value in self._allowed else self._check(value)
        return None  # no browser leaves it out

    def _check(self, value: bytes) -> GatewayError | None:
        host = hostname(value.decode("latin-1"))
        if not self.allows(host):
            return _unknown_host(host)
        if len(self._allowed) < _MAX_REMEMBERED:
            self._allowed.add(value)
        return None

    def allows(self, host: str) -> bool:
        """Whether the gateway answers under this name."""
        host = host.strip("[]").rstrip(".").lower()
        if not host or _is_this_machine(host) or host == self._listening:
            return True
        if host.endswith(_PRIVATE):
            return True
        if self._exposed and (_is_address(host) or "." not in host):
            return True
        return any(fnmatchcase(host, pattern) for pattern in self._patterns)


def hostname(host: str) -> str:
    """A `Host` header without its port."""
    host = host.strip()
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) else host


def _is_this_machine(host: str) -> bool:
    """Whether this is loopback, or an address that leads there (`0.0.0.0`)."""
    if is_loopback(host) or host in _LOCAL_NAMES:
        return True
    address = _address(host)
    mapped = getattr(address, "ipv4_mapped", None)
    return address is not None and bool(address.is_unspecified or (mapped and mapped.is_loopback))


def _is_address(host: str) -> bool:
    return _address(host) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _unknown_host(host: str) -> GatewayError:
    shown = host[:100] if host.isprintable() else ascii(host[:100])
    return GatewayError(
        403,
        f"the request is for the host {shown!r}, and without client keys this gateway answers "
        "under names of this machine only, because a web page could point its own name here; use "
        "127.0.0.1 or localhost, list the name under `access.hosts`, or set client keys",
        "host_not_allowed",
    )
