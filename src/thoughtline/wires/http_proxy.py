"""HTTP proxies that the environment names: which requests take one, and tunnels through them.

`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are read in either case, as curl and
Python's `urllib` do. Requests to `http://` URLs are sent to the proxy with the full URL in their
first line; for `https://` URLs the proxy opens a tunnel (`CONNECT`), in which TLS is spoken with
the upstream itself, so that the proxy sees neither keys nor thoughts.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec.structs import replace

from thoughtline.errors import WireError
from thoughtline.wires.base import WireTimeouts
from thoughtline.wires.http_connection import HttpConnection
from thoughtline.wires.http_target import HttpProxy, HttpTarget, parse_url

_WEBSOCKET_VARIABLES = ("wss", "ws", "socks", "https", "http")


def environment_proxies() -> "EnvironmentProxies | None":
    """The proxies that the environment names now; None if it names none."""
    found = getproxies()
    urls = {name: found[name] for name in ("http", "https", "all") if found.get(name)}
    return EnvironmentProxies(urls) if urls else None


class EnvironmentProxies:
    """The proxies' URLs by the scheme of the requests that take them, or `all`."""

    def __init__(self, urls: dict[str, str]) -> None:
        self._urls = urls
        self.route: Callable[[HttpTarget], HttpTarget] = lru_cache(maxsize=256)(self._route)

    def _route(self, target: HttpTarget) -> HttpTarget:
        """The target by way of its proxy; unchanged if it is reached directly.

        Raises `WireError` for a proxy that cannot be used.
        """
        url, variable = "", ""
        for name in ("https" if target.tls else "http", "all"):
            if not url and name in self._urls:
                url, variable = self._urls[name], f"{name.upper()}_PROXY"
        if not url or _excepted(target.host, target.port):
            return target
        proxy = _parse(url, variable)
        path = target.path if target.tls else f"http://{target.authority}{target.path}"
        return replace(target, proxy=proxy, path=path, pool_key=(*target.pool_key[:3], proxy.url))


def websocket_proxy(host: str, port: int) -> str | Literal[True] | None:
    """The `proxy` argument of the `websockets` library for this host.

    True leaves the choice to the library, which knows every variable but `ALL_PROXY`.
    """
    found = getproxies()
    if "all" not in found or not found.keys().isdisjoint(_WEBSOCKET_VARIABLES):
        return True
    return None if _excepted(host, port) else found["all"]


def _excepted(host: str, port: int) -> bool:
    """Whether `NO_PROXY` names the host, with or without its port."""
    return bool(proxy_bypass(host) or proxy_bypass(f"{host}:{port}"))


def _parse(url: str, variable: str) -> HttpProxy:
    url = url if "://" in url else f"http://{url}"
    try:
        address = parse_url(url)
    except ValueError as error:
        scheme = urlsplit(url).scheme
        raise WireError(
            f"the proxy in {variable} cannot be used: its URL begins with {scheme}://; expected "
            "http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before the host if the "
            f"proxy wants that; change {variable}, or name the upstream's host in NO_PROXY"
        ) from error
    shown = f"{'https' if address.tls else 'http'}://{address.authority}"
    return HttpProxy(
        address.host, address.port, address.tls, shown, variable, address.authorization
    )


async def open_tunnel(
    connection: HttpConnection,
    target: HttpTarget,
    proxy: HttpProxy,
    timeouts: WireTimeouts,
    tls: ssl.SSLContext,
) -> HttpConnection:
    """Have the proxy on this connection open a tunnel to the target; speak TLS through it.

    Raises `WireError` or `OSError`; then the connection is closed.
    """
    host = f"[{target.host}]" if ":" in target.host else target.host
    lines = [f"CONNECT {host}:{target.port} HTTP/1.1", f"host: {host}:{target.port}"]
    if proxy.authorization:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    await connection.request(head, b"", timeouts, head_only=True)
    if connection.status // 100 != 2:
        connection.close()
        raise proxy_refusal(connection.status, proxy, f"a tunnel to {host}:{target.port}")
    loop = asyncio.get_running_loop()
    inner = HttpConnection(loop)
    transport = await loop.start_tls(connection.detach(), inner, tls, server_hostname=target.host)
    if transport is None:
        raise ConnectionResetError("the proxy closed the tunnel")
    inner.connection_made(transport)
    return inner


def proxy_refusal(status: int, proxy: HttpProxy, wanted: str) -> WireError:
    """The error for a proxy that refused what was wanted, and what to do about it."""
    if status == 407 and proxy.authorization:
        advice = f"it does not accept the user name and password in {proxy.variable}: correct them"
    elif status == 407:
        advice = (
            "it wants a user name and a password: write them into "
            f"{proxy.variable} as http://USER:PASSWORD@HOST:PORT"
        )
    else:
        advice = (
            "it cannot reach that host or does not allow it: ask whoever runs the proxy, "
            "or name the host in NO_PROXY to go there directly"
        )
    return WireError(f"the proxy {proxy.url} answered {status} to {wanted}; {advice}")
