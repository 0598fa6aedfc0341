"""Pages that anybody may ask for: whether the gateway runs, whether it is ready, its metrics.

No thought and no tenant is named here. Why the store does not answer is told in full to
the administrator only, because it names files.
"""

import asyncio
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import thoughtline
from thoughtline.errors import StoreError
from thoughtline.gateway.pages.page import Json, PageResponse, client_address, page
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.telemetry import Metrics
from thoughtline.stores.cached import CachedStore

STORE_TIMEOUT = 2.0
"""Seconds within which the store must answer for the gateway to be ready."""
STORE_DOWN = "the store does not answer; the log says why"
STORE_DAMAGED = "some of what is stored is damaged; the log says what"


class Health(Struct, frozen=True, kw_only=True):
    """The process runs."""

    status: str = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether requests should come here, and why not."""

    status: str = "ready"  # or degraded, not ready
    reasons: list[str] = []
    lost: int = 0  # turns that could neither be written nor kept, since the start


class Version(Struct, frozen=True, kw_only=True):
    """The program that answers, and its version."""

    name: str
    version: str


class StatusPages:
    """Serves `/health`, `/ready`, `/metrics` and `/version`."""

    def __init__(self, proxy: Proxy, store: CachedStore, metrics: Metrics) -> None:
        self._proxy = proxy
        self._store = store
        self._metrics = metrics

    @page("/", response=PageResponse("It runs.", (), "text/plain"))
    async def root(self, _: Request, __: dict[str, Any]) -> Response:
        """One line."""
        return PlainTextResponse("Thoughtline is running\n")

    @page("/health", "/health/liveness", response="It does.")
    async def health(self, _: Request, __: dict[str, Any]) -> Health:
        """Whether the process runs."""
        return Health()

    @page(
        "/ready",
        "/health/readiness",
        response="They should.",
        errors={503: PageResponse("Not now; the reasons.", (Readiness,))},
    )
    async def ready(self, request: Request, _: dict[str, Any]) -> Readiness | Response:
        """Whether requests should come here."""
        scope = request.scope
        admin = self._proxy.auth.is_admin(scope["headers"], client_address(scope))
        reasons = ["the gateway is shutting down"] if self._proxy.draining else []
        if trouble := await self._store_trouble():
            reasons.append(trouble if admin else STORE_DOWN)
        if damage := str(self._store.damage):
            reasons.append(damage if admin else STORE_DAMAGED)
        lost = self._store.lost
        if self._proxy.draining or (trouble and not self._store.shared):
            return Json(Readiness(status="not ready", reasons=reasons, lost=lost), 503)
        # All nodes have the trouble of a shared store: a balancer would have nobody left.
        return Readiness(status="degraded" if reasons else "ready", reasons=reasons, lost=lost)

    async def _store_trouble(self) -> str:
        """Why the store cannot be relied on right now; empty when it can."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT):
                await self._store.read("", limit=1)
        except TimeoutError:
            return f"the store did not answer within {STORE_TIMEOUT:g} s"
        except StoreError as error:
            return str(error)
        return self._backlog() or self._store.slow or self._store.corrupt

    def _backlog(self) -> str:
        store = self._store
        if not store.backlog:
            return ""
        text = f"{store.backlog} turns wait for the store: {store.trouble or 'it is catching up'}"
        if store.unsaved:
            text += f"; they are in memory only, because {store.unsaved}"
        if store.lost:
            text += f"; {store.lost} are lost"
        return text

    @page("/metrics", response=PageResponse("The metrics.", (), "text/plain"))
    async def metrics(self, request: Request, _: dict[str, Any]) -> Response:
        """Metrics for Prometheus."""
        body, kind = self._metrics.page(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": kind})

    @page("/version", response="The version.")
    async def version(self, _: Request, __: dict[str, Any]) -> Version:
        """Serve `/version`."""
        return Version(name="thoughtline", version=thoughtline.__version__)
