"""HTTP/1.1 to an upstream: pooled connections, bytes as they come.

Only a length and a host are added to a request, unless it has them, and nothing is taken from a
response: no cookies, no redirects, no decompression, no user agent. If a pooled connection turns
out to be closed at the moment of use, the request is sent once more over a new one, provided that
its method may be repeated and nothing was answered. Proxies of the environment are respected.
"""

import asyncio
import socket
import ssl
from asyncio import get_running_loop
from contextlib import AbstractAsyncContextManager

from aiohappyeyeballs import start_connection

from thoughtline.errors import WireError
from thoughtline.wires.base import Inbound, Outbound, WireTimeouts
from thoughtline.wires.http_connection import ConnectionLost, HttpConnection, ReadTimeout
from thoughtline.wires.http_proxy import environment_proxies, open_tunnel, proxy_refusal
from thoughtline.wires.http_target import HttpTarget, PoolKey, parse_url, redacted, request_head

KEEP_IDLE = 15.0
"""Seconds for which a connection without a request stays open."""

_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_HAPPY_EYEBALLS_DELAY = 0.25  # seconds before the next address is tried beside the first


class HttpWire:
    """A wire to upstreams over HTTP/1.1."""

    def __init__(self, *, timeouts: WireTimeouts | None = None) -> None:
        self.timeouts = timeouts or WireTimeouts()
        self._idle: dict[PoolKey, list[HttpConnection]] = {}
        self._closed = False
        self._tls: ssl.SSLContext | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self.proxies = environment_proxies()

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        return _Sending(self, request)

    async def close(self) -> None:
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    # -- connections -----------------------------------------------------------------------------

    def target(self, url: str) -> HttpTarget:
        """Where a URL leads, through a proxy of the environment if it has one for it."""
        try:
            target = parse_url(url)
        except ValueError as error:
            raise WireError(f"cannot reach {redacted(url)}: {error}") from error
        return target if self.proxies is None else self.proxies.route(target)

    async def connect(
        self, request: Outbound, target: HttpTarget, timeouts: WireTimeouts
    ) -> HttpConnection:
        """Open a connection, through the target's proxy if it has one."""
        proxy = target.proxy
        try:
            async with asyncio.timeout(timeouts.connect):
                if proxy is None:
                    return await self._open(target.host, target.port, tls=target.tls)
                connection = await self._open(proxy.host, proxy.port, tls=proxy.tls)
                if not target.tls:
                    return connection
                return await open_tunnel(connection, target, proxy, timeouts, self._tls_context())
        except (TimeoutError, ReadTimeout) as error:
            raise _timed_out(request, target) from error
        except (OSError, ValueError, ConnectionLost) as error:
            raise _unreachable(request, target, error) from error

    async def _open(self, host: str, port: int, *, tls: bool) -> HttpConnection:
        loop = get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        opened = await start_connection(
            addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY, loop=loop
        )
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _, connection = await loop.create_connection(
            lambda: HttpConnection(loop),
            sock=opened,
            ssl=self._tls_context() if tls else None,
            server_hostname=host if tls else None,
        )
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    # -- the pool --------------------------------------------------------------------------------

    def take(self, key: PoolKey) -> HttpConnection | None:
        """A connection that is free; the one that was used last comes first."""
        connections = self._idle.get(key)
        while connections:
            connection = connections.pop()
            if connection.reusable(get_running_loop()) and not connection.closed_by_peer():
                return connection
            connection.close()
        return None

    def give_back(self, connection: HttpConnection, key: PoolKey) -> None:
        """Pool a connection whose response is over; close it if the rest is not wanted."""
        loop = get_running_loop()
        if self._closed or not connection.reusable(loop):
            connection.close()
            return
        connection.release()
        self._idle.setdefault(key, []).append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(KEEP_IDLE, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that were idle for too long."""
        self._sweeping = None
        oldest = loop.time() - KEEP_IDLE
        for key, connections in list(self._idle.items()):
            fresh = [one for one in connections if one.idle_since > oldest and one.reusable(loop)]
            for connection in set(connections).difference(fresh):
                connection.close()
            if fresh:
                self._idle[key] = fresh
            else:
                del self._idle[key]
        if self._idle:
            self._sweeping = loop.call_later(KEEP_IDLE, self._sweep, loop)


class _Sending:
    """A request and its response, for the length of an `async with` block."""

    __slots__ = ("_connection", "_key", "_request", "_wire")

    def __init__(self, wire: HttpWire, request: Outbound) -> None:
        self._wire, self._request = wire, request

    async def __aenter__(self) -> Inbound:
        wire, request = self._wire, self._request
        target = wire.target(request.url)
        self._key = target.pool_key
        timeouts = request.timeouts or wire.timeouts
        head = request_head(request, target)
        connection = wire.take(target.pool_key)
        pooled = connection is not None
        while True:
            if connection is None:
                connection = await wire.connect(request, target, timeouts)
            try:
                await connection.request(
                    head, request.body, timeouts, head_only=request.method == "HEAD"
                )
            except ReadTimeout as error:
                raise _timed_out(request, target) from error
            except ConnectionLost as error:
                if not pooled or connection.answered or request.method not in _REPEATABLE:
                    raise _unreachable(request, target, error) from error
                connection, pooled = None, False
            else:
                if connection.status == 407 and target.proxy is not None:
                    connection.close()
                    raise proxy_refusal(407, target.proxy, f"a request to {redacted(request.url)}")
                self._connection = connection
                return connection

    async def __aexit__(self, *_: object) -> None:
        self._wire.give_back(self._connection, self._key)


def _timed_out(request: Outbound, target: HttpTarget) -> WireError:
    return WireError(f"no answer from {redacted(request.url)}{_through(target)}: timed out")


def _unreachable(request: Outbound, target: HttpTarget, error: Exception) -> WireError:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    advice = "" if target.proxy is None else "; is the proxy up? NO_PROXY can except the host"
    return WireError(f"cannot reach {redacted(request.url)}{_through(target)}: {why}{advice}")


def _through(target: HttpTarget) -> str:
    if target.proxy is None:
        return ""
    return f" through the proxy {target.proxy.url} (named by {target.proxy.variable})"
