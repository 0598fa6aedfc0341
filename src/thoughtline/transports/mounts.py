"""`AsyncTransport` keeps thoughts; `Transport` is the same for callers without an event loop."""

import difflib
import logging
import os
import weakref
from typing import Any

import httpx2

from thoughtline.exchanges import Exchange
from thoughtline.gateway import keyfile
from thoughtline.gateway.access import Door, Headers, Visitor
from thoughtline.gateway.proxy import Observer, Options, Proxy
from thoughtline.gateway.routes import parse
from thoughtline.gateway.upstreams import Directory, Upstream
from thoughtline.policies import names
from thoughtline.stores.base import Store
from thoughtline.stores.hot import HotStore
from thoughtline.stores.urls import open_store
from thoughtline.transports.passages import SCHEME, InnerWire, Passage, plain
from thoughtline.transports.threads import Lifted, Loop, Lowered, Threaded
from thoughtline.wires.answers import Sent

Inner = httpx2.BaseTransport | httpx2.AsyncBaseTransport

LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
"""Of the inner transport that is made where none is given; as the SDKs have it."""

_log = logging.getLogger("thoughtline")


class AsyncTransport(httpx2.AsyncBaseTransport):
    """Keeps thoughts, for `httpx2.AsyncClient(transport=…)`. On asyncio only.

    Args:
        store: where thoughts live: a URL (`sqlite:///thoughts.db`, `memory://`), or a store, which
            its owner closes.
        inner: what takes requests to the provider; httpx2's own transport if none is given.
        policy: the provider's name in the policy table; inferred from the host if empty.
        account: who this is, where the credential changes from request to request (OAuth, signed
            requests); otherwise a keyed hash of the credential says so.
        secret: the key of that hash; if none is given, the one that the gateway has for this store.
        strict: answer 409 instead of going on without a thought that the provider demands.
        commit_wait: how many seconds the end of a response waits for the ledger at most.
        observer: who is told what happens.
    """

    def __init__(
        self,
        store: Store | str,
        *,
        inner: Inner | None = None,
        policy: str = "",
        account: str = "",
        secret: bytes = b"",
        strict: bool = False,
        commit_wait: float = 2.0,
        observer: Observer | None = None,
    ) -> None:
        if policy and policy not in names():
            near = difflib.get_close_matches(policy, names(), n=1) or names()
            raise ValueError(f"no policy is called {policy!r}; did you mean {', '.join(near)}?")
        # Other processes may write to the same file: every look-up asks it.
        opened = HotStore(open_store(store), shared=True) if isinstance(store, str) else store
        self._owned = opened if isinstance(store, str) else None
        self._inner = _async(inner)
        self._open: set[Passage] = set()
        self._proxy = Proxy(
            door=_Threshold(secret or _secret(store), account),
            directory=_Anywhere(policy),
            store=opened,
            wire=InnerWire(self._inner),
            observer=observer or _Quiet(),
            options=Options(keepalive=0, commit_wait=commit_wait, strict=strict),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request through the rooms; what has no history goes straight on."""
        if not parse(request.method, _path(request)).dialect:
            return await self._inner.handle_async_request(request)
        passage = Passage(request, await request.aread())
        self._open.add(passage)
        return await passage.open(self._proxy, lambda _: self._open.discard(passage))

    async def aclose(self) -> None:
        """Let go of open responses, write what is left to write, close what is ours."""
        for passage in list(self._open):
            await passage.leave()
        await self._proxy.drain(self._proxy.options.commit_wait)
        await self._inner.aclose()
        if self._owned is not None:
            await self._owned.close()


class Transport(httpx2.BaseTransport):
    """Keeps thoughts, for `httpx2.Client(transport=…)`. Arguments as for `AsyncTransport`.

    The work is done by an `AsyncTransport` on an event loop in a thread, which starts with the
    first request (so a process that forks should do so before). An inner transport that is not
    async is called in threads.
    """

    def __init__(self, store: Store | str, **options: Any) -> None:
        self._mount = AsyncTransport(store, **options)
        self._loop = Loop(self._mount)
        self._stop = weakref.finalize(self, self._loop.stop)
        self._stop.atexit = False  # what callers have received is written: threads may just end

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request through the rooms."""
        if parse(request.method, _path(request)).dialect:
            request.read()
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            lifted = Lifted(request.stream)
            request = httpx2.Request(
                request.method,
                request.url,
                headers=request.headers,
                stream=lifted,
                extensions=request.extensions,
            )
        response = self._loop.run(self._mount.handle_async_request(request))
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=Lowered(self._loop, response),
            extensions=plain(response),
        )

    def close(self) -> None:
        """Let go of open responses, write what is left to write, end the thread."""
        self._stop()
        self._loop.join()


# -- what the walk asks for, in a process that has no settings ------------------------------------


class _Threshold(Door):
    """A door for the one who is in the house already."""

    def __init__(self, secret: bytes, account: str) -> None:
        super().__init__(secret, origins=("*",))  # who calls is no browser
        self._account = account

    def admit(self, headers: Headers, query: str) -> Visitor | None:
        if not self._account:
            return super().admit(headers, query)
        account = self.fingerprint(self._account)
        return Visitor(tenant=account, account=account)


class _Anywhere(Directory):
    """Every host is an upstream: the request's own URL names it."""

    def __init__(self, policy: str) -> None:
        super().__init__(())
        self._policy = policy

    def pick(self, name: str, model: str) -> Upstream | None:
        return Upstream(name=name, base_url=name.replace(SCHEME, "://", 1), policy=self._policy)


class _Quiet:
    """Nobody watches; what could not be written is told to the standard library's logging."""

    def replayed(self, exchange: Exchange) -> None: ...
    def healed(self, exchange: Exchange, remedy: str, *, changed: bool) -> None: ...
    def ended(self, exchange: Exchange, status: int, reason: str) -> None: ...
    def passed(self, upstream: str, dialect: str, status: int) -> None: ...
    def refused(self, upstream: str, dialect: str, status: int, code: str) -> None: ...
    def sent(self, upstream: str, sent: Sent) -> None: ...

    def lost(self, exchange: Exchange, error: Exception) -> None:
        _log.warning("turn %s is not written yet: %s", exchange.turn, error)


def _async(inner: Inner | None) -> httpx2.AsyncBaseTransport:
    if inner is None:
        return httpx2.AsyncHTTPTransport(limits=LIMITS)
    return inner if isinstance(inner, httpx2.AsyncBaseTransport) else Threaded(inner)


def _secret(store: Store | str) -> bytes:
    """The gateway's, where it keeps one for this store: the same tenants, the same thoughts."""
    return keyfile.secret(keyfile.place(store, os.environ) if isinstance(store, str) else None)


def _path(request: httpx2.Request) -> str:
    return request.url.raw_path.partition(b"?")[0].decode("ascii")
