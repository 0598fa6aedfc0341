"""`AsyncTransport` keeps thoughts; `Transport` is the same for callers without an event loop."""

import logging
import os
import weakref
from typing import Any

import httpx2

from thoughtline.engine import secrets
from thoughtline.engine.caller import Unobserved
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.folders import store_file
from thoughtline.engine.recording import Recording
from thoughtline.engine.routes import parse
from thoughtline.errors import InvalidArgument, did_you_mean
from thoughtline.gateway.asgi import RawHeaders
from thoughtline.gateway.auth import Auth, Principal
from thoughtline.gateway.options import GatewayObserver, ProxyOptions
from thoughtline.gateway.proxy import Proxy
from thoughtline.providers.contracts import policy_names
from thoughtline.replay.plan import ReplayLimits
from thoughtline.stores import open_store
from thoughtline.stores.base import Batch, Store
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.sealing import open_keychain
from thoughtline.transports.request import SCHEME, InnerWire, TransportRequest, with_stream
from thoughtline.transports.threads import AsyncStream, LoopThread, SyncStream, ThreadedTransport
from thoughtline.wires.websocket.response import SentRequest

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
        keep_last: put back thoughts of that number of last turns only, where none is demanded.
        loop_only: put back thoughts of the running tool loop only, where none is demanded.
        commit_wait: how many seconds the end of a response waits for the store at most.
        observer: who is told what happens.
        keys: where the master keys are that seal what is stored, with the URL of a store:
            `file:PATH`, `env:NAME` or `exec:COMMAND`.
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
        keep_last: int | None = None,
        loop_only: bool = False,
        commit_wait: float = 2.0,
        observer: GatewayObserver | None = None,
        keys: str = "",
    ) -> None:
        if policy and policy not in policy_names():
            hint = did_you_mean(policy, policy_names(), f"known: {', '.join(policy_names())}")
            raise InvalidArgument(f"no policy is called {policy!r}; {hint}")
        opened = _open(store, keys) if isinstance(store, str) else store
        self._owned = opened if isinstance(store, str) else None
        self._inner = _async(inner)
        self._open: set[TransportRequest] = set()
        self._proxy = Proxy(
            auth=_InProcessAuth(secret or _secret(store), account),
            directory=_Anywhere(policy),
            store=opened,
            wire=InnerWire(self._inner),
            observer=observer or _Quiet(),
            options=ProxyOptions(
                keepalive=0,
                commit_wait=commit_wait,
                strict=strict,
                limits=ReplayLimits(last=keep_last, loop_only=loop_only),
            ),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request through the proxy; what has no history goes straight on."""
        if not parse(request.method, _path(request)).dialect:
            return await self._inner.handle_async_request(request)
        opened = TransportRequest(request, await request.aread())
        self._open.add(opened)
        return await opened.open(self._proxy, lambda _: self._open.discard(opened))

    async def aclose(self) -> None:
        """Close open responses, write what is left to write, close what this transport opened."""
        for request in list(self._open):
            await request.leave()
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
        self._loop = LoopThread(self._mount)
        self._stop = weakref.finalize(self, self._loop.stop)
        self._stop.atexit = False  # what callers have received is written: threads may just end

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, and wait for the head of its response."""
        if parse(request.method, _path(request)).dialect:
            request.read()
        if not isinstance(request.stream, httpx2.AsyncByteStream):
            request = httpx2.Request(
                request.method,
                request.url,
                headers=request.headers,
                stream=AsyncStream(request.stream),
                extensions=request.extensions,
            )
        response = self._loop.run(self._mount.handle_async_request(request))
        return with_stream(response, SyncStream(self._loop, response))

    def close(self) -> None:
        """Close open responses, write what is left to write, end the thread."""
        self._stop()
        self._loop.join()


# -- what the proxy needs, in a process that has no settings ---------------------------------------


class _InProcessAuth(Auth):
    """Auth for in-process transports: the caller is trusted, its key goes upstream."""

    def __init__(self, secret: bytes, account: str) -> None:
        super().__init__(secret, origins=("*",))  # who calls is no browser
        self._account = account

    def authenticate(self, headers: RawHeaders, query: str) -> Principal | None:
        if not self._account:
            return super().authenticate(headers, query)
        account = self.fingerprint(self._account)
        return Principal(tenant=account, account=account)


class _Anywhere(Directory):
    """Every host is an upstream: the request's own URL names it."""

    def __init__(self, policy: str) -> None:
        super().__init__(())
        self._policy = policy

    def pick(self, name: str, model: str, options: str = "") -> Upstream | None:
        return Upstream(name=name, base_url=name.replace(SCHEME, "://", 1), policy=self._policy)


class _Quiet(Unobserved):
    """Looks at nothing; what could not be written goes to the standard library's logging."""

    def passed(self, upstream: str, dialect: str, status: int, request: str = "") -> None: ...
    def refused(
        self, upstream: str, dialect: str, status: int, code: str, request: str = ""
    ) -> None: ...
    def sent(self, upstream: str, sent: SentRequest) -> None: ...

    def lost(self, recording: Recording, error: Exception) -> None:
        _log.warning("turn %s is not written yet: %s", recording.turn, error)


def _async(inner: Inner | None) -> httpx2.AsyncBaseTransport:
    if inner is None:
        return httpx2.AsyncHTTPTransport(limits=LIMITS)
    return inner if isinstance(inner, httpx2.AsyncBaseTransport) else ThreadedTransport(inner)


def _open(url: str, keys: str) -> CachedStore:
    keychain = open_keychain(keys, os.environ)
    return CachedStore(
        open_store(url, keychain=keychain),
        spill=store_file(url),
        keychain=keychain,
        observer=_StoreLog(),
    )


class _StoreLog:
    """Logs what the store cannot keep."""

    def committed(self, seconds: float) -> None:
        """A turn is written."""

    def dropped(self, batch: Batch, why: str) -> None:
        _log.error("a turn of session %s is lost: %s", batch.session, why)

    def damaged(self, why: str) -> None:
        _log.error("the store is damaged: %s", why)


def _secret(store: Store | str) -> bytes:
    """The gateway's, where it keeps one for this store: the same tenants, the same thoughts."""
    if isinstance(store, str):
        return secrets.store_secret(store, os.environ)
    return secrets.secret(None)


def _path(request: httpx2.Request) -> str:
    return request.url.raw_path.partition(b"?")[0].decode("ascii")
