"""HTTP to an upstream through the proxies that the environment names, by aiohttp's client.

Nothing is added to a request and nothing taken from a response: no cookies, no redirects followed,
no decompression, no user agent of its own. A pooled connection that the upstream had already
closed is tried once more by the client library, before any byte was answered.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import aiohttp
from aiohttp import ClientError, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from thoughtline.errors import WireError
from thoughtline.wires.base import Headers, Inbound, Outbound, Patience

_SILENT = frozenset({"User-Agent", "Accept", "Accept-Encoding", "Content-Type"})


class _Response:
    """One response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
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


class ProxiedWire:
    """Upstreams behind a proxy."""

    def __init__(self, *, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=TCPConnector(limit=0, ttl_dns_cache=60),
                cookie_jar=DummyCookieJar(),
                skip_auto_headers=_SILENT,
                auto_decompress=False,
                raise_for_status=False,
                trust_env=True,
            )
        return self._session

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        patience = request.patience or self._patience
        try:
            response = await self._open().request(
                request.method,
                URL(request.url, encoded=True),
                headers=list(request.headers),
                data=request.body or None,
                allow_redirects=False,
                timeout=_timeout(patience),
            )
        except TimeoutError as error:
            raise WireError(f"no answer from {_place(request.url)}: timed out") from error
        except (ClientError, OSError, ValueError) as error:
            raise WireError(f"cannot reach {_place(request.url)}: {_why(error)}") from error
        _slow_down(response, patience)
        try:
            yield _Response(response)
        finally:
            # An answer that was read to its end has given its connection back already.
            response.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


@cache
def _timeout(patience: Patience) -> ClientTimeout:
    return ClientTimeout(total=None, sock_connect=patience.connect, sock_read=patience.first_byte)


def _slow_down(response: aiohttp.ClientResponse, patience: Patience) -> None:
    """From here on, silence is that between two pieces of the body."""
    connection = response.connection  # None: all of it has come already
    if connection is not None and connection.protocol is not None:
        connection.protocol.read_timeout = patience.idle
        connection.protocol.start_timeout()


def _place(url: str) -> str:
    """The endpoint without its query, which may hold a key."""
    return url.partition("?")[0]


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
