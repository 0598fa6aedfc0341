"""HTTP to an upstream, by aiohttp's client: pooled connections, bytes as they come.

Nothing is added to a request and nothing taken from a response: no cookies, no redirects followed,
no decompression, no user agent of its own. A pooled connection that the upstream had already
closed is tried once more by the client library, before any byte was answered.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import ClientError, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from thoughtline.errors import WireError
from thoughtline.wires.base import Headers, Inbound, Outbound

_SILENT = frozenset({"User-Agent", "Accept", "Accept-Encoding", "Content-Type"})


class _Response:
    """One response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in response.raw_headers
        ]

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except TimeoutError as error:
            raise WireError("the upstream stalled in the middle of its answer") from error
        except (ClientError, OSError) as error:
            raise WireError(f"the upstream's answer broke off: {_why(error)}") from error

    async def read(self, limit: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            pieces.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(pieces)


class HttpWire:
    """Upstreams over HTTP/1.1."""

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        idle_timeout: float = 600.0,
        connections: int = 0,
    ) -> None:
        self._timeout = ClientTimeout(
            total=None, sock_connect=connect_timeout, sock_read=idle_timeout
        )
        self._connections = connections  # 0: as many as needed; the server limits what comes in
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=TCPConnector(limit=self._connections, ttl_dns_cache=60),
                timeout=self._timeout,
                cookie_jar=DummyCookieJar(),
                skip_auto_headers=_SILENT,
                auto_decompress=False,
                raise_for_status=False,
                trust_env=True,
            )
        return self._session

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        try:
            response = await self._open().request(
                request.method,
                URL(request.url, encoded=True),
                headers=list(request.headers),
                data=request.body or None,
                allow_redirects=False,
            )
        except TimeoutError as error:
            raise WireError(f"no answer from {_place(request.url)}: timed out") from error
        except (ClientError, OSError, ValueError) as error:
            raise WireError(f"cannot reach {_place(request.url)}: {_why(error)}") from error
        try:
            yield _Response(response)
        finally:
            # An answer that was read to its end has given its connection back already.
            response.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _place(url: str) -> str:
    """The endpoint without its query, which may hold a key."""
    return url.partition("?")[0]


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
