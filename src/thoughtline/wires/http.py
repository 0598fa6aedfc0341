"""HTTP/1.1 to an upstream: pooled connections, bytes as they come.

Nothing is added to a request but its length and its host, unless it has one, and nothing is taken
from a response: no cookies, no redirects followed, no decompression, no user agent. A pooled
connection that the upstream closed at the very moment of use is tried once more, where the request
may be said twice and nothing was answered. Where the environment names proxies, the way is
`wires.proxied`.
"""

import asyncio
import socket
import ssl
from base64 import b64encode
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from aiohappyeyeballs import start_connection
from msgspec import Struct

from thoughtline.errors import WireError
from thoughtline.wires.base import Inbound, Outbound, Patience, Wire
from thoughtline.wires.pipes import Broken, Pipe, Stalled

Peer = tuple[str, int, bool]
"""Host, port, and whether it is spoken to over TLS: connections are pooled by this."""

KEPT = 15.0
"""Seconds for which a connection without a request is kept."""

_AGAIN = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_DELAY = 0.25  # before the next address is tried beside the first


class Place(Struct, frozen=True):
    """Where a URL leads."""

    peer: Peer
    named: str  # as the `host` header says it
    target: str  # as the request line says it
    login: str = ""  # where the URL holds one

    @property
    def host(self) -> str:
        """The name or the address."""
        return self.peer[0]

    @property
    def port(self) -> int:
        """The port."""
        return self.peer[1]

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.peer[2]


class HttpWire:
    """Upstreams over HTTP/1.1."""

    def __init__(self, *, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._idle: dict[Peer, list[Pipe]] = {}
        self._closed = False
        self._tls: ssl.SSLContext | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._proxied: Wire | None = None
        if getproxies().keys() - {"no"}:  # exceptions alone make no proxy
            from thoughtline.wires.proxied import ProxiedWire

            self._proxied = ProxiedWire(patience=patience)

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        if self._proxied is not None:
            return self._proxied.send(request)
        return _Sending(self, request)

    async def close(self) -> None:
        self._closed = True
        if self._proxied is not None:
            await self._proxied.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for pipes in self._idle.values():
            for pipe in pipes:
                pipe.close()
        self._idle.clear()

    # -- one request -----------------------------------------------------------------------------

    async def ask(self, request: Outbound, place: Place) -> Pipe:
        """Send a request; the pipe through which its answer comes."""
        patience = request.patience or self._patience
        head = _head(request, place)
        pipe = self._take(place.peer)
        pooled = pipe is not None
        while True:
            if pipe is None:
                pipe = await self._connect(request, place, patience)
            try:
                await pipe.ask(head, request.body, patience, bare=request.method == "HEAD")
            except Stalled as error:
                raise WireError(f"no answer from {_shown(request.url)}: timed out") from error
            except Broken as error:
                if not pooled or pipe.touched or request.method not in _AGAIN:
                    raise _unreachable(request, error) from error
                pipe, pooled = None, False
            else:
                return pipe

    async def _connect(self, request: Outbound, place: Place, patience: Patience) -> Pipe:
        loop = asyncio.get_running_loop()
        if place.tls and self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(patience.connect):
                found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
                line = await start_connection(found, happy_eyeballs_delay=_DELAY, loop=loop)
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _, pipe = await loop.create_connection(
                    lambda: Pipe(loop),
                    sock=line,
                    ssl=self._tls if place.tls else None,
                    server_hostname=place.host if place.tls else None,
                )
        except TimeoutError as error:
            raise WireError(f"no answer from {_shown(request.url)}: timed out") from error
        except (OSError, ValueError) as error:
            raise _unreachable(request, error) from error
        return pipe

    # -- the pool --------------------------------------------------------------------------------

    def _take(self, peer: Peer) -> Pipe | None:
        """A connection that is free, the one used last first."""
        pipes = self._idle.get(peer)
        while pipes:
            pipe = pipes.pop()
            if pipe.free(asyncio.get_running_loop()) and not pipe.ended():
                return pipe
            pipe.close()
        return None

    def give_back(self, pipe: Pipe, peer: Peer) -> None:
        """The answer is over, or nobody wants the rest of it."""
        loop = asyncio.get_running_loop()
        if self._closed or not pipe.free(loop):
            pipe.close()
            return
        pipe.rest()
        self._idle.setdefault(peer, []).append(pipe)
        if self._sweeping is None:
            self._sweeping = loop.call_later(KEPT, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let go of connections that nobody needed for a while."""
        self._sweeping = None
        oldest = loop.time() - KEPT
        for peer, pipes in list(self._idle.items()):
            kept = [pipe for pipe in pipes if pipe.since > oldest and pipe.free(loop)]
            for pipe in set(pipes).difference(kept):
                pipe.close()
            if kept:
                self._idle[peer] = kept
            else:
                del self._idle[peer]
        if self._idle:
            self._sweeping = loop.call_later(KEPT, self._sweep, loop)


class _Sending:
    """A request for the length of a block."""

    __slots__ = ("_peer", "_pipe", "_request", "_wire")

    def __init__(self, wire: HttpWire, request: Outbound) -> None:
        self._wire, self._request = wire, request

    async def __aenter__(self) -> Inbound:
        try:
            place = _place(self._request.url)
        except ValueError as error:
            raise _unreachable(self._request, error) from error
        self._peer = place.peer
        self._pipe = await self._wire.ask(self._request, place)
        return self._pipe

    async def __aexit__(self, *_: object) -> None:
        self._wire.give_back(self._pipe, self._peer)


@lru_cache(maxsize=256)
def _place(url: str) -> Place:
    """Take a URL apart. Raises `ValueError` for what is none."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL with http:// or https:// and a host")
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode()
    named = f"[{host}]" if ":" in host else host
    port = parts.port or (443 if tls else 80)
    if parts.port and parts.port != (443 if tls else 80):
        named += f":{parts.port}"
    target = parts.path or "/"
    login = ""
    if parts.username:
        words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = f"Basic {b64encode(words.encode()).decode()}"
    return Place(
        (host, port, tls), named, f"{target}?{parts.query}" if parts.query else target, login
    )


def _head(request: Outbound, place: Place) -> bytes:
    """The request line and the headers, to the empty line."""
    lines = [f"{request.method} {place.target} HTTP/1.1"]
    known = dict(request.headers)
    if "host" not in known and "Host" not in known:
        lines.append(f"host: {place.named}")
    lines += [f"{name}: {value}" for name, value in request.headers]
    if request.body or request.method not in _BODILESS:
        lines.append(f"content-length: {len(request.body)}")
    if place.login and not any(name.lower() == "authorization" for name in known):
        lines.append(f"authorization: {place.login}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
        raise WireError("a header holds a line break; expected values of one line each")
    try:
        return (text + "\r\n\r\n").encode("latin-1")
    except UnicodeEncodeError:
        return (text + "\r\n\r\n").encode()


def _unreachable(request: Outbound, error: Exception) -> WireError:
    return WireError(f"cannot reach {_shown(request.url)}: {str(error) or type(error).__name__}")


def _shown(url: str) -> str:
    """The endpoint without its query, which may hold a key."""
    return url.partition("?")[0]
